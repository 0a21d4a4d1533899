/** Finds a run by a unique prefix of its id, with or without `run_`. */
import { MillraceError } from '../part/error.ts'
import type { RunRow } from '../part/log.ts'
import { nearest } from '../pipeline/nearest.ts'
import type { Access } from './access.ts'

/** Throws `unknown-run`, with a suggestion if an id is similar. */
export async function findRun(access: Access, text: string): Promise<RunRow> {
  if (/^(?:run_)?$/u.test(text)) throw new MillraceError('usage', 'Which run? Pass its id, or a unique prefix of it.')
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
  const message = `"${text}" matches several runs; pass a longer prefix: ${shown.join(', ')}${more}`
  return new MillraceError('unknown-run', message)
}

async function unknown(access: Access, text: string): Promise<string> {
  const rows = await access.list({ limit: 200 })
  if (rows.length === 0) return `There is no run ${text}. No runs are recorded yet.`
  // The text may be a mistyped prefix. `run_` is left out: as a part of every id it says nothing.
  const typed = text.replace(/^run_/u, '')
  const beginnings = new Map(rows.map(({ id }) => [id.replace(/^run_/u, '').slice(0, typed.length), id]))
  const meant = nearest(typed, beginnings.keys())
  const guess = meant === undefined ? '' : ` (did you mean ${beginnings.get(meant)}?)`
  return `There is no run ${text}${guess}. List runs with: millrace ps`
}
