/** A run on the client: iterate over its entries, await its text or result, and execute its client tools. */
import type { RequestView } from '../fold/run-view.ts'
import { omitUndefined } from '../part/omit-undefined.ts'
import type { Entry } from '../part/entry.ts'
import type { ErrorValue } from '../part/error.ts'
import { leavable } from '../async/leavable.ts'
import type { Outcome, PartType } from '../part/part.ts'
import { createAgentsAbove } from '../fold/agents-above.ts'
import { createAnswering } from '../fold/answering.ts'
import type { Usage } from '../part/usage.ts'
import { again } from './request.ts'
import type { ClientTools, NamedTool } from './client-tool.ts'
import type { ClientAnswer, MillraceClient, ShownRun } from './client.ts'
import { serveTools, type Confirmation, type Confirmed } from './serve-tools.ts'

/** Options of a run, also of one that another client started. */
export interface AttachOptions {
  /** Tools that run in the client: a list, or an object with each under its name. */
  tools?: ClientTools
  /**
   * Asked when the model calls a tool that must be confirmed. Without it the approval is one of the open requests of `result`, and
   * waits for `answer`.
   */
  onConfirm?(confirmation: Confirmation): Confirmed | Promise<Confirmed>
  /** Aborting it stops the run on the server. */
  signal?: AbortSignal
}

/** The outcome of a run, or its open requests. A failed run is a result with `outcome: 'failed'`, not a rejection. */
export interface ClientResult {
  id: string
  /** `suspended`: the run continues when one of `requests` is answered. Read `result` again after that. */
  outcome: Outcome | 'suspended'
  /** The open requests of a suspended run: approvals, and tools without `execute`. */
  requests?: RequestView[]
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
  return omitUndefined({
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

const stepTypes = ['run-start', 'step-start', 'step-finish', 'step-reset', 'resume'] as const

/** Which run it is. */
export interface Begun {
  id: string
  threadId: string
}

/** The source of a run on the server. `begun` may reject. */
export function runOf(
  client: MillraceClient,
  begun: Promise<Begun>,
  tools: readonly NamedTool[],
  { signal, onConfirm, mayBeOld }: AttachOptions & { mayBeOld: boolean },
): ClientRun {
  const id = begun.then((run) => run.id)
  const thread = begun.then((run) => run.threadId)
  const onRefused = () => void settleIfSuspended().catch(() => undefined)
  const served = serveTools({ client, tools: () => tools, onConfirm: () => onConfirm, mayBeOld, onRefused })
  /** The pending `result`; cleared when the run is suspended, kept when it has ended. */
  let asked: PromiseWithResolvers<ClientResult> | undefined
  /** Whether `watch` is listening for calls of tools here. */
  let serving = false
  // Avoid unhandled rejections; callers that await a property of the run still see the failure.
  for (const promise of [id, thread]) void promise.catch(() => undefined)
  if (served.some) void result()
  if (signal?.aborted) stop()
  else signal?.addEventListener('abort', stop, { once: true })

  function stop(): void {
    void abort().catch(() => undefined)
  }

  async function abort(): Promise<void> {
    await client.stop(await id)
  }

  function result(): Promise<ClientResult> {
    if (asked !== undefined) return asked.promise
    const { promise } = open()
    if (!served.some || !serving) void watch()
    // The run may still be suspended, and then sends no new entry.
    else void settleIfSuspended().catch((error: unknown) => open().reject(error))
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
    serving = served.some
    try {
      const run = await id
      // With the steps, a question can name the agents that lead to it.
      const asking: PartType[] = onConfirm === undefined ? ['request'] : ['request', ...stepTypes]
      const types: PartType[] = ['suspend', ...(served.some ? asking : [])]
      const above = createAgentsAbove()
      for await (const entry of client.follow(run, 0, { types })) {
        above.apply(entry)
        if (entry.type === 'request') served.take(run, { ...entry, ...above.field(entry.step) })
        else if (entry.type === 'suspend' && (await settleIfSuspended()) && !served.some) return
      }
      open().resolve(toResult(await again(() => client.show(run))))
      signal?.removeEventListener('abort', stop)
    } catch (error) {
      open().reject(error)
    }
  }

  /** Resolves the pending `result` and returns true if the run is suspended and no tool here is executing one of its requests. */
  async function settleIfSuspended(): Promise<boolean> {
    const run = await id
    const shown = await again(() => client.show(run))
    if (shown.status !== 'suspended' || shown.requests.some(served.has)) return false
    asked?.resolve(toResult(shown))
    asked = undefined
    return true
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
