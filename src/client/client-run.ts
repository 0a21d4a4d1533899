/** A run on the client: iterate over its entries, await its text or result, and execute its client tools. */
import { compact } from '../part/compact.ts'
import type { Entry, EntryOf } from '../part/entry.ts'
import { messageOf, type ErrorValue } from '../part/error.ts'
import { leavable } from '../async/leavable.ts'
import type { Outcome, PartType } from '../part/part.ts'
import { createAnswering } from '../fold/answering.ts'
import type { Usage } from '../part/usage.ts'
import type { ClientAnswer, MillraceClient, ShownRun } from './client.ts'
import { request, type Connection } from './request.ts'

/** Options of a run. */
export interface RunOptions {
  /** The agent's id or an alias. */
  agent: string
  /** `{role, content}`, the AI SDK's `UIMessage`s, or one user message as text. With a `threadId`, send only the new ones. */
  messages?: string | readonly object[]
  /** Tools that run in the client. */
  tools?: readonly ClientTool[]
  /** The conversation to continue. Runs of one thread execute one after the other. */
  threadId?: string
  /** Additional keys of `$input`. */
  input?: Record<string, unknown>
  /** Requests with the same key return the same run. */
  idempotencyKey?: string
  /** Aborting it stops the run on the server. */
  signal?: AbortSignal
}

/** A tool that runs in the client. */
export interface ClientTool {
  name: string
  description?: string
  /** JSON Schema of the arguments. Default: no arguments. */
  parameters?: Record<string, unknown>
  /**
   * Called when the model calls the tool. The model receives the return value, or an error if this throws. Without `execute`
   * the run is suspended until you call `answer`.
   */
  execute?(input: any, context: { runId: string; toolCallId: string }): unknown
}

/** How a run ended, or what it waits for. A failed run is a result with `outcome: 'failed'`, not a rejection. */
export interface ClientResult {
  id: string
  /** `suspended`: the run continues when one of `requests` is answered. Read `result` again after that. */
  outcome: Outcome | 'suspended'
  /** The open requests of a suspended run: approvals, and tools without `execute`. */
  requests?: EntryOf<'request'>[]
  /** The answer's text; for a suspended run, the text so far. */
  text: string
  /** The agent's return value, if it has one. */
  output?: unknown
  usage: Usage
  /** In USD; absent if a price is unknown. */
  cost?: number
  error?: ErrorValue
}

/** Every iteration reads the run from its start. You can stop iterating at any time; the run goes on. */
export interface ClientRun extends AsyncIterable<Entry> {
  /** Rejects when the run cannot be started. */
  readonly id: Promise<string>
  readonly threadId: Promise<string>
  /** The answer's text; resolves together with `result`. */
  readonly text: Promise<string>
  /** The answer's text as it streams. */
  readonly textStream: AsyncIterable<string>
  /**
   * Resolves when the run ends, or when it is suspended for an answer that no tool here will provide. After you have answered,
   * read `result` again. Rejects only when a request to the server fails.
   */
  readonly result: Promise<ClientResult>
  /** Stops the run on the server. */
  abort(): Promise<void>
  /** Answers an open request (an entry of type `request`) of this run. */
  answer(requestId: string, answer: ClientAnswer): Promise<{ duplicate: boolean }>
}

function toResult({ id, status, text, output, usage, cost, error, requests }: ShownRun): ClientResult {
  return compact({
    id,
    outcome: status as ClientResult['outcome'],
    text,
    usage,
    requests: status === 'suspended' ? requests : undefined,
    output,
    cost,
    error,
  })
}

export function startRun(connection: Connection, client: MillraceClient, options: RunOptions): ClientRun {
  const { agent, messages, tools = [], threadId, input = {}, idempotencyKey, signal } = options
  const begun = begin()
  const id = begun.then((run) => run.id)
  const thread = begun.then((run) => run.threadId)
  const own = new Map(tools.flatMap((tool) => (tool.execute === undefined ? [] : [[tool.name, tool] as const])))
  /** Ids of requests that a tool here is executing. */
  const answering = new Set<string>()
  /** The pending `result`; cleared when the run is suspended, kept when it has ended. */
  let asked: PromiseWithResolvers<ClientResult> | undefined
  /** Whether `watch` is listening for calls of tools here. */
  let serving = false
  // Avoid unhandled rejections; callers that await a property of the run still see the failure.
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
    // The run may still be suspended, and then sends no new entry.
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

  /** Follows status changes and tool calls on one connection. With tools, it stays open until the run ends. */
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

  /** Resolves the pending `result` and returns true if the run is suspended and no tool here is executing one of its requests. */
  async function told(): Promise<boolean> {
    const shown = await client.show(await id)
    if (shown.status !== 'suspended' || shown.requests.some(({ requestId }) => answering.has(requestId))) return false
    asked?.resolve(toResult(shown))
    asked = undefined
    return true
  }

  /** Another page may answer first: then its answer counts, and the server rejects ours. */
  async function call(
    run: string,
    { requestId, toolName, toolCallId, input: given }: Extract<EntryOf<'request'>, { toolName: string }>,
  ): Promise<void> {
    answering.add(requestId)
    try {
      // With an idempotency key the run may be an earlier one, whose request is already answered.
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
      // The answer was not accepted: the run waits for another client.
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
      const answering = createAnswering()
      for await (const entry of client.follow(await id, 0, { types: ['step-start', 'text-delta'], signal })) {
        if (entry.type === 'step-start') answering.note(entry)
        else if (entry.type === 'text-delta' && answering.has(entry.step)) yield entry.delta
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
