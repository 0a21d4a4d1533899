/** Example runs for store tests: legal, of any length. */
import fc from 'fast-check'
import type { Entry, RecordedPart } from '../part/entry.ts'
import type { RunStart } from '../part/part.ts'

export const noon = 1_705_584_896_000

/** An entry of a run; `timestamp` is derived from `seq` by default. */
export function entry(seq: number, part: RecordedPart, step = '', timestamp = noon + seq): Entry {
  return { seq, timestamp, step, ...part }
}

export function startEntry(run: string, part: Partial<RunStart> = {}, timestamp = noon): Entry {
  return entry(
    1,
    {
      type: 'run-start',
      runId: run,
      agent: 'echo',
      pipeline: 'workflow: []',
      threadId: 'thread-1',
      protocol: 'api',
      input: {},
      ...part,
    },
    '',
    timestamp,
  )
}

export function endEntry(seq: number): Entry {
  const usage = { inputTokens: 3, outputTokens: 4, totalTokens: 7, source: 'reported' as const }
  return entry(seq, { type: 'run-end', outcome: 'completed', usage, cost: 0.25 })
}

/** `run-start`, one step with one text of `deltas` deltas, `run-end`: `deltas + 6` entries. */
export function exampleRun(run: string, deltas = 4): Entry[] {
  const path = 'main/answer'
  const entries = [startEntry(run)]
  const add = (part: RecordedPart, step = path) => entries.push(entry(entries.length + 1, part, step))
  add({ type: 'step-start', stepType: 'custom', attempt: 1, answer: true })
  add({ type: 'text-start', id: `${path}:0` })
  for (let i = 0; i < deltas; i++) add({ type: 'text-delta', id: `${path}:0`, delta: `word ${i}\n` })
  add({ type: 'text-end', id: `${path}:0` })
  add({ type: 'step-finish', duration: 5 })
  entries.push(endEntry(entries.length + 1))
  return entries
}

/** Splits entries into batches for `append`. */
export function cutAt(entries: readonly Entry[], cuts: readonly number[]): Entry[][] {
  const places = [...new Set(cuts.filter((cut) => cut > 0 && cut < entries.length))].sort((a, b) => a - b)
  return [0, ...places].map((from, i) => entries.slice(from, places[i]))
}

/** Runs with arbitrary JSON data, including every character that could break a line format. */
export const anyRun = fc
  .array(fc.oneof(fc.string({ unit: 'binary' }), fc.constant('\n'), fc.constant('"\\\u2028'), fc.jsonValue()), {
    maxLength: 40,
  })
  .map((values) => (run: string) => [
    startEntry(run),
    // A JSON round trip normalizes -0 and similar values.
    ...values.map((data, i) => entry(i + 2, JSON.parse(JSON.stringify({ type: 'data', name: 'x', data })))),
    endEntry(values.length + 2),
  ])
