/** Runs by the beginning of their ids, as long as only one begins so: with or without `run_`. */
import { MillraceError } from '../part/error.ts'
import type { RunRow } from '../part/log.ts'
import { nearest } from '../pipeline/nearest.ts'
import type { Access } from './access.ts'

/** Throws `unknown-run`, which names what was probably meant. */
export async function findRun(access: Access, text: string): Promise<RunRow> {
  if (/^(?:run_)?$/u.test(text)) throw new MillraceError('usage', 'Name a run: its id, or the beginning of it.')
  const beginnings = text.startsWith('run_') ? [text] : [text, `run_${text}`]
  for (const idPrefix of beginnings) {
    const rows = await access.list({ idPrefix, limit: 1000 })
    const found = rows.length === 1 ? rows[0] : rows.find(({ id }) => id === idPrefix)
    if (found !== undefined) return found
    if (rows.length > 1) throw ambiguous(text, rows)
  }
  throw new MillraceError('unknown-run', await unknown(access, text))
}

function ambiguous(text: string, rows: RunRow[]): MillraceError {
  const shown = rows.slice(0, 5).map(({ id }) => id)
  const more = rows.length > shown.length ? ' …' : ''
  const message = `"${text}" begins the ids of several runs; give more of it: ${shown.join(', ')}${more}`
  return new MillraceError('unknown-run', message)
}

async function unknown(access: Access, text: string): Promise<string> {
  const rows = await access.list({ limit: 200 })
  if (rows.length === 0) return `There is no run ${text}: there are no runs yet.`
  // What was typed may be a beginning only, with or without "run_".
  const beginnings = new Map<string, string>()
  for (const { id } of rows) {
    for (const form of [id.replace(/^run_/u, ''), id]) beginnings.set(form.slice(0, text.length), id)
  }
  const meant = nearest(text, beginnings.keys())
  const guess = meant === undefined ? '' : ` (did you mean ${beginnings.get(meant)}?)`
  return `There is no run ${text}${guess}. millrace ps lists them.`
}
