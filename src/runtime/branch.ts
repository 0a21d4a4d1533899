/** A run that continues another run of its thread than the last one: the user has edited a message, or wants another answer. */
import { MillraceError } from '../part/error.ts'
import type { Store } from '../part/log.ts'

export interface Branch {
  agent: string
  /** The server has the conversation. */
  fromServer: boolean
  previousRunId?: string | null | undefined
  threadId?: string | undefined
}

/** The thread that the run belongs to, if it is not one of its own. Throws `bad-input` for a run that is not of this thread. */
export async function threadOfBranch({ runs }: Pick<Store, 'runs'>, branch: Branch): Promise<string | undefined> {
  const { agent, fromServer, previousRunId: previous, threadId } = branch
  if (previous === undefined) return threadId
  if (!fromServer) {
    const cure = 'Leave previousRunId out, and send the messages that the model is to be told.'
    throw bad(`The clients of agent "${agent}" keep its conversations (history: client). ${cure}`)
  }
  if (previous === null) return threadId
  const row = await runs.get(previous)
  if (row === undefined)
    throw bad(`previousRunId names no run: ${previous}. List those of a thread with GET /api/threads/<id>.`)
  if (threadId === undefined || row.threadId === threadId) return row.threadId
  throw bad(`previousRunId must be a run of thread ${threadId}; ${previous} is one of thread ${row.threadId}.`)
}

function bad(message: string): MillraceError {
  return new MillraceError('bad-input', message, { status: 400 })
}
