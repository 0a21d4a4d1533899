/** `/api/threads…`: conversations: the list, and the runs and messages of each. */
import { MillraceError } from '../../part/error.ts'
import { omitUndefined } from '../../part/omit-undefined.ts'
import { threadStatuses, type ThreadQuery } from '../../part/thread.ts'
import { didYouMean } from '../../pipeline/nearest.ts'
import { listThreads } from '../../record/threads/list-threads.ts'
import type { RequestContext } from '../handler-context.ts'
import type { Routes } from '../http/routes.ts'
import { bad, readQuery, wholeNumber } from '../http/query.ts'
import { showThread } from '../show-thread.ts'
import { shownRow, shownThread, threadNamed } from './existing-thread.ts'
import { toPage } from './runs.ts'

export function mountThreads(routes: Routes): void {
  routes.get('/api/threads', 'runs.read', (context, { url }) => getThreads(context, new URL(url)))
  routes.get('/api/threads/:id', 'runs.read', (context, request) =>
    getThread(context, request.param('id'), new URL(request.url)),
  )
}

const listParameters = { status: 40, agent: 256, user: 256, q: 200, limit: 20, before: 2048 }

async function getThreads(context: RequestContext, url: URL): Promise<Response> {
  const { runtime } = context.server
  const { status: word, q, limit, before, user, ...rest } = readQuery(url, listParameters)
  const status = threadStatuses.find((each) => each === word)
  if (word !== undefined && status === undefined) {
    throw bad('status', `one of ${threadStatuses.join(', ')}${didYouMean(word, threadStatuses)}`)
  }
  if (q?.trim() === '') throw bad('q', 'words to search for')
  const most = limit === undefined ? undefined : wholeNumber(limit, 'limit', 1, 1000)
  const page = { before: before === undefined ? undefined : await threadNamed(context, before), limit: most }
  const query: ThreadQuery = omitUndefined({ ...rest, q, status, owner: user, ...page, ...context.filter })
  const threads = await listThreads(runtime.store, query, runtime.threadRule())
  return Response.json({ threads: threads.map((row) => ({ ...row, id: shownThread(context, row.id) })) })
}

const threadParameters = { limit: 20, before: 256, messages: 20, messagesBefore: 300 }

async function getThread(context: RequestContext, name: string, url: URL): Promise<Response> {
  const { runtime } = context.server
  const { messages: most, messagesBefore, ...rest } = readQuery(url, threadParameters)
  const options = { page: toPage(rest), messagesBefore, filter: context.filter }
  const messages = most === undefined ? undefined : wholeNumber(most, 'messages', 1, 1000)
  const id = await threadNamed(context, name)
  // All runs of a thread have one owner.
  const [last] = await context.runtime.store.runs.list({ threadId: id, limit: 1 })
  if (last === undefined) throw new MillraceError('unknown-thread', `There is no thread ${name}.`)
  const shown = await showThread(runtime.store, id, runtime.threadRule(), { ...options, messages })
  const runs = shown.runs.map((row) => shownRow(context, row))
  return Response.json({ ...shown, id: shownThread(context, shown.id), runs })
}
