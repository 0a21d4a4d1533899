/** `GET /api/search`: full-text search in recorded runs. */
import { omitUndefined } from '../../part/omit-undefined.ts'
import { MillraceError } from '../../part/error.ts'
import { bad, readQuery, wholeNumber } from '../http/query.ts'
import type { Routes } from '../http/routes.ts'
import { threadNamed, withShownThread } from './existing-thread.ts'

const parameters = { q: 200, agent: 256, thread: 2048, limit: 20 }

export function mountSearch(routes: Routes): void {
  routes.get('/api/search', 'runs.read', async (context, { url }) => {
    const { runtime } = context
    const { q, agent, thread, limit } = readQuery(new URL(url), parameters)
    if (q === undefined || q.trim() === '') throw bad('q', 'the words to search for')
    const { records } = runtime.store
    if (records === undefined) {
      throw new MillraceError('not-found', 'Runs in memory cannot be searched. Keep them in a data folder.')
    }
    const most = limit === undefined ? undefined : wholeNumber(limit, 'limit', 1, 1000)
    const threadId = thread === undefined ? undefined : await threadNamed(context, thread)
    const hits = await records.search({ q, ...omitUndefined({ agent, threadId, limit: most }) })
    return Response.json({ hits: hits.map((hit) => withShownThread(context, hit)) })
  })
}
