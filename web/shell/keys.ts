/** Keys of a room and of the whole page. They are off in fields and while a dialog is open, and the reader can turn them off. */
import { useEffect, useRef } from 'react'
import { chordLabel, createKeyBoard, type KeyGroup, type Keys } from './key-chords.ts'
import { remember, remembered } from '../data/remember.ts'

const board = createKeyBoard()
export const isMac = /Mac|iPhone|iPad/u.test(globalThis.navigator?.platform ?? '')

/**
 * `useKeys({ j: { label: 'Next row', run }, 'g r': …, 'Shift+,': …, 'Mod+Enter': … })`: as long as the component is there. A room's
 * keys come before those of the page. `?` lists them all.
 */
export function useKeys(keys: Keys, group = 'Here'): void {
  const latest = useRef(keys)
  useEffect(() => {
    latest.current = keys
  })
  useEffect(() => board.add(group, () => latest.current), [group])
}

/** All keys that work now, those of the room first. */
export function readKeyGroups(): readonly KeyGroup[] {
  const groups = new Map<string, Keys>()
  for (const { name, keys } of board.groups()) groups.set(name, { ...keys, ...groups.get(name) })
  return [...groups].map(([name, keys]) => ({ name, keys })).filter(({ keys }) => Object.keys(keys).length > 0)
}

export function areKeysOn(): boolean {
  return remembered('keys') !== 'off'
}

export function turnKeys(on: boolean): void {
  remember('keys', on ? undefined : 'off')
}

/** A chord as this machine's keys are labelled. */
export function keyLabel(chord: string): string {
  return chordLabel(chord, isMac)
}

/** Called once, by the shell. */
export function listenForKeys(): () => void {
  const press = (event: KeyboardEvent) => {
    // `defaultPrevented`: a control has used the key.
    if (event.defaultPrevented || event.isComposing || document.querySelector('dialog:modal') !== null) return
    const target = event.target instanceof Element ? event.target : undefined
    const isControls = (event.key === 'Enter' || event.key === ' ') && target?.closest(controls) != null
    if (isControls && !event.ctrlKey && !event.metaKey) return
    // A field of a dialog that has just been closed keeps the focus until the next frame.
    const inField = target?.closest(fields) != null && target.closest('dialog:not([open])') === null
    const found = board.press(event, { inField, areOn: areKeysOn(), isMac, now: performance.now() })
    if (found === undefined) return
    event.preventDefault()
    if (found !== 'begun') found.run()
  }
  addEventListener('keydown', press)
  return () => removeEventListener('keydown', press)
}

const fields =
  'input:not([type=checkbox], [type=radio], [type=range], [type=button]), textarea, select, [contenteditable]:not([contenteditable=false])'
const controls = 'a, button, summary, select, input, [role=button], [role=option], [role=tab], [role=menuitem]'
