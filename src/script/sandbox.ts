/**
 * The sandbox of scripts, as the engine sees it. A script runs in a virtual machine (VM) of its own, in a worker thread, and asks for everything that it cannot
 * do itself by a call. The engine answers the calls one at a time, in the order of the log: same code, input, answers, times and seed give the same calls.
 *
 *   start → next() → { waiting, calls } → settle(1, …) → { waiting, calls } → settle(2, …) → { done, value }
 *
 * Only JSON texts and numbers cross the border. `pool.ts` implements it on quickjs-wasi, and is the only file here that needs Node: the engine gets a pool, it
 * does not make one.
 */

import { MillraceError } from '../part/error.ts'

/** Runs scripts. One for each process. */
export interface SandboxPool {
  /** Engine and version, for the log: `quickjs-wasi 3.7.0`. Throws `no-sandbox`. */
  readonly engine: string
  /**
   * Starts a script. Faults of the script, also in its syntax, are the state `failed`. Rejects with `MillraceError` `no-sandbox` (a package or workers are
   * missing; the message has the cure), or with the signal's reason.
   */
  start(script: Script, signal?: AbortSignal): Promise<ScriptRun>
  /** Ends all workers. Scripts that have not ended reject with {@link ScriptDropped}. */
  close(): Promise<void>
}

export interface Script {
  /** JavaScript, or TypeScript whose types can be erased: the body of an async function. */
  code: string
  /** What the script sees as `input`: JSON text. */
  input: string
  /** The names of `tools`: `orders`, `crm_find`. */
  toolNames: readonly string[]
  limits: ScriptLimits
  /** What `Date` shows until the first `settle`: ms since the epoch. The zone is UTC. */
  now: number
  /** Of `Math.random`: run, path and attempt. */
  seed: string
}

/** One script in one VM. Call `next` once, then `settle` for each answer, one at a time. */
export interface ScriptRun {
  /** The state after the script's first part: every job has run, and the script waits or has ended. Rejects with {@link ScriptDropped}. */
  next(): Promise<ScriptState>
  /**
   * Gives the result of a call to the script and runs its jobs to their end. `now`: what `Date` shows from then on. Rejects with {@link ScriptDropped} when the
   * VM is gone: start the script again and settle all recorded calls in the same order. After the script has ended, nothing happens: the same state
   * without calls and console.
   */
  settle(callId: number, outcome: CallOutcome, now: number): Promise<ScriptState>
  /** Throws the VM away, also while it computes. Pending promises reject with {@link ScriptDropped}. Safe to call twice. */
  end(): void
}

/** `value`: JSON text. */
export type CallOutcome = { value: string } | { error: CallError }

/** What a call rejects with: an `Error` with this name and message, and `code` as a property. */
export interface CallError {
  /** Default: `Error`. */
  name?: string
  message: string
  code?: string
}

export type ScriptState = {
  /** New calls since the last state. Numbers are 1, 2, … over the whole script. */
  calls: ScriptCall[]
  /** New lines since the last state. */
  console: ConsoleLine[]
} & (
  | { state: 'waiting' }
  | {
      state: 'done'
      /** JSON text; `null` for `undefined`. */
      value: string
      warnings: ScriptWarning[]
    }
  | { state: 'failed'; error: ScriptError; warnings: ScriptWarning[] }
)

export interface ScriptCall {
  n: number
  kind: 'tool' | 'ask' | 'describe'
  /** Of the tool; otherwise `ask`, `describe`. */
  name: string
  /** JSON text. `tool`: the first argument, `{}` without one. `ask`: `{ message, schema? }`. `describe`: `{ words }`. */
  input: string
}

export interface ConsoleLine {
  level: 'debug' | 'log' | 'info' | 'warn' | 'error'
  text: string
}

/** What a script has left behind. `open-call`: it ended while call `n` was open. `unhandled`: a promise failed, and nothing awaited it. */
export type ScriptWarning = { kind: 'open-call'; n: number; name: string } | { kind: 'unhandled'; error: ScriptError }

/**
 * - `bad-script`: it cannot be compiled
 * - `script-error`: it threw
 * - `script-stuck`: it awaits a promise that nothing will settle: no call is open
 * - `script-timeout`, `script-memory`, `script-too-large`: a limit
 * - `bad-value`: what it returned is no JSON
 * - `script-crashed`: its VM trapped
 */
export type ScriptErrorCode =
  | 'bad-script'
  | 'script-error'
  | 'script-stuck'
  | 'script-timeout'
  | 'script-memory'
  | 'script-too-large'
  | 'bad-value'
  | 'script-crashed'

/** `describeScriptError` (`script-error.ts`) makes the text for models and people. */
export interface ScriptError {
  code: ScriptErrorCode
  /** `TypeError`. */
  name: string
  message: string
  /** In the script's own text, from 1. Absent if unknown. */
  line?: number
  column?: number
  /** That line. */
  source?: string
  /** The `code` property of what was thrown: that of a call's error. */
  thrown?: string
}

export interface ScriptLimits {
  /** CPU of the script in ms. */
  time: number
  /** Bytes of the VM. */
  memory: number
  /** One more rejects in the script. How many run at once is up to the engine. */
  calls: number
  /** Bytes of the code. */
  code: number
  /** Bytes of a call's arguments, and of its result. */
  callValue: number
  /** Bytes of what the script returns. */
  value: number
  /** Bytes of console text; more is cut. */
  console: number
}

export const defaultScriptLimits: ScriptLimits = {
  time: 5_000,
  memory: 32 << 20,
  calls: 100,
  code: 64 << 10,
  callValue: 1 << 20,
  value: 64 << 10,
  console: 16 << 10,
}

/**
 * The VM is gone, and the script did nothing wrong. `worker`: another script of its worker had to be ended; `waiting`: too many scripts wait, and this one
 * waited longest; both are to be run again from the log. `ended`: `end()` or the signal; `closed`: the pool.
 */
export class ScriptDropped extends Error {
  override readonly name = 'ScriptDropped'
  readonly reason: 'worker' | 'waiting' | 'ended' | 'closed'

  constructor(reason: ScriptDropped['reason']) {
    super(`The script's VM was dropped: ${reason}.`)
    this.reason = reason
  }
}

/** Scripts run nowhere else than in the sandbox: without one, each script fails with this. */
export function noSandbox(why: string): MillraceError {
  return new MillraceError('no-sandbox', `Scripts cannot run here: ${why}`)
}
