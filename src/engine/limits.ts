/**
 * Budgets and timeouts of a run, or of one step with everything inside it. A limit stops its steps through their signal, like a stop. The error
 * names the limit and becomes the run's outcome.
 */
import { anySignal } from '../async/any-signal.ts'
import { MillraceError } from '../part/error.ts'
import { isUnder } from '../part/path.ts'
import type { Budget, Pipeline, TimeLimit, Timeouts } from '../pipeline/pipeline.ts'
import { closeUnder, Suspended, within, type Scope } from './scope.ts'
import { settledBy } from '../async/with-grace.ts'
import type { RunState } from './state.ts'
import { formatLimit } from '../part/limits.ts'
import { addCountdown, removeCountdown, type Countdown } from '../async/countdown.ts'

export interface Limit {
  /** Aborts when a limit is exceeded. The reason is a `MillraceError` that names the limit. */
  readonly signal: AbortSignal
  /** Whether it has a budget of tokens or money. Without one, deltas need no check. */
  readonly watches: boolean
  /** Whether it has a budget of money. Then models without a known price are refused. */
  readonly counts: boolean
  /** Call it while a model streams. Throws the limit's error. */
  check(): void
  /** Call it before a model call or tool call, which counts as one more step. Throws like `check`. */
  checkStep(): void
  /** Whether another step may begin. Stops nothing. */
  hasRoom(): boolean
  /** Clears the timers. */
  release(): void
}

/** A model call in progress: the characters sent and received so far; `price` in USD per token. */
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
  /** The limited thing, for messages: `The run`, `Step "answer" (llm)`. */
  name: string
  /** Everything at or under this path counts. */
  root: string
  state: RunState
  speaking: ReadonlyMap<string, Speaking>
  budget?: Budget | undefined
  /** ms */
  timeout?: number | undefined
  /** Epoch ms, from the log, so a resumed run does not get its time again. */
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
  // Suspended time does not count.
  const left = (ms: number) => Math.max(0, startedAt + state.suspendedSince(startedAt) + ms - now())
  const timers: ReturnType<typeof setTimeout>[] = []
  const after = (ms: number, task: () => void) => {
    const rest = left(ms)
    // `setTimeout` takes 31 bits of ms and fires at once for more.
    if (rest < 2 ** 31) timers.push(setTimeout(task, rest))
  }
  const { tokens, usd, seconds, steps } = budget
  if (timeout !== undefined) {
    after(timeout, () => controller.abort(passed('timed-out', `took longer than ${timeout} ms.`)))
  }
  if (seconds !== undefined) after(seconds * 1000, () => exceed(`${seconds} seconds`))

  /** Totals of the ended calls, so that they are not summed again for every delta. */
  const ended = { calls: 0, tokens: 0, cost: 0 as number | undefined }

  /** The budget that is used up. */
  function spentBudget(): string | undefined {
    if (tokens === undefined && usd === undefined) return undefined
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
      // As in `estimateUsage`, without allocating an object for every delta.
      const input = Math.ceil(inputCharacters / 4)
      const output = Math.ceil(outputCharacters / 4)
      spent += input + output
      cost = plus(cost, price && input * price.input + output * price.output)
    }
    if (tokens !== undefined && spent >= tokens) return `${tokens} tokens`
    return usd !== undefined && cost !== undefined && cost >= usd ? `${usd} USD` : undefined
  }

  function check(): void {
    if (controller.signal.aborted) throw controller.signal.reason
    const spent = spentBudget()
    if (spent !== undefined) throw exceed(spent)
  }

  const hasSteps = () => steps === undefined || state.countCalls(root) < steps

  return {
    signal: controller.signal,
    watches: tokens !== undefined || usd !== undefined,
    counts: usd !== undefined,
    release: () => timers.forEach(clearTimeout),
    check,
    checkStep() {
      check()
      if (!hasSteps()) throw exceed(`${steps} steps`)
    },
    hasRoom: () => !controller.signal.aborted && hasSteps() && spentBudget() === undefined,
  }
}

/** Undefined if the agent sets no limits, as most do. */
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

/** Runs `body` under one more limit, in addition to the scope's. Throws the limit's error when it is exceeded. */
export async function withLimit<T>(
  scope: Scope,
  {
    name,
    root,
    budget,
    timeout,
    leavesOpen = false,
  }: Pick<LimitOptions, 'name' | 'root' | 'budget' | 'timeout'> & {
    /** What is inside the step at `root` is closed, and the step goes on. */
    leavesOpen?: boolean
  },
  body: (inner: Scope) => Promise<T>,
): Promise<T> {
  const { state, speaking, now } = scope
  const startedAt = state.open.steps.get(root)?.timestamp ?? now()
  const limit = createLimit({ name, root, state, speaking, budget, timeout, startedAt, now })
  const signal = anySignal([scope.signal, limit.signal])
  try {
    return await settledBy(limit.signal, body(within(scope, { signal, limits: [...scope.limits, limit] })))
  } catch (error) {
    if (error instanceof Suspended || scope.signal.aborted || !limit.signal.aborted) throw error
    const reason = limit.signal.reason as MillraceError
    // The inner steps leave their closing to the limit that stopped them.
    await scope.notifyAbort(root, reason)
    closeUnder(scope, root, reason, leavesOpen)
    throw reason
  } finally {
    limit.release()
  }
}

function plus(sum: number | undefined, cost: number | undefined): number | undefined {
  return sum === undefined || cost === undefined ? undefined : sum + cost
}

/* Default time limits of model calls and runs. */

/** Milliseconds. */
export const defaultTimeouts = { firstToken: 120_000, idle: 120_000, run: 900_000 } as const

/** For calls with `reasoning`, whose models may think for minutes before their first content, and for the first token of a local server. In ms. */
export const reasoningSilence = 600_000

/** Timeouts for agents that set none. A missing key means the built-in default. */
export type DefaultTimeouts = Pick<Timeouts, 'firstToken' | 'idle' | 'run'>

export type SilenceLimits = Pick<Timeouts, 'firstToken' | 'idle'>

/** Combines two limits: the shorter one where both are set, otherwise the one that is set. */
export function stricter(a: SilenceLimits, b: SilenceLimits): SilenceLimits {
  const shorter = (x: TimeLimit | undefined, y: TimeLimit | undefined) => {
    if (x === undefined || x === 'none') return y ?? x
    return y === undefined || y === 'none' ? x : Math.min(x, y)
  }
  return { firstToken: shorter(a.firstToken, b.firstToken), idle: shorter(a.idle, b.idle) }
}

export function msOf(limit: TimeLimit): number | undefined {
  return limit === 'none' ? undefined : limit
}

/**
 * Starts the default time limit of a run. It counts only while the run is active in this process: not while it waits for its turn in a thread or
 * for a reply, and not during a restart. Returns a function that ends the limit.
 */
export function limitUnsetRun(
  { timeouts, defaults }: { timeouts?: Timeouts | undefined; defaults: DefaultTimeouts },
  expire: (error: MillraceError) => void,
): (() => void) | undefined {
  const ms = timeouts?.run === undefined ? msOf(defaults.run ?? defaultTimeouts.run) : undefined
  if (ms === undefined) return undefined
  const countdown: Countdown = {
    ms,
    since: performance.now(),
    restart: false,
    expire: () => expire(timedOut(`The run took longer than ${formatLimit(ms)}.`, 'run')),
  }
  addCountdown(countdown)
  return () => removeCountdown(countdown)
}

/** Clients see the limit. The log also shows how to change a default. */
export function timedOut(message: string, key?: keyof DefaultTimeouts): MillraceError {
  const cure = `This is the default. To change it, set timeouts.${key} in the agent or in the config ("none" removes it).`
  return new MillraceError('timed-out', message, key === undefined ? {} : { detail: cure })
}
