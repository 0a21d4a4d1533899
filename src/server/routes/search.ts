/** `GET /api/search`: full-text search in recorded runs. */
import type { Hono } from 'hono'
import { omitUndefined } from '../../part/omit-undefined.ts'
import { MillraceError } from '../../part/error.ts'
import { bad, readQuery, wholeNumber } from '../http/query.ts'
import type { HandlerContext } from '../handler-context.ts'

const parameters = { q: 200, agent: 256, thread: 256, limit: 20 }

export function mountSearch(app: Hono, { runtime }: HandlerContext): void {
  app.get('/api/search', async (c) => {
    const { q, agent, thread: threadId, limit } = readQuery(new URL(c.req.url), parameters)
    if (q === undefined || q.trim() === '') throw bad('q', 'the words to search for')
    const { records } = runtime.store
    if (records === undefined) {
      throw new MillraceError('not-found', 'Runs in memory cannot be searched. Keep them in a data folder.')
    }
    const most = limit === undefined ? undefined : wholeNumber(limit, 'limit', 1, 1000)
    return Response.json({ hits: await records.search({ q, ...omitUndefined({ agent, threadId, limit: most }) }) })
  })
}
