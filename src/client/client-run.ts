/** One run as its client holds it: its entries to iterate over, its text and its result to wait for, and the tools it has. */
import type { Entry, EntryOf } from '../part/entry.ts'
import { messageOf, type ErrorValue } from '../part/error.ts'
import { leavable } from '../part/leavable.ts'
import type { Outcome, PartType } from '../part/part.ts'
import { isUnder } from '../part/path.ts'
import type { Usage } from '../part/usage.ts'
import type { ClientAnswer, MillraceClient, ShownRun } from './client.ts'
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

/** How a run ended, or what it waits for. `outcome` is `completed`, `failed`, `aborted` …; a failure is no rejection. */
export interface ClientResult {
  id: string
  /** `suspended`: it goes on once one of `requests` is answered; ask for the `result` again then. */
  outcome: Outcome | 'suspended'
  /** The open requests of a suspended run: approvals, and tools that do not run here. */
  requests?: EntryOf<'request'>[]
  /** The answer; of a suspended run, as far as it has come. */
  text: string
  /** The agent's value, when it has one. */
  output?: unknown
  usage: Usage
  /** USD, when all prices are known. */
  cost?: number
  error?: ErrorValue
}

/** Every iteration reads the run from its start; leaving one, at once also while it waits, leaves the run as it is. */
export interface ClientRun extends AsyncIterable<Entry> {
  /** Rejects when the run cannot be started. */
  readonly id: Promise<string>
  readonly threadId: Promise<string>
  /** The answer's text, once the `result` is there. */
  readonly text: Promise<string>
  /** The answer's text as it comes. */
  readonly textStream: AsyncIterable<string>
  /**
   * Resolves when the run has ended, or when it is suspended for an answer that no tool here gives; asked again then, it
   * waits anew. Rejects only when the server cannot be asked.
   */
  readonly result: Promise<ClientResult>
  /** Stops the run on the server. */
  abort(): Promise<void>
  /** Answers an open request (an entry of type `request`) of this run. */
  answer(requestId: string, answer: ClientAnswer): Promise<{ duplicate: boolean }>
}

function toResult({ id, status, text, output, usage, cost, error, requests }: ShownRun): ClientResult {
  return {
    id,
    outcome: status as ClientResult['outcome'],
    text,
    usage,
    ...(status === 'suspended' ? { requests } : undefined),
    ...(output === undefined ? undefined : { output }),
    ...(cost === undefined ? undefined : { cost }),
    ...(error === undefined ? undefined : { error }),
  }
}

export function startRun(connection: Connection, client: MillraceClient, options: RunOptions): ClientRun {
  const { agent, messages, tools = [], threadId, input = {}, idempotencyKey, signal } = options
  const begun = begin()
  const id = begun.then((run) => run.id)
  const thread = begun.then((run) => run.threadId)
  const own = new Map(tools.flatMap((tool) => (tool.execute === undefined ? [] : [[tool.name, tool] as const])))
  /** Requests that a tool here is about to answer. */
  const answering = new Set<string>()
  /** Told, and then done with, when the run is suspended; told for good when it has ended. */
  let asked: PromiseWithResolvers<ClientResult> | undefined
  /** The tools here are listened for. */
  let serving = false
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
    if (asked !== undefined) return asked.promise
    const { promise } = open()
    if (own.size === 0 || !serving) void watch()
    // What was suspended a moment ago may be so still, and then says nothing.
    else void told().catch((error: unknown) => open().reject(error))
    return promise
  }

  function open(): PromiseWithResolvers<ClientResult> {
    if (asked === undefined) {
      asked = Promise.withResolvers()
      void asked.promise.catch(() => undefined)
    }
    return asked
  }

  /** One connection for both: how the run stands, and what the tools here are asked. With tools it lasts to the run's end. */
  async function watch(): Promise<void> {
    serving = own.size > 0
    try {
      const run = await id
      const types: PartType[] = own.size === 0 ? ['suspend'] : ['suspend', 'request']
      for await (const entry of client.follow(run, 0, { types })) {
        if (entry.type === 'request' && entry.kind === 'tool' && own.has(entry.toolName)) void call(run, entry)
        else if (entry.type === 'suspend' && (await told()) && own.size === 0) return
      }
      open().resolve(toResult(await client.show(run)))
      signal?.removeEventListener('abort', stop)
    } catch (error) {
      open().reject(error)
    }
  }

  /** Whether the run is suspended for what nobody here is about to give; then whoever waits for it knows. */
  async function told(): Promise<boolean> {
    const shown = await client.show(await id)
    if (shown.status !== 'suspended' || shown.requests.some(({ requestId }) => answering.has(requestId))) return false
    asked?.resolve(toResult(shown))
    asked = undefined
    return true
  }

  /** Another page may have answered before: then its answer counts, and ours is refused. */
  async function call(
    run: string,
    { requestId, toolName, toolCallId, input: given }: EntryOf<'request'>,
  ): Promise<void> {
    answering.add(requestId)
    try {
      // A run that was joined may have asked, and been answered, before.
      const isOpen = async () => (await client.show(run)).requests.some((each) => each.requestId === requestId)
      if (idempotencyKey !== undefined && !(await isOpen().catch(() => true))) return
      let answer: ClientAnswer
      try {
        answer = { output: (await own.get(toolName)!.execute!(given, { runId: run, toolCallId })) ?? null }
      } catch (error) {
        answer = { output: messageOf(error), isError: true }
      }
      await client.answer(run, requestId, answer)
    } catch {
      // It cannot be answered from here: the run waits for somebody who can.
      answering.delete(requestId)
      await told().catch(() => undefined)
    } finally {
      answering.delete(requestId)
    }
  }

  function entries(): AsyncGenerator<Entry, void, void> {
    return leavable(async function* (signal) {
      yield* client.follow(await id, 0, { signal })
    })
  }

  function words(): AsyncGenerator<string, void, void> {
    return leavable(async function* (signal) {
      const answers: string[] = []
      for await (const entry of client.follow(await id, 0, { types: ['step-start', 'text-delta'], signal })) {
        if (entry.type === 'step-start' && entry.answer) answers.push(entry.step)
        else if (entry.type === 'text-delta' && answers.some((path) => isUnder(entry.step, path))) yield entry.delta
      }
    })
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
