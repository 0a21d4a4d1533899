/** The columns of the list of runs: which are chosen, and which of them have room. */
import type { RunSort } from '../../../src/part/log.ts'

export interface Column {
  id: ColumnId
  name: string
  /** px. Of the words and the errors: the least. */
  width: number
  isNumber?: true
  /** A sign in the place of words, also in its head. */
  isCompact?: true
  sort?: RunSort
  /** What it is, in more words. */
  title?: string
}

export type ColumnId =
  | 'status'
  | 'agent'
  | 'user'
  | 'words'
  | 'error'
  | 'started'
  | 'took'
  | 'first'
  | 'tokens'
  | 'cost'
  | 'model'
  | 'client'
  | 'thread'
  | 'verdict'

export const columns: readonly Column[] = [
  { id: 'status', name: 'Status', width: 104 },
  { id: 'agent', name: 'Agent', width: 124 },
  { id: 'user', name: 'User', width: 104 },
  { id: 'words', name: 'First words', width: 180 },
  { id: 'error', name: 'Errors', width: 44, title: 'Errors, and tool calls that failed' },
  { id: 'started', name: 'Started', width: 76, isNumber: true, sort: 'started' },
  { id: 'took', name: 'Took', width: 72, isNumber: true, sort: 'duration', title: 'With the time in which it waited' },
  { id: 'first', name: 'First token', width: 80, isNumber: true, title: 'Without the time in which it waited' },
  { id: 'tokens', name: 'Tokens', width: 68, isNumber: true, sort: 'tokens' },
  { id: 'cost', name: 'Cost', width: 76, isNumber: true, sort: 'cost' },
  { id: 'model', name: 'Model', width: 150 },
  { id: 'client', name: 'Client', width: 76, title: 'The protocol that it was started over' },
  { id: 'thread', name: 'Thread', width: 116 },
  { id: 'verdict', name: 'Verdict', width: 60, title: 'What people said of it last' },
]

const usual: readonly ColumnId[] = 'status agent user words error started took first tokens cost thread'.split(
  ' ',
) as ColumnId[]

/** Where there is no room, these go first. The words stay: they lead to the run. */
const leaves: readonly ColumnId[] =
  'thread verdict client first model error user tokens agent took cost started status'.split(' ') as ColumnId[]

/** On a small screen a status is its glyph; its word is its tooltip, and is read aloud. */
const compactBelow = 800
const compactStatus = { width: 16, isCompact: true as const }

/** Beside the columns: the mark, and what is left and right. */
const edges = 20 + 12 + 28
const gap = 12

/** The columns that an address names; undefined: the usual ones. Unknown names are left out. */
export function readColumns(text: string | undefined): readonly ColumnId[] | undefined {
  const named = new Set(text?.split(','))
  const known = columns.filter(({ id }) => named.has(id) || id === 'words').map(({ id }) => id)
  return known.length > 1 ? known : undefined
}

/** The reverse. `undefined`: the usual ones. */
export function writeColumns(chosen: readonly ColumnId[]): string | undefined {
  const text = columns.filter(({ id }) => chosen.includes(id)).map(({ id }) => id)
  return text.join() === usual.join() ? undefined : text.join()
}

export function chosenColumns(chosen: readonly ColumnId[] | undefined): readonly ColumnId[] {
  return chosen ?? usual
}

/** Those of the chosen ones that have room. `hasOwners`: whether whose the runs are is told at all. */
export function shownColumns(
  chosen: readonly ColumnId[] | undefined,
  width: number,
  hasOwners: boolean,
): readonly Column[] {
  const wanted = new Set(chosenColumns(chosen))
  if (!hasOwners) wanted.delete('user')
  const all = columns
    .filter(({ id }) => wanted.has(id))
    .map((each) => (each.id === 'status' && width < compactBelow ? { ...each, ...compactStatus } : each))
  const needed = (shown: readonly Column[]) => shown.reduce((sum, each) => sum + each.width + gap, edges)
  let shown = all
  for (const id of leaves) {
    if (needed(shown) <= width) break
    shown = shown.filter((each) => each.id !== id)
  }
  return shown
}

/** The grid of a row. The words take what is left, and where there is much of it the errors say more. */
export function gridOf(shown: readonly Column[], width: number): string {
  const rest = width - shown.reduce((sum, each) => sum + each.width + gap, edges)
  const parts = shown.map(({ id, width: px }) => {
    if (id === 'words') return `minmax(${px}px, 3fr)`
    return id === 'error' && rest > 160 ? `minmax(${px}px, 2fr)` : `${px}px`
  })
  return ['20px', ...parts].join(' ')
}
