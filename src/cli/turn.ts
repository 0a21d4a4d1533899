/** One message and its answer, for `run` and `chat`: starts a run, shows it, and stops it on Ctrl-C. */
import type { CommandContext } from './context.ts'
import { MillraceError } from '../part/error.ts'
import type { AgentConnection } from './connection.ts'
import { followRun, type Followed, type FollowOptions } from './follow-run.ts'
import { onEnding, type Ending } from './stop-signals.ts'

export interface Turn extends FollowOptions {
  agent: string
  input: Record<string, unknown>
  threadId?: string | undefined
  /** Called before any part of the answer is shown. */
  onStart?: (id: string) => void
}

export interface Turned {
  id: string
  followed: Followed
  /** Set if a signal ended it. */
  ending: Ending | undefined
}

export async function runTurn(
  context: CommandContext,
  connection: AgentConnection,
  turn: Turn,
): Promise<Turned & { threadId: string }> {
  const { agent, input, threadId, onStart, ...follow } = turn
  const { messages, ...rest } = input
  const options = { agent, input: rest, messages: messages as object[] }
  let thread = threadId
  const turned = await follows(context, connection, follow, async () => {
    const run = connection.client.run(threadId === undefined ? options : { ...options, threadId })
    const id = await run.id
    thread = await run.threadId
    onStart?.(id)
    return id
  })
  return { ...turned, threadId: thread! }
}

/** Error codes for a server that has stopped or is stopping. */
const gone: ReadonlySet<string> = new Set(['connection-lost', 'closing'])

/** Calls `begin`, which returns the id of a run, then shows that run. Ctrl-C stops it, even during `begin`. */
export async function follows(
  context: CommandContext,
  connection: AgentConnection,
  options: FollowOptions,
  begin: () => Promise<string>,
): Promise<Turned> {
  const { client, url } = connection
  let ending: Ending | undefined
  let stop: (ending: Ending) => Promise<void> = async () => undefined
  const off = onEnding(context, (how) => {
    ending = how
    void stop(how).catch(() => undefined)
  })
  try {
    const id = await begin()
    stop = ({ reason }) => client.stop(id, reason)
    if (ending !== undefined) await stop(ending)
    const followed = await followRun(context, client, id, options).catch((error: unknown) => {
      if (url === undefined || !(error instanceof MillraceError) || !gone.has(error.code)) throw error
      throw lostServer(url, id, connection.flags, error)
    })
    return { id, followed, ending }
  } finally {
    off()
  }
}

function lostServer(url: string, run: string, where: string, cause: unknown): MillraceError {
  const message = `Lost the connection to the server at ${url}. Check on the run with: millrace show ${run}${where}`
  return new MillraceError('server', message, { cause })
}
