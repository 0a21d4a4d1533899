/** Data of one run for the page: its outline, and the whole prompt of a model call. */
import { createOutline, type Outline } from '../../fold/outline.ts'
import type { OutlineItem, OutlineMore } from '../../fold/outline-item.ts'
import { checkCursor } from '../../fold/read-view.ts'
import { readPrompt } from '../../fold/whole-prompt.ts'
import { didYouMean } from '../../pipeline/nearest.ts'
import type { HandlerContext } from '../handler-context.ts'
import type { Routes } from '../http/routes.ts'
import { ndjsonResponse } from '../http/sse-response.ts'
import { bad, readQuery, wholeNumber } from '../http/query.ts'
import { existingRun } from './existing-run.ts'

export function mountOutline(routes: Routes): void {
  routes.get('/api/runs/:id/outline', 'runs.read', (context, request) =>
    getOutline(context, request.param('id'), new URL(request.url)),
  )
  // A prompt is a text of the agent.
  routes.get('/api/runs/:id/prompt', 'agents.read', (context, request) =>
    getPrompt(context, request.param('id'), new URL(request.url)),
  )
}

/** The longest page. */
const mostItems = 10_000

/**
 * NDJSON, sent while the log is read. `after`: only items that are new or have changed after this entry. `limit`: no more than this many
 * items, from a part of the log; if it goes on there, the last line says where.
 */
async function getOutline(context: HandlerContext, id: string, url: URL): Promise<Response> {
  const { lastSeq } = await existingRun(context, id)
  const { after: wanted = '0', limit: most } = readQuery(url, { after: 20, limit: 20 })
  const after = wholeNumber(wanted, 'after', 0, Number.MAX_SAFE_INTEGER)
  if (after > lastSeq) throw bad('after', `at most ${lastSeq}, the last entry of run ${id}`)
  const limit = most === undefined ? Infinity : wholeNumber(most, 'limit', 1, mostItems)
  const { log } = context.runtime.store
  await checkCursor(log, id, after)
  return ndjsonResponse(id, read())

  async function* read(): AsyncGenerator<(OutlineItem | OutlineMore)[]> {
    const outline = createOutline()
    for await (const batch of log.read(id)) {
      for (const entry of batch) {
        outline.apply(entry)
        // The client has all changes up to here.
        if (entry.seq === after) outline.take()
        else if (entry.seq > after && outline.changes >= limit) return yield endOfPage(outline)
      }
      if (limit === Infinity && outline.lastSeq > after) yield outline.take({ settled: true })
    }
    yield outline.take()
  }

  function endOfPage(outline: Outline): (OutlineItem | OutlineMore)[] {
    const items = outline.take()
    return outline.lastSeq < lastSeq ? [...items, { k: 'more', after: outline.lastSeq }] : items
  }
}

async function getPrompt(context: HandlerContext, id: string, url: URL): Promise<Response> {
  await existingRun(context, id)
  const { step = '' } = readQuery(url, { step: 2000 })
  const asked = new Set<string>()
  const prompt = await readPrompt(context.runtime.store.log, id, step, asked)
  if (prompt !== undefined) return Response.json(prompt)
  throw bad('step', `the path of a model call of the run${didYouMean(step, [...asked])}`)
}
