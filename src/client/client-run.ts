/** One run as its client holds it: its entries to iterate over, its text and its result to wait for, and the tools it has. */
import type { Entry, EntryOf } from '../part/entry.ts'
import { messageOf, type ErrorValue } from '../part/error.ts'
import type { Outcome } from '../part/part.ts'
import { isUnder } from '../part/path.ts'
import type { Usage } from '../part/usage.ts'
import type { ClientAnswer, MillraceClient } from './client.ts'
import { request, type Connection } from './request.ts'

/** What a run is asked. */
export interface RunOptions {
  /** Its id or an alias. */
  agent: string
  /** `{role, content}`, the AI SDK's `UIMessage`s, or one user message as text. With a `threadId`: only what is new. */
  messages?: string | readonly object[]
  /** Tools that run here. */
  tools?: readonly ClientTool[]
  /** The conversation that this is a turn of; runs of one thread run one after the other. */
  threadId?: string
  /** Further keys of `$input`. */
  input?: Record<string, unknown>
  /** The same key again is the same run. */
  idempotencyKey?: string
  /** Stops the run. */
  signal?: AbortSignal
}

/** A tool that runs where the client does. */
export interface ClientTool {
  name: string
  description?: string
  /** JSON Schema of the arguments. Default: no arguments. */
  parameters?: Record<string, unknown>
  /**
   * Called here when the model calls the tool; what it gives goes back to the model, a throw as an error. Without it the
   * run waits for `answer`.
   */
  execute?(input: any, context: { runId: string; toolCallId: string }): unknown
}

/** How a run ended. `outcome` is `completed`, `failed`, `aborted` …; a failure is no rejection. */
export interface ClientResult {
  id: string
  outcome: Outcome
  /** The answer. */
  text: string
  /** The agent's value, when it has one. */
  output?: unknown
  usage: Usage
  /** USD, when all prices are known. */
  cost?: number
  error?: ErrorValue
}

/** Every iteration reads the run from its start; leaving one leaves the run as it is. */
export interface ClientRun extends AsyncIterable<Entry> {
  /** Rejects when the run cannot be started. */
  readonly id: Promise<string>
  readonly threadId: Promise<string>
  /** The answer's text, once the run has ended. */
  readonly text: Promise<string>
  /** The answer's text as it comes. */
  readonly textStream: AsyncIterable<string>
  /** Rejects only when the server cannot be asked. Waits for a suspended run until it goes on. */
  readonly result: Promise<ClientResult>
  /** Stops the run on the server. */
  abort(): Promise<void>
  /** Answers an open request (an entry of type `request`) of this run. */
  answer(requestId: string, answer: ClientAnswer): Promise<{ duplicate: boolean }>
}

export function startRun(connection: Connection, client: MillraceClient, options: RunOptions): ClientRun {
  const { agent, messages, tools = [], threadId, input = {}, idempotencyKey, signal } = options
  const begun = begin()
  const id = begun.then((run) => run.id)
  const thread = begun.then((run) => run.threadId)
  const own = new Map(tools.flatMap((tool) => (tool.execute === undefined ? [] : [[tool.name, tool] as const])))
  let ending: Promise<ClientResult> | undefined
  // Whoever wants to know of a failure awaits something of the run.
  for (const promise of [id, thread]) void promise.catch(() => undefined)
  if (own.size > 0) void result()
  if (signal?.aborted) stop()
  else signal?.addEventListener('abort', stop, { once: true })

  async function begin(): Promise<{ id: string; threadId: string }> {
    const list = typeof messages === 'string' ? [{ role: 'user', content: messages }] : messages
    const offered = tools.map(({ name, description, parameters }) => ({ name, description, parameters }))
    const body = {
      agentId: agent,
      threadId,
      input: { ...input, messages: list, ...(offered.length === 0 ? undefined : { tools: offered }) },
    }
    const headers: Record<string, string> = idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }
    const response = await request(connection, '/api/runs', { method: 'POST', body, headers })
    return (await response.json()) as { id: string; threadId: string }
  }

  function stop(): void {
    void abort().catch(() => undefined)
  }

  async function abort(): Promise<void> {
    await client.stop(await id)
  }

  function result(): Promise<ClientResult> {
    if (ending === undefined) {
      ending = wait()
      void ending.catch(() => undefined)
    }
    return ending
  }

  async function wait(): Promise<ClientResult> {
    const run = await id
    try {
      for await (const entry of client.follow(run, 0, { types: own.size === 0 ? [] : ['request', 'response'] })) {
        if (entry.type === 'request' && entry.kind === 'tool' && own.has(entry.toolName)) void call(run, entry)
      }
    } finally {
      signal?.removeEventListener('abort', stop)
    }
    const { status, text, output, usage, cost, error } = await client.show(run)
    return {
      id: run,
      outcome: status as Outcome,
      text,
      usage,
      ...(output === undefined ? undefined : { output }),
      ...(cost === undefined ? undefined : { cost }),
      ...(error === undefined ? undefined : { error }),
    }
  }

  /** Another page may have answered before: then its answer counts, and ours is refused. */
  async function call(
    run: string,
    { requestId, toolName, toolCallId, input: given }: EntryOf<'request'>,
  ): Promise<void> {
    // A run that was joined may have asked, and been answered, before.
    const isOpen = async () => (await client.show(run)).requests.some((each) => each.requestId === requestId)
    if (idempotencyKey !== undefined && !(await isOpen().catch(() => true))) return
    let answer: ClientAnswer
    try {
      answer = { output: (await own.get(toolName)!.execute!(given, { runId: run, toolCallId })) ?? null }
    } catch (error) {
      answer = { output: messageOf(error), isError: true }
    }
    await client.answer(run, requestId, answer).catch(() => undefined)
  }

  async function* entries(): AsyncGenerator<Entry> {
    yield* client.follow(await id)
  }

  async function* words(): AsyncGenerator<string> {
    const answers: string[] = []
    for await (const entry of client.follow(await id, 0, { types: ['step-start', 'text-delta'] })) {
      if (entry.type === 'step-start' && entry.answer) answers.push(entry.step)
      else if (entry.type === 'text-delta' && answers.some((path) => isUnder(entry.step, path))) yield entry.delta
    }
  }

  return {
    id,
    threadId: thread,
    [Symbol.asyncIterator]: entries,
    get textStream() {
      return { [Symbol.asyncIterator]: words }
    },
    get text() {
      const text = result().then((ended) => ended.text)
      void text.catch(() => undefined)
      return text
    },
    get result() {
      return result()
    },
    abort,
    answer: async (requestId, answer) => client.answer(await id, requestId, answer),
  }
}
