/** A run's row in a list, as a fold of its entries. A delta costs one comparison. */
import type { Entry, EntryOf } from '../part/entry.ts'
import { textOf } from '../fold/run-view.ts'
import type { RunQuery, RunRow } from '../part/log.ts'
import type { Message } from '../part/message.ts'
import { addUsage } from '../part/usage.ts'

/** Returns the row after these entries, without changing `row`. The first entry of the run must be `run-start`. */
export function foldRow(row: RunRow | undefined, run: string, epoch: number, entries: readonly Entry[]): RunRow {
  const next = row ? { ...row, epoch } : startRow(run, epoch, entries[0] as EntryOf<'run-start'>)
  for (const entry of entries) {
    switch (entry.type) {
      case 'suspend':
        next.status = 'suspended'
        break
      case 'resume':
        next.status = 'running'
        break
      case 'usage':
        setCost(next, next.usage === undefined ? entry.cost : plus(next.cost, entry.cost))
        next.usage = addUsage(next.usage, entry.usage)
        break
      case 'run-end':
        next.status = entry.outcome
        next.endedAt = entry.timestamp
        next.usage = entry.usage
        setCost(next, entry.cost)
        if (entry.error !== undefined) next.error = entry.error
        break
      default:
    }
  }
  const last = entries.at(-1)
  if (last) {
    next.lastSeq = last.seq
    next.updatedAt = last.timestamp
  }
  return next
}

/** Undefined if either cost is unknown. */
function plus(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined ? undefined : a + b
}

function setCost(row: RunRow, cost: number | undefined): void {
  if (cost === undefined) delete row.cost
  else row.cost = cost
}

function startRow(run: string, epoch: number, start: EntryOf<'run-start'>): RunRow {
  const { agent, threadId, parentRunId, protocol, timestamp, seq } = start
  const row: RunRow = {
    id: run,
    agent,
    threadId,
    protocol,
    status: 'running',
    startedAt: timestamp,
    updatedAt: timestamp,
    lastSeq: seq,
    epoch,
  }
  if (parentRunId !== undefined) row.parentRunId = parentRunId
  const title = titleOf(start.input)
  if (title !== '') row.title = title
  return row
}

const titleLength = 120

/**
 * The start of the last user message in a run's input, or `''`. White space and control characters become single spaces,
 * because titles are printed on terminals.
 */
export function titleOf(input: Record<string, unknown>): string {
  const messages = Array.isArray(input?.messages) ? (input.messages as unknown[]) : []
  const last = messages.findLast(isUserMessage)
  if (last === undefined) return ''
  // A prompt may have megabytes: only look at enough of it for the title.
  const words = textOf(last)
    .slice(0, 2000)
    .trim()
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .trim()
  const cut = words.slice(0, titleLength)
  // Do not split a surrogate pair.
  return (cut.isWellFormed() ? cut : cut.slice(0, -1)).trim()
}

function isUserMessage(value: unknown): value is Message {
  if (typeof value !== 'object' || value === null || (value as Message).role !== 'user') return false
  const { content } = value as Message
  return (
    typeof content === 'string' ||
    (Array.isArray(content) && content.every((part) => part !== null && typeof part === 'object'))
  )
}

/** The words of `RunQuery.q`, case-folded like titles. A title matches if it contains all of them. */
export function queryWords(q: string | undefined): string[] {
  return fold(q ?? '')
    .split(/\s+/)
    .filter(Boolean)
}

export function fold(text: string): string {
  return text.toLowerCase()
}

export function limitOf({ limit = 50 }: RunQuery): number {
  return Math.min(1000, Math.max(1, Math.floor(limit)))
}
