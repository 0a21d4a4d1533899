/** Rows of the list as a table for a spreadsheet. */
import { durationOf } from '../../../src/part/run-values.ts'
import type { RunRow } from '../../../src/part/log.ts'

const cells: readonly [head: string, of: (run: RunRow) => string | number | undefined][] = [
  ['run', ({ id }) => id],
  ['status', ({ status }) => status],
  ['agent', ({ agent }) => agent],
  ['user', ({ owner }) => owner],
  ['tenant', ({ tenant }) => tenant],
  ['first words', ({ title }) => title],
  ['started', ({ startedAt }) => new Date(startedAt).toISOString()],
  ['ms', durationOf],
  ['first token ms', ({ firstTokenMs }) => firstTokenMs],
  ['input tokens', ({ usage }) => usage?.inputTokens],
  ['output tokens', ({ usage }) => usage?.outputTokens],
  ['usd', ({ cost }) => cost],
  ['models', ({ models }) => models?.join(' ')],
  ['client', ({ protocol }) => protocol],
  ['thread', ({ threadId }) => threadId],
  ['errors', ({ errors }) => errors],
  ['error', ({ error }) => error?.message],
]

export function csvOf(runs: readonly RunRow[]): string {
  const lines = [cells.map(([head]) => head), ...runs.map((run) => cells.map(([, of]) => of(run)))]
  return `${lines.map((line) => line.map(cellOf).join(',')).join('\r\n')}\r\n`
}

/** A spreadsheet takes a text that begins with one of these for a formula: it gets a `'` before it. */
const formula = /^[=+\-@\t\r]/u

function cellOf(value: string | number | undefined): string {
  if (typeof value !== 'string') return String(value ?? '')
  const text = formula.test(value) ? `'${value}` : value
  return /[",\r\n]/u.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
