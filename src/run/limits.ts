/**
 * Budgets and timeouts of a run or of one step and what runs inside it. A limit stops its steps through their signal, so
 * whatever obeys a stop obeys a limit; the error says which limit it was, and becomes the run's outcome.
 */
import { MillraceError } from '../part/error.ts'
import { isUnder } from '../part/path.ts'
import type { Budget, Pipeline } from '../pipeline/pipeline.ts'
import { closeUnder, Suspended, within, type Scope } from './scope.ts'
import { settledBy } from './settled-by.ts'
import type { RunState } from './state.ts'
import { msOf } from './time-limits.ts'

export interface Limit {
  /** Aborts when a limit was passed; the reason is the `MillraceError` that says which. */
  readonly signal: AbortSignal
  /** Whether words count: without a budget of tokens or money no delta need be looked at. */
  readonly watches: boolean
  /** Whether money is limited: then a model without a known price cannot be asked, because it is not free. */
  readonly counts: boolean
  /** To be asked while a model speaks. Throws the limit's error. */
  check(): void
  /** The same, before a model call or a tool call begins, which is counted as one more step. */
  checkStep(): void
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
  /** Names whose limit it is in messages: `The run`, `Step "answer" (llm)`. */
  name: string
  /** What lies under this path counts. */
  root: string
  state: RunState
  speaking: ReadonlyMap<string, Speaking>
  budget?: Budget | undefined
  /** ms */
  timeout?: number | undefined
  /** Epoch ms; with the log's own start a run that goes on does not get its time again. */
  startedAt: number
  now(): number
}

export function createLimit({
  name,
  root,
  state,
  speaking,
  budget = {},
  timeout,
  startedAt,
  now,
}: LimitOptions): Limit {
  const controller = new AbortController()
  const passed = (code: string, what: string) => {
    return new MillraceError(code, `${name} ${what}`, root === '' ? {} : { step: root })
  }
  const exceed = (what: string) => {
    const error = passed('budget-exceeded', `has used up its budget: ${what}.`)
    controller.abort(error)
    return error
  }
  // While a run was suspended its time stood still.
  const left = (ms: number) => Math.max(0, startedAt + state.suspendedSince(startedAt) + ms - now())
  const timers: ReturnType<typeof setTimeout>[] = []
  const after = (ms: number, task: () => void) => {
    const rest = left(ms)
    // setTimeout takes 31 bits of ms, and fires at once for more.
    if (rest < 2 ** 31) timers.push(setTimeout(task, rest))
  }
  const { tokens, usd, seconds, steps } = budget
  if (timeout !== undefined) {
    after(timeout, () => controller.abort(passed('timed-out', `took longer than ${timeout} ms.`)))
  }
  if (seconds !== undefined) after(seconds * 1000, () => exceed(`${seconds} seconds`))

  /** What the calls that have ended came to: added up once each, not for every delta. */
  const ended = { calls: 0, tokens: 0, cost: 0 as number | undefined }

  function check(): void {
    if (controller.signal.aborted) throw controller.signal.reason
    if (tokens === undefined && usd === undefined) return
    for (; ended.calls < state.calls.length; ended.calls++) {
      const { step, usage, cost } = state.calls[ended.calls]!
      if (!isUnder(step, root)) continue
      ended.tokens += usage.totalTokens ?? 0
      ended.cost = plus(ended.cost, cost)
    }
    let spent = ended.tokens
    let { cost } = ended
    for (const [path, { inputCharacters, outputCharacters, price }] of speaking) {
      if (!isUnder(path, root)) continue
      // The rule of `estimateUsage`, without making an object for every delta.
      const input = Math.ceil(inputCharacters / 4)
      const output = Math.ceil(outputCharacters / 4)
      spent += input + output
      cost = plus(cost, price && input * price.input + output * price.output)
    }
    if (tokens !== undefined && spent >= tokens) throw exceed(`${tokens} tokens`)
    if (usd !== undefined && cost !== undefined && cost >= usd) throw exceed(`${usd} USD`)
  }

  return {
    signal: controller.signal,
    watches: tokens !== undefined || usd !== undefined,
    counts: usd !== undefined,
    release: () => timers.forEach(clearTimeout),
    check,
    checkStep() {
      check()
      if (steps !== undefined && state.countCalls(root) >= steps) throw exceed(`${steps} steps`)
    },
  }
}

/** Undefined when the agent limits nothing: most runs. */
export function limitOfRun(
  { pipeline, state }: { pipeline: Pipeline; state: RunState },
  speaking: LimitOptions['speaking'],
  now: () => number,
): Limit | undefined {
  const { budget, timeouts } = pipeline
  const timeout = timeouts?.run === undefined ? undefined : msOf(timeouts.run)
  if (budget === undefined && timeout === undefined) return undefined
  const startedAt = state.start?.timestamp ?? now()
  return createLimit({ name: 'The run', root: '', state, speaking, budget, timeout, startedAt, now })
}

/** Runs something under a limit of its own, beside those that hold already; throws the limit's error when it was passed. */
export async function withLimit<T>(
  scope: Scope,
  { name, root, budget, timeout }: Pick<LimitOptions, 'name' | 'root' | 'budget' | 'timeout'>,
  body: (inner: Scope) => Promise<T>,
): Promise<T> {
  const { state, speaking, now } = scope
  const startedAt = state.open.steps.get(root)?.timestamp ?? now()
  const limit = createLimit({ name, root, state, speaking, budget, timeout, startedAt, now })
  const signal = AbortSignal.any([scope.signal, limit.signal])
  try {
    return await settledBy(limit.signal, body(within(scope, { signal, limits: [...scope.limits, limit] })))
  } catch (error) {
    if (error instanceof Suspended || scope.signal.aborted || !limit.signal.aborted) throw error
    const reason = limit.signal.reason as MillraceError
    // The steps inside left their closing to whoever stopped them.
    await scope.tellAbort(root, reason)
    closeUnder(scope, root, reason)
    throw reason
  } finally {
    limit.release()
  }
}

function plus(sum: number | undefined, cost: number | undefined): number | undefined {
  return sum === undefined || cost === undefined ? undefined : sum + cost
}
