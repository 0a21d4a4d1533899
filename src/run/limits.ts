/**
 * Budgets and timeouts of a run or of one step and what runs inside it. A limit stops its steps through their signal, so
 * whatever obeys a stop obeys a limit; the error says which limit it was, and becomes the run's outcome.
 */
import { MillraceError } from '../part/error.ts'
import { isUnder } from '../part/path.ts'
import type { Budget } from '../pipeline/pipeline.ts'
import { closeUnder, Suspended, type Scope } from './scope.ts'
import { settledBy } from './settled-by.ts'
import type { RunState } from './state.ts'
import { within } from './walk.ts'

export interface Limit {
  /** Aborts when a limit was passed; the reason is the `MillraceError` that says which. */
  readonly signal: AbortSignal
  /** Whether words count: without a budget of tokens or money no delta need be looked at. */
  readonly watches: boolean
  /** To be asked before a model or tool call begins, and while a model speaks with what it has said so far. */
  check(speaking?: Speaking): void
  /** Nothing is limited any more. */
  release(): void
}

/** A model call under way: what it was sent and has said, in characters; `price` in USD per token. */
export interface Speaking {
  inputCharacters: number
  outputCharacters: number
  price?: Price | undefined
}
export interface Price {
  input: number
  output: number
}

export interface LimitOptions {
  /** Names whose limit it is in messages: `The run`, `Step answer`. */
  name: string
  /** What lies under this path counts. */
  root: string
  state: RunState
  budget?: Budget | undefined
  /** ms */
  timeout?: number | undefined
  /** Epoch ms; with the log's own start a run that goes on does not get its time again. */
  startedAt: number
  now(): number
}

export function createLimit({ name, root, state, budget = {}, timeout, startedAt, now }: LimitOptions): Limit {
  const controller = new AbortController()
  const exceed = (what: string) => {
    const error = new MillraceError('budget-exceeded', `${name} has used up its budget: ${what}.`)
    controller.abort(error)
    return error
  }
  const left = (ms: number) => Math.max(0, startedAt + ms - now())
  const timers: ReturnType<typeof setTimeout>[] = []
  const { tokens, usd, seconds, steps } = budget
  if (timeout !== undefined) {
    const error = new MillraceError('timed-out', `${name} took longer than ${timeout} ms.`)
    timers.push(setTimeout(() => controller.abort(error), left(timeout)))
  }
  if (seconds !== undefined) timers.push(setTimeout(() => exceed(`${seconds} seconds`), left(seconds * 1000)))

  return {
    signal: controller.signal,
    watches: tokens !== undefined || usd !== undefined,
    release: () => timers.forEach(clearTimeout),
    check(speaking) {
      if (controller.signal.aborted) throw controller.signal.reason
      if (tokens === undefined && usd === undefined && steps === undefined) return
      let spent = 0
      let cost: number | undefined = 0
      for (const call of state.calls) {
        if (!isUnder(call.step, root)) continue
        spent += call.usage.totalTokens ?? 0
        cost = cost === undefined || call.cost === undefined ? undefined : cost + call.cost
      }
      if (speaking !== undefined) {
        const { inputCharacters, outputCharacters, price } = speaking
        // The rule of `estimateUsage`, without making an object for every delta.
        const input = Math.ceil(inputCharacters / 4)
        const output = Math.ceil(outputCharacters / 4)
        spent += input + output
        if (cost !== undefined)
          cost = price === undefined ? undefined : cost + input * price.input + output * price.output
      }
      if (tokens !== undefined && spent >= tokens) throw exceed(`${tokens} tokens`)
      if (usd !== undefined && cost !== undefined && cost >= usd) throw exceed(`${usd} USD`)
      if (steps !== undefined && speaking === undefined && state.countCalls(root) >= steps)
        throw exceed(`${steps} steps`)
    },
  }
}

/** Runs something under a limit of its own, beside those that hold already; throws the limit's error when it was passed. */
export async function withLimit<T>(
  scope: Scope,
  { name, root, budget, timeout }: Pick<LimitOptions, 'name' | 'root' | 'budget' | 'timeout'>,
  body: (inner: Scope) => Promise<T>,
): Promise<T> {
  const { state, now } = scope
  const startedAt = state.open.steps.get(root)?.timestamp ?? now()
  const limit = createLimit({ name, root, state, budget, timeout, startedAt, now })
  const signal = AbortSignal.any([scope.signal, limit.signal])
  try {
    return await settledBy(limit.signal, body(within(scope, { signal, limits: [...scope.limits, limit] })))
  } catch (error) {
    if (error instanceof Suspended || scope.signal.aborted || !limit.signal.aborted) throw error
    const reason = limit.signal.reason as MillraceError
    // The steps inside left their closing to whoever stopped them.
    closeUnder(scope, root, reason)
    throw reason
  } finally {
    limit.release()
  }
}
