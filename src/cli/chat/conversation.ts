/**
 * The conversation of one thread. A connection is opened for each message: an idle chat does not keep a server from starting,
 * and uses a server that was started meanwhile. The log has the earlier messages.
 */
import type { CommandContext } from '../context.ts'
import { MillraceError } from '../../part/error.ts'
import type { Message } from '../../part/message.ts'
import { didYouMean, listNames } from '../../pipeline/nearest.ts'
import { textWire } from '../../wire/text/text.ts'
import { createAsk, answerLines, readThread, waitingRun, warnOfEnd } from '../run/requests.ts'
import type { AgentConnection, AgentList } from '../connection.ts'
import { openAgents, type AgentFlags } from '../connection/agents.ts'
import { withFiles } from '../run/input.ts'
import { printable } from '../terminal/output.ts'
import { reportRun, runTurn, followStarted } from '../run/follow.ts'
import { parseChatCommand } from './input.ts'
import { readTypedLines, type TypedLines } from './typed-lines.ts'
import type { Ending } from '../process-events.ts'

export interface ConversationOptions extends AgentFlags {
  /** Default: the one that spoke last in the thread, else `assistant`, else the first. */
  agent: string | undefined
  isFile: boolean
  thread?: string
  yes?: boolean
}

/** Why an answer did not end normally. */
export interface Outcome {
  ending?: Ending | undefined
  /** The run waits for something that cannot be answered here. */
  isWaiting: boolean
}

export interface Conversation {
  readonly agent: string
  readonly agents: AgentList['agents']
  /** Undefined before the first message. */
  readonly thread: string | undefined
  /** The server in use: ` on http://…`; empty if there is none. */
  readonly at: string
  /** Flags for commands about its runs. */
  readonly flags: string
  readonly files: readonly string[]
  /** Whether any run of this chat failed. */
  readonly hasFailed: boolean
  /** Loads the thread of `--thread` and the open requests of its last run. Runs once; `say` calls it if needed. */
  resume(): Promise<Outcome>
  /** Sends a message and shows the answer. */
  say(text: string): Promise<Outcome>
  /** Starts a new thread with an agent. Throws `usage` if there is no such agent. */
  begin(agent: string): void
  /** Attaches a file to the next message. Throws `usage` if it cannot be sent. */
  attach(path: string): void
  /** Reloads the list of agents. */
  refresh(): Promise<void>
  close(): Promise<void>
}

export async function createConversation(
  context: CommandContext,
  { isFile, yes, ...options }: ConversationOptions,
): Promise<Conversation> {
  let { thread } = options
  let isResumed = thread === undefined
  let files: string[] = []
  let hasFailed = false
  let agents: AgentList['agents'] = []
  let url: string | undefined
  let flags = ''
  let noticed: string | undefined
  /** The messages so far, for agents with `history: client`. For others, the server keeps them. */
  let history: Message[] = []
  /** A connection whose runs are only in memory stays open: they would be lost with it. */
  let inMemory: AgentConnection | undefined

  async function withConnection<T>(use: (connection: AgentConnection) => Promise<T>): Promise<T> {
    const connection = inMemory ?? (await openAgents(context, options, isFile))
    if (!connection.isDurable) inMemory = connection
    ;({ url, flags } = connection)
    if (connection.notice !== noticed && connection.notice !== undefined)
      context.stderr.write(`${printable(connection.notice)}\n`)
    noticed = connection.notice
    try {
      return await use(connection)
    } finally {
      if (connection.isDurable) await connection.close()
    }
  }

  async function refresh(): Promise<void> {
    agents = await withConnection(async (connection) => (await connection.agents()).agents)
  }

  function named(name: string): string {
    if (agents.some(({ id, aliases = [] }) => [id, ...aliases].includes(name))) return name
    const ids = agents.map(({ id }) => id)
    const known = agents.flatMap(({ id, aliases = [] }) => [id, ...aliases])
    const message = `There is no agent "${name}"${didYouMean(name, known)}. Known agents: ${listNames(ids)}.`
    throw new MillraceError('usage', message)
  }

  function keepsHistory(): boolean {
    return agents.find(({ id, aliases = [] }) => [id, ...aliases].includes(agent))?.history === 'client'
  }

  async function resume(connection: AgentConnection): Promise<Outcome> {
    if (isResumed) return { isWaiting: false }
    isResumed = true
    const { messages, hasFailed: failed, ...outcome } = await resumeThread(context, connection, thread!, yes)
    if (keepsHistory()) history = messages
    hasFailed ||= failed
    return outcome
  }

  /** Undefined when the thread is new, or its agent is gone. */
  async function lastAgent(id: string): Promise<string | undefined> {
    const name = (await withConnection((connection) => readThread(connection, id)))?.runs[0]?.agent
    return agents.some((each) => each.id === name) ? name : undefined
  }

  await refresh()
  const first = agents.find(({ id }) => id === 'assistant') ?? agents[0]
  if (options.agent === undefined && first === undefined)
    throw new MillraceError('usage', 'There are no agents to chat with.')
  const spoken = options.agent === undefined && thread !== undefined ? await lastAgent(thread) : undefined
  let agent = options.agent ?? spoken ?? first!.id

  return {
    get agent() {
      return agent
    },
    get agents() {
      return agents
    },
    get thread() {
      return thread
    },
    get at() {
      return url === undefined ? '' : ` on ${url}`
    },
    get flags() {
      return flags
    },
    get files() {
      return files
    },
    get hasFailed() {
      return hasFailed
    },
    refresh,
    begin(name) {
      agent = named(name)
      thread = undefined
      history = []
      isResumed = true
      files = []
    },
    attach(path) {
      // Read now, to report mistakes at once.
      withFiles(context, '', [...files, path])
      files = [...files, path]
    },
    resume: () => (isResumed ? Promise.resolve({ isWaiting: false }) : withConnection(resume)),
    say: (text) =>
      withConnection(async (connection) => {
        const before = await resume(connection)
        if (before.ending !== undefined || before.isWaiting) return before
        const message = { role: 'user', content: withFiles(context, text, files) } as Message
        const input = { messages: [...history, message] }
        const ask = createAsk(context, { yes, url: connection.url })
        const { client, flags: where } = connection
        let run = ''
        let typed: TypedLines | undefined
        let dropped: readonly string[] = []
        const send = async (line: string) => {
          const command = parseChatCommand(line)
          if (command.type !== 'message') throw new MillraceError('usage', 'Commands wait for the prompt.')
          return client.tell(run, { content: command.text })
        }
        const watch = (id: string) => {
          run = id
          if (context.stdin.isTTY) typed ??= readTypedLines(context, send)
        }
        const onAsking = (isAsking: boolean) => (isAsking ? typed?.pause() : typed?.resume())
        const shown = { wire: textWire, ask, showsTools: true, onAsking }
        const note = async ({ id }: { id: string }, ...asked: Message[]) => {
          if (keepsHistory()) history = [...history, ...asked, ...(await client.show(id)).messages]
        }
        try {
          const result = await runTurn(context, connection, {
            agent,
            input,
            threadId: thread,
            ...shown,
            onStart: watch,
          })
          files = []
          thread = result.threadId
          ;({ dropped } = result.followed)
          await note(result, message)
          let last: Omit<typeof result, 'threadId'> = result
          let code = reportRun(context, { ...last, where, isQuiet: true })
          // Lines that came too late for the run begin the next ones.
          const due = [...result.followed.nextRuns]
          for (const next of due) {
            watch(next)
            last = await followStarted(context, connection, shown, () => Promise.resolve(next))
            due.push(...last.followed.nextRuns)
            dropped = [...dropped, ...last.followed.dropped]
            const { input: said } = await client.show(next)
            await note(last, ...(said['messages'] as Message[]))
            code ||= reportRun(context, { ...last, where, isQuiet: true })
          }
          hasFailed ||= code !== 0
          return { ending: last.ending, isWaiting: last.followed.waiting.length > 0 }
        } finally {
          await typed?.close(dropped)
        }
      }),
    async close() {
      await inMemory?.close()
    },
  }
}

/** `chat --thread`: loads the thread. If its last run waits for an answer, asks for it first, or prints a warning. */
interface Resumed {
  messages: Message[]
  ending?: Ending | undefined
  /** The run was answered and is suspended again, for something that cannot be answered here. */
  isWaiting: boolean
  hasFailed: boolean
}

async function resumeThread(
  context: CommandContext,
  connection: AgentConnection,
  threadId: string,
  yes: boolean | undefined,
): Promise<Resumed> {
  const isTerminal = context.stdin.isTTY === true
  const thread = await readThread(connection, threadId)
  if (isTerminal)
    write(context, thread === undefined ? `${threadId} is a new conversation.` : `Continuing ${threadId}.`)
  const messages = thread?.messages ?? []
  const run = await waitingRun(connection, thread)
  if (run === undefined) return { messages, isWaiting: false, hasFailed: false }

  const { id, lastSeq, requests } = run
  const ask = createAsk(context, { yes, leaves: true, url: connection.url })
  // Another command may be asking the same questions, and would not notice an answer given here.
  const isElsewhere = connection.isShared === true && run.protocol === 'cli'
  if (isElsewhere || !requests.every(ask.canAnswer)) {
    const lines = isTerminal ? ['To answer it first:', ...answerLines(id, requests, connection.flags)] : []
    warnOfEnd(context, run, ...lines)
    return { messages, isWaiting: false, hasFailed: false }
  }
  if (isTerminal) write(context, `${id} waits for your answer (Ctrl-C ends the run):`)
  const options = { wire: textWire, ask, after: lastSeq, asksOpen: true, showsTools: true }
  const result = await followStarted(context, connection, options, async () => id)
  const code = reportRun(context, { ...result, where: connection.flags, isQuiet: true })
  return {
    messages: (await readThread(connection, threadId))?.messages ?? [],
    ending: result.ending,
    isWaiting: result.followed.waiting.length > 0,
    hasFailed: code !== 0,
  }
}

function write(context: CommandContext, line: string): void {
  context.stderr.write(`${printable(line)}\n`)
}
