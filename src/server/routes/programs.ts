/** `GET /api/runs/:id/programs`: what a run that was recorded elsewhere would set to work if it went on. */
import { readPrograms } from '../../runtime/foreign-programs.ts'
import type { HandlerContext } from '../handler.ts'
import { bad, readQuery } from '../http/query.ts'
import { existingRun } from './existing-run.ts'

/** `at`: behind which entry it goes on; default its last. `own=0`: not with its own text. */
export async function getPrograms(context: HandlerContext, id: string, url: URL): Promise<Response> {
  const { at, own = '1' } = readQuery(url, { at: 20, own: 1 })
  const row = await existingRun(context, id)
  const seq = at === undefined ? row.lastSeq : Number(at)
  if (!Number.isSafeInteger(seq) || seq < 1) throw bad('at', 'the seq of an entry')
  if (own !== '0' && own !== '1') throw bad('own', '0 or 1')
  const programs = await readPrograms(context.runtime.store.log, id, { before: seq + 1, ownText: own === '1' })
  return Response.json({ foreign: row.foreign !== undefined, programs })
}
