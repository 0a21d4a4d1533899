/**
 * Which keys do what. `j`, `?`, `Shift+,`, `Mod+k` (⌘ on a Mac, else Ctrl), `Mod+Enter`, `Space`, `Esc`, and two keys one after the
 * other: `g r`. Pure: it is told of key presses, and of the time.
 */
export interface KeyAction {
  /** What the list of keys says: `Open the runs`. */
  label: string
  run(): void
  /** It works while the reader types in a field. `Mod+…` always does. */
  inFields?: boolean
}

export type Keys = Record<string, KeyAction>

export interface KeyGroup {
  name: string
  keys: Keys
}

/** What is read of a `KeyboardEvent`. */
export interface KeyPress {
  key: string
  code: string
  shiftKey: boolean
  ctrlKey: boolean
  metaKey: boolean
  altKey: boolean
}

export interface PressContext {
  /** The focus is in a field. */
  inField: boolean
  /** Keys without ⌘ or Ctrl are turned on. */
  areOn: boolean
  isMac: boolean
  /** ms of any clock. */
  now: number
}

export interface KeyBoard {
  groups(): readonly KeyGroup[]
  /** `keys` is asked at each press. What was added last comes first. The returned function takes the group away. */
  add(name: string, keys: () => Keys): () => void
  /** `'begun'`: the first of two keys. */
  press(event: KeyPress, context: PressContext): KeyAction | 'begun' | undefined
}

/** How long the second of two keys may take. */
const patience = 1500

export function createKeyBoard(): KeyBoard {
  const added: { name: string; keys: () => Keys }[] = []
  let begun: { chord: string; at: number } | undefined

  function find(chords: readonly string[]): KeyAction | undefined {
    for (const { keys } of added.toReversed()) {
      const known = keys()
      const chord = chords.find((each) => Object.hasOwn(known, each))
      if (chord !== undefined) return known[chord]
    }
    return undefined
  }

  const isFirst = (chord: string) =>
    added.some(({ keys }) => Object.keys(keys()).some((each) => each.startsWith(`${chord} `)))

  return {
    groups: () => added.map(({ name, keys }) => ({ name, keys: keys() })).toReversed(),
    add(name, keys) {
      const group = { name, keys }
      added.push(group)
      return () => void added.splice(added.indexOf(group), 1)
    },
    press(event, { inField, areOn, isMac, now }) {
      const chords = chordsOf(event, isMac)
      const isMod = chords[0]?.startsWith('Mod+') === true
      const before = begun !== undefined && now - begun.at < patience ? begun.chord : undefined
      begun = undefined
      if (chords.length === 0 || (!areOn && !isMod)) return undefined
      if (!inField && before !== undefined) {
        const second = find(chords.map((chord) => `${before} ${chord}`))
        if (second !== undefined) return second
      }
      const action = find(chords)
      if (action !== undefined) return inField && !isMod && action.inFields !== true ? undefined : action
      if (inField || isMod || !isFirst(chords[0]!)) return undefined
      begun = { chord: chords[0]!, at: now }
      return 'begun'
    },
  }
}

const named = new Map([
  [' ', 'Space'],
  ['Escape', 'Esc'],
])
const plain = new Map([
  ['Comma', ','],
  ['Period', '.'],
  ['Slash', '/'],
])

/** The names that a press has: what it types, and the key that it is on. */
export function chordsOf(event: KeyPress, isMac: boolean): string[] {
  const { key, code, shiftKey, ctrlKey, metaKey, altKey } = event
  if (altKey || (isMac ? ctrlKey : metaKey)) return []
  const typed = named.get(key) ?? key
  const onKey = plain.get(code) ?? /^(?:Key|Digit)(.)$/u.exec(code)?.[1]?.toLowerCase() ?? typed
  if (isMac ? metaKey : ctrlKey)
    return [`Mod+${shiftKey ? 'Shift+' : ''}${typed.length === 1 ? typed.toLowerCase() : typed}`]
  return shiftKey ? [`Shift+${onKey}`, ...(typed.length === 1 ? [typed] : [])] : [typed]
}

/** `Mod+k` as the keys of this machine are labelled: `⌘K`, `Ctrl K`. */
const signs: Record<string, string> = { Shift: '⇧', ArrowDown: '↓', ArrowUp: '↑', ArrowLeft: '←', ArrowRight: '→' }

export function chordLabel(chord: string, isMac: boolean): string {
  if (chord.includes(' ')) {
    return chord
      .split(' ')
      .map((each) => chordLabel(each, isMac))
      .join(' then ')
  }
  const keys = chord.split('+').map((key) => (key === 'Mod' ? (isMac ? '⌘' : 'Ctrl') : (signs[key] ?? key)))
  const last = keys.pop()!
  return [...keys, keys.length > 0 && last.length === 1 ? last.toUpperCase() : last].join(isMac ? '' : ' ')
}
