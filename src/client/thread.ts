/**
 * A conversation on the client. The server keeps it; nothing of it is changed. An edit and a regeneration go on after an earlier run:
 * the conversation is then the path to the newest run; the runs after the earlier one stay stored.
 */
import type { RunRow } from '../part/log.ts'
import { messagesOf, type Message } from '../part/message.ts'
import type { ThreadRow, ThreadStatus } from '../part/thread.ts'
import type { ClientRun } from './client-run.ts'
import type { MillraceClient, ShownRun } from './client.ts'
import { getJson, queryOf, request, type ServerAddress } from './request.ts'
import type { RunOptions } from './start-run.ts'

/** Which conversations to list. Conditions are combined with AND. */
export interface ThreadFilter {
  status?: ThreadStatus
  /** It has run in the thread. */
  agent?: string
  /** Words that were said. */
  q?: string
  /** Default 50, at most 1000. */
  limit?: number
  before?: string
}

/** A conversation as `show` returns it: its row, its newest runs, and its messages as the newest run has them. */
export interface ShownThread extends ThreadRow {
  /** Newest first. */
  runs: RunRow[]
  /** Oldest first. */
  messages: Message[]
  /** There are earlier messages: pass it to get them. */
  messagesBefore?: string
}

/** Options of a run in a thread. `agent` is that of the run, unless you name another. */
export type ThreadRunOptions = Omit<RunOptions, 'threadId' | 'previousRunId' | 'agent' | 'messages'> & {
  agent?: string
}

/** A conversation. Get one from `client.thread(id)`. */
export interface ClientThread {
  readonly id: string
  /** Its state. Rejects with `unknown-thread` before its first run. */
  show(page?: { messages?: number; messagesBefore?: string; limit?: number; before?: string }): Promise<ShownThread>
  /** Continues the conversation with new messages. */
  run(options: Omit<RunOptions, 'threadId'>): ClientRun
  /** Replaces the message that started a run. The conversation continues from there. */
  edit(runId: string, messages: Required<RunOptions>['messages'], options?: ThreadRunOptions): Promise<ClientRun>
  /** Asks a run's question again. The conversation goes on from there. */
  regenerate(runId: string, options?: ThreadRunOptions): Promise<ClientRun>
  /** Deletes the conversation with all its runs, which must have ended. */
  delete(): Promise<void>
}

export function createThread(connection: ServerAddress, client: MillraceClient, id: string): ClientThread {
  const path = `/api/threads/${encodeURIComponent(id)}`
  const after = ({ agent, previousRunId }: ShownRun, messages: RunOptions['messages'], options: ThreadRunOptions) =>
    client.run({ agent, ...options, threadId: id, previousRunId: previousRunId ?? null, messages: messages ?? [] })

  return {
    id,
    show: (page = {}) => getJson<ShownThread>(connection, path + queryOf(page)),
    run: (options) => client.run({ ...options, threadId: id }),
    edit: async (runId, messages, options = {}) => after(await client.show(runId), messages, options),
    async regenerate(runId, options = {}) {
      const run = await client.show(runId)
      // Other keys of the input, such as the fields of a form, are those of the question.
      const { messages: _, tools: __, ...input } = run.input
      return after(run, messagesOf(run.input), { ...options, input: { ...input, ...options.input } })
    },
    async delete() {
      await request(connection, path, { method: 'DELETE' })
    },
  }
}
