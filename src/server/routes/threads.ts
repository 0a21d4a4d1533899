/** `/api/threads/:id`: a conversation, as its runs and as its messages. */
import { MillraceError } from '../../part/error.ts'
import { conversation } from '../../runtime/conversation.ts'
import type { HandlerContext } from '../handler.ts'
import { readQuery } from '../http/query.ts'
import { toPage } from './runs.ts'

/**
 * `{id, runs, messages}`: a page of runs, newest first, and all messages, as the newest run has them. If the client keeps the
 * history, these are the messages that it sent last and the answer to them.
 */
export async function showThread({ runtime: { store } }: HandlerContext, id: string, url: URL): Promise<Response> {
  const page = toPage(readQuery(url, { limit: 20, before: 256 }))
  const [newest] = await store.runs.list({ threadId: id, limit: 1 })
  if (newest === undefined) throw new MillraceError('unknown-thread', `There is no thread ${id}.`)
  const [runs, { messages }] = await Promise.all([
    store.runs.list({ ...page, threadId: id }),
    conversation(store, id, newest.id),
  ])
  return Response.json({ id, runs, messages })
}
