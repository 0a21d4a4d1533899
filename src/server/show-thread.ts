/** A conversation, whole or in part: its row, its runs and its messages. */
import { omitUndefined } from '../part/omit-undefined.ts'
import { MillraceError } from '../part/error.ts'
import type { RunQuery, RunRow } from '../part/log.ts'
import type { Message } from '../part/message.ts'
import type { OwnerFilter } from '../part/principal.ts'
import type { ThreadRow, ThreadRule } from '../part/thread.ts'
import { readThread, type ThreadSource, threadUsage } from '../record/threads/list-threads.ts'
import type { UsedByModel } from '../fold/usage-fold.ts'
import { conversation, conversationPage } from '../runtime/conversation.ts'

/** A conversation with its runs and its messages. */
export interface ShownThread extends ThreadRow {
  /** Over all of its runs. */
  usageByModel: UsedByModel[]
  /** A page, newest first. */
  runs: RunRow[]
  /** Oldest first, as of the newest run. If the client keeps the history: its last messages and the answer. */
  messages: Message[]
  /** Set if there are earlier messages: pass it to get them. */
  messagesBefore?: string
}

export interface ShowOptions {
  /** Which runs. */
  page?: Pick<RunQuery, 'limit' | 'before'>
  /** Approximate number of messages; default all. */
  messages?: number | undefined
  messagesBefore?: string | undefined
  /** Whose runs. Those of others are unknown, also as a place to go on from. Default: everybody's. */
  filter?: OwnerFilter
}

/** Throws `unknown-thread`, and `bad-input` for a `messagesBefore` that is not a position in the thread. */
export async function showThread(
  store: ThreadSource,
  id: string,
  rule: ThreadRule,
  { page = {}, messages: size, messagesBefore, filter = {} }: ShowOptions = {},
): Promise<ShownThread> {
  const row = await readThread(store, id, rule, filter)
  if (row === undefined) throw new MillraceError('unknown-thread', `There is no thread ${id}.`)
  const [usageByModel, runs, said] = await Promise.all([
    threadUsage(store, id, filter),
    store.runs.list({ ...page, threadId: id, ...filter }),
    size === undefined && messagesBefore === undefined
      ? conversation(store, id, row.lastRunId)
      : conversationPage(store, id, row.lastRunId, { limit: size ?? 50, before: messagesBefore }),
  ])
  const before = 'before' in said ? said.before : undefined
  return { ...row, usageByModel, runs, messages: said.messages, ...omitUndefined({ messagesBefore: before }) }
}
