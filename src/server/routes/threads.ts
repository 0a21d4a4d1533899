/** `/api/threads…`: conversations: the list, and the runs and messages of each. */
import type { Hono } from 'hono'
import { omitUndefined } from '../../part/omit-undefined.ts'
import { threadStatuses, type ThreadQuery } from '../../part/thread.ts'
import { didYouMean } from '../../pipeline/nearest.ts'
import { listThreads } from '../../record/threads/list-threads.ts'
import type { HandlerContext } from '../handler-context.ts'
import { bad, readQuery, wholeNumber } from '../http/query.ts'
import { showThread } from '../show-thread.ts'
import { toPage } from './runs.ts'

export function mountThreads(app: Hono, context: HandlerContext): void {
  app.get('/api/threads', (c) => getThreads(context, new URL(c.req.url)))
  app.get('/api/threads/:id', (c) => getThread(context, c.req.param('id'), new URL(c.req.url)))
}

const listParameters = { status: 40, agent: 256, q: 200, limit: 20, before: 256 }

async function getThreads({ runtime }: HandlerContext, url: URL): Promise<Response> {
  const { status: word, q, limit, ...rest } = readQuery(url, listParameters)
  const status = threadStatuses.find((each) => each === word)
  if (word !== undefined && status === undefined) {
    throw bad('status', `one of ${threadStatuses.join(', ')}${didYouMean(word, threadStatuses)}`)
  }
  if (q?.trim() === '') throw bad('q', 'words to search for')
  const most = limit === undefined ? undefined : wholeNumber(limit, 'limit', 1, 1000)
  const query: ThreadQuery = omitUndefined({ ...rest, q, status, limit: most })
  return Response.json({ threads: await listThreads(runtime.store, query, runtime.threadRule()) })
}

const threadParameters = { limit: 20, before: 256, messages: 20, messagesBefore: 300 }

async function getThread({ runtime }: HandlerContext, id: string, url: URL): Promise<Response> {
  const { messages: most, messagesBefore, ...rest } = readQuery(url, threadParameters)
  const options = { page: toPage(rest), messagesBefore }
  const messages = most === undefined ? undefined : wholeNumber(most, 'messages', 1, 1000)
  return Response.json(await showThread(runtime.store, id, runtime.threadRule(), { ...options, messages }))
}
