/** `GET /api/diff?a=&b=`: the point where two runs diverge, and the results of each. */
import { recordedRun } from '../../part/recording.ts'
import { diffRuns } from '../../record/diff/diff.ts'
import type { HandlerContext } from '../handler-context.ts'
import { bad, readQuery } from '../http/query.ts'
import { existingRun } from './existing-run.ts'

export async function diffOf(context: HandlerContext, url: URL): Promise<Response> {
  const { a, b } = readQuery(url, { a: 256, b: 256 })
  if (!a) throw bad('a', 'the id of a run')
  if (!b) throw bad('b', 'the id of a run')
  await Promise.all([existingRun(context, a), existingRun(context, b)])
  const { log } = context.runtime.store
  return Response.json(await diffRuns(recordedRun(log, a), recordedRun(log, b)))
}
