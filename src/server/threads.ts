/** `/api/threads/:id`: a conversation, as the runs that it consists of and as the messages that they come to. */
import { MillraceError } from '../part/error.ts'
import { conversation } from '../run/history.ts'
import type { HandlerContext } from './handler.ts'
import { readQuery } from './query.ts'
import { toPage } from './runs.ts'

/**
 * `{id, runs, messages}`: the runs newest first, a page of them; of the messages all, as the newest run has them. Where the
 * client keeps the history, that is what it sent last and what was said to that.
 */
export async function showThread({ runtime: { store } }: HandlerContext, id: string, url: URL): Promise<Response> {
  const page = toPage(readQuery(url, { limit: 20, before: 256 }))
  const [newest] = await store.runs.list({ threadId: id, limit: 1 })
  if (newest === undefined) throw new MillraceError('unknown-thread', `There is no thread ${id}.`)
  const [runs, messages] = await Promise.all([
    store.runs.list({ ...page, threadId: id }),
    conversation(store, id, newest.id),
  ])
  return Response.json({ id, runs, messages })
}
