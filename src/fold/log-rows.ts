/** The rows of a log, with its deltas merged, as far as an outline has them: without content. */
import type { OutlineBlock, OutlineItem, OutlineStep } from './outline-item.ts'
import type { Entry } from '../part/entry.ts'

/** A line of a log without its content. */
export interface LogRow {
  /** `seq` of its first entry. Merged deltas extend to `to`; for an open block that is `MAX_SAFE_INTEGER`. */
  seq: number
  to: number
  type: Entry['type']
  step: string
  at: number
  note: string | undefined
  /** The block's id, if it is one. */
  id: string | undefined
  failed: boolean
}

/** `items`: merged or clipped. The result is sorted by `seq`. */
export function logRows(items: readonly OutlineItem[]): LogRow[] {
  const rows: LogRow[] = []
  for (const item of items) {
    if (item.k === 'step') stepRows(item, rows)
    else if (item.k === 'block') blockRows(item, rows)
    else {
      const { seq, to = seq, step, at, note, n, failed = false } = item
      const type = item.type as Entry['type']
      rows.push({
        seq,
        to,
        type,
        step,
        at,
        note: n === undefined ? note : `${note ?? ''} ×${n}`,
        id: undefined,
        failed,
      })
    }
  }
  return rows.sort((a, b) => a.seq - b.seq)
}

function stepRows(item: OutlineStep, rows: LogRow[]): void {
  const { path: step, from, to, at, end, superseded, error, stepType, toolName, agent, finishReason } = item
  const fixed = { step, id: undefined }
  const what = [stepType, toolName ?? agent].filter(Boolean).join(' ')
  rows.push({ ...fixed, seq: from, to: from, type: 'step-start', at, note: what, failed: false })
  if (end === undefined || to === superseded) return
  const note = error?.message ?? finishReason
  rows.push({ ...fixed, seq: to, to, type: 'step-finish', at: end, note, failed: error !== undefined })
}

function blockRows(item: OutlineBlock, rows: LogRow[]): void {
  const { step, kind, id, from, to, begun = from + 1, at, first, end, n, chars, superseded, toolName } = item
  const fixed = { step, id, failed: false }
  rows.push({ ...fixed, seq: from, to: from, type: `${kind}-start`, at, note: toolName })
  const isClosed = end !== undefined && to !== superseded
  if (first !== undefined) {
    const isOpen = end === undefined && superseded === undefined
    const last = isOpen ? Number.MAX_SAFE_INTEGER : isClosed || to === superseded ? to - 1 : to
    const note = `${n} ${n === 1 ? 'delta' : 'deltas'}, ${chars} characters`
    rows.push({ ...fixed, seq: begun, to: Math.max(begun, last), type: `${kind}-delta`, at: first, note })
  }
  if (isClosed) rows.push({ ...fixed, seq: to, to, type: `${kind}-end`, at: end, note: undefined })
}

/** The rows as they were at the entry `seq`. */
export function rowsUntil(rows: readonly LogRow[], seq: number): readonly LogRow[] {
  const end = rowAt(rows, seq) + 1
  return end === rows.length ? rows : rows.slice(0, end)
}

/** The index of the last row that begins at or before an entry; -1 if there is none. */
export function rowAt(rows: readonly { seq: number }[], seq: number): number {
  let low = 0
  let high = rows.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (rows[middle]!.seq <= seq) low = middle + 1
    else high = middle
  }
  return low - 1
}

/** One entry as a line of text. */
export function summaryOf(entry: Entry): string {
  switch (entry.type) {
    case 'text-delta':
    case 'reasoning-delta':
    case 'tool-input-delta':
      return entry.delta
    case 'tool-call':
      return `${entry.toolName} ${entry.input}`
    case 'tool-result':
      return `${entry.toolName} ${brief(entry.result)}`
    case 'error':
      return `${entry.error.code}: ${entry.error.message}`
    case 'run-end':
      return entry.error === undefined ? entry.outcome : `${entry.outcome}: ${entry.error.message}`
    case 'step-finish':
      if (entry.error !== undefined) return `${entry.error.code}: ${entry.error.message}`
      return [entry.finishReason, entry.result === undefined ? '' : brief(entry.result)].filter(Boolean).join(' ')
    default: {
      const { type: _, seq: __, step: ___, timestamp: ____, firstSeq: _____, ...rest } = entry
      return brief(rest)
    }
  }
}

function brief(value: unknown): string {
  if (typeof value === 'string') return value
  const text = JSON.stringify(value) ?? ''
  return text === '{}' ? '' : text
}
