/** `/api/threads…`: conversations, as rows of a list, as their runs and as their messages. */
import type { Hono } from 'hono'
import { compact } from '../../part/compact.ts'
import { MillraceError } from '../../part/error.ts'
import { threadStatuses, type ThreadQuery } from '../../part/thread.ts'
import { didYouMean } from '../../pipeline/nearest.ts'
import { listThreads, readThread } from '../../record/threads/list-threads.ts'
import { conversation } from '../../runtime/conversation.ts'
import { conversationPage } from '../../runtime/conversation-page.ts'
import type { HandlerContext } from '../handler.ts'
import { bad, readQuery, wholeNumber } from '../http/query.ts'
import { toPage } from './runs.ts'

export function mountThreads(app: Hono, context: HandlerContext): void {
  app.get('/api/threads', (c) => getThreads(context, new URL(c.req.url)))
  app.get('/api/threads/:id', (c) => showThread(context, c.req.param('id'), new URL(c.req.url)))
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
  const query: ThreadQuery = compact({ ...rest, q, status, limit: most })
  return Response.json({ threads: await listThreads(runtime.store, query, runtime.threadRule()) })
}

const threadParameters = { limit: 20, before: 256, messages: 20, messagesBefore: 300 }

/**
 * The row of the thread, with a page of `runs`, newest first, and its `messages` as the newest run has them: all, or with the parameter
 * `messages` about so many, the newest or those before a place. If the client keeps the history, these are what it sent last and the answer.
 */
async function showThread({ runtime }: HandlerContext, id: string, url: URL): Promise<Response> {
  const { store } = runtime
  const { messages: most, messagesBefore, ...rest } = readQuery(url, threadParameters)
  const page = toPage(rest)
  const size = most === undefined ? undefined : wholeNumber(most, 'messages', 1, 1000)
  const row = await readThread(store, id, runtime.threadRule())
  if (row === undefined) throw new MillraceError('unknown-thread', `There is no thread ${id}.`)
  const [runs, said] = await Promise.all([
    store.runs.list({ ...page, threadId: id }),
    size === undefined && messagesBefore === undefined
      ? conversation(store, id, row.lastRunId)
      : conversationPage(store, id, row.lastRunId, { limit: size ?? 50, before: messagesBefore }),
  ])
  const before = 'before' in said ? said.before : undefined
  return Response.json({ ...row, runs, messages: said.messages, ...compact({ messagesBefore: before }) })
}
