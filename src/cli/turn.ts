/** One message and its answer: starts a run, shows it, and stops it on Ctrl-C. What `run` and `chat` have in common. */
import { MillraceError } from '../part/error.ts'
import type { Backend } from './backend.ts'
import { followRun, type Followed, type FollowOptions } from './follow-run.ts'
import { onEnding, type Ending } from './stop-signals.ts'

export interface Turn extends FollowOptions {
  agent: string
  input: Record<string, unknown>
  threadId?: string | undefined
  /** Called before anything of the answer is shown. */
  onStart?: (id: string) => void
}

export interface Turned {
  id: string
  followed: Followed
  /** How it was ended from outside. */
  ending: Ending | undefined
}

export async function takeTurn(backend: Backend, turn: Turn): Promise<Turned & { threadId: string }> {
  const { agent, input, threadId, onStart, ...follow } = turn
  const { messages, ...rest } = input
  const options = { agent, input: rest, messages: messages as object[] }
  let thread = threadId
  const turned = await follows(backend, follow, async () => {
    const run = backend.client.run(threadId === undefined ? options : { ...options, threadId })
    const id = await run.id
    thread = await run.threadId
    onStart?.(id)
    return id
  })
  return { ...turned, threadId: thread! }
}

/** What is said when a server is gone, or about to be. */
const gone: ReadonlySet<string> = new Set(['connection-lost', 'closing'])

/** Shows a run that is there, behind what `begin` does to it. Ctrl-C stops it, also while it begins. */
export async function follows(backend: Backend, options: FollowOptions, begin: () => Promise<string>): Promise<Turned> {
  const { client, url } = backend
  let ending: Ending | undefined
  let stop: (ending: Ending) => Promise<void> = async () => undefined
  const off = onEnding((how) => {
    ending = how
    void stop(how).catch(() => undefined)
  })
  try {
    const id = await begin()
    stop = ({ reason }) => client.stop(id, reason)
    if (ending !== undefined) await stop(ending)
    const followed = await followRun(client, id, options).catch((error: unknown) => {
      if (url === undefined || !(error instanceof MillraceError) || !gone.has(error.code)) throw error
      throw lostServer(url, id, backend.where, error)
    })
    return { id, followed, ending }
  } finally {
    off()
  }
}

function lostServer(url: string, run: string, where: string, cause: unknown): MillraceError {
  const message = `The connection to the server at ${url} was lost. See what became of the run: millrace show ${run}${where}`
  return new MillraceError('server', message, { cause })
}
