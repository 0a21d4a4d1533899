/** Which messages a run begins with: what the client says, corrected by what the server knows better. */
import { createRunFold, type RunView } from '../part/fold.ts'
import type { Store } from '../part/log.ts'
import type { Message } from '../part/message.ts'

/** A run as its log tells it, or undefined when there is none. */
export async function readView({ log, runs }: Store, run: string): Promise<RunView | undefined> {
  if ((await runs.get(run)) === undefined) return undefined
  const fold = createRunFold()
  for await (const batch of log.read(run)) for (const entry of batch) fold.apply(entry)
  return fold.view()
}

/**
 * `history: client`: the client's messages in its order, but an assistant message whose id is a run of this thread is
 * replaced by what that run recorded: the client's copy lacks signatures and tool results.
 */
export async function withServerMessages(store: Store, threadId: string, messages: Message[]): Promise<Message[]> {
  const known: Message[] = []
  let replaced: string | undefined
  for (const message of messages) {
    const { id, role } = message
    if (role === 'user' || role === 'system') replaced = undefined
    // One message of the client may have been split in several; what follows without an id of its own belongs to it.
    else if (replaced !== undefined && (id === undefined || id === replaced)) continue
    else if (role === 'assistant' && id !== undefined) {
      const row = await store.runs.get(id)
      const view = row?.threadId === threadId ? await readView(store, id) : undefined
      replaced = view === undefined ? undefined : id
      if (view !== undefined) {
        known.push(...view.messages)
        continue
      }
    }
    known.push(message)
  }
  return known
}

/** `history: server`: the conversation up to and with a run, following the chain of runs before it. */
export async function conversation(store: Store, run: string): Promise<Message[]> {
  const turns: Message[][] = []
  for (let at: string | undefined = run; at !== undefined;) {
    const view: RunView | undefined = await readView(store, at)
    if (view === undefined) break
    const asked = Array.isArray(view.input['messages']) ? (view.input['messages'] as Message[]) : []
    turns.unshift([...asked, ...view.messages])
    at = view.previousRunId
  }
  return turns.flat()
}
