/**
 * Catches uncaught errors of application code (a timer, an event handler, a floating promise). Node would end the process
 * with all its runs and print the error, secrets included. Only `serve` installs it: a library must not change how its
 * host handles uncaught errors.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { EventEmitter } from 'node:events'
import { omitUndefined } from '../part/omit-undefined.ts'
import { toMillraceError, MillraceError, withoutCredentials, wordsOf } from '../part/error.ts'
import { type Attribute, type Origin, formatStepName, nameFailure } from '../engine/step-name.ts'
import type { FailEffect, Runtime } from '../runtime/runtime.ts'
import type { RunEvent } from '../runtime/runtime-options.ts'

export interface GuardOptions {
  report: Reporter
  /** Ends the process after an error that makes it unreliable. */
  exit(): void
}

export interface ErrorGuard {
  readonly attribute: Attribute
  /** Number of errors that belong to no active run. */
  readonly unattributed: number
  /** Sets the runtime that fails runs and redacts secrets. Until then, errors are attributed to no run. */
  bind(runtime: Pick<Runtime, 'fail' | 'redact'>): void
  /** Subscribes to the events of `process`. Returns a function that unsubscribes. */
  install(events: Pick<EventEmitter, 'on' | 'off'>): () => void
}

/** At most `mostReports` reports per `windowMs`: a timer may throw a thousand times per second. */
const windowMs = 10_000
const mostReports = 20

export function createErrorGuard(options: GuardOptions): ErrorGuard {
  const origins = new AsyncLocalStorage<Origin>()
  let runtime: Pick<Runtime, 'fail' | 'redact'> | undefined
  const report: Reporter = (each) => options.report(runtime?.redact(each) ?? each)
  let unattributed = 0
  let window = { since: -Infinity, count: 0 }

  function caught(thrown: unknown): void {
    const isUnsafe = isUnsafeError(thrown)
    try {
      handle(thrown, isUnsafe)
    } catch {
      handleUnreadable()
    }
    if (isUnsafe) options.exit()
  }

  function handle(thrown: unknown, isUnsafe: boolean): void {
    const origin = origins.getStore()
    const effect = (origin && runtime?.fail(origin.run, toRunError(thrown, origin))) ?? 'inactive'
    if (effect === 'inactive') unattributed++
    if (isUnsafe || mayReport())
      report({ level: 'error', event: 'uncaught-error', ...describe(thrown, origin, effect) })
  }

  /** Getters and proxies may throw on any access. The run fails all the same. */
  function handleUnreadable(): void {
    try {
      handle(new Error('an error that cannot be read'), false)
    } catch {
      // No error may escape here: Node would end the process, and print it.
    }
  }

  function mayReport(): boolean {
    const now = performance.now()
    if (now - window.since > windowMs) {
      const dropped = window.count - mostReports
      window = { since: now, count: 0 }
      if (dropped > 0) {
        report({
          level: 'error',
          event: 'uncaught-error',
          message: `${dropped} more uncaught errors were not printed.`,
        })
      }
    }
    return ++window.count <= mostReports
  }

  return {
    attribute: (origin, body) => origins.run(origin, body),
    get unattributed() {
      return unattributed
    },
    bind(bound) {
      runtime = bound
    },
    install(events) {
      events.on('uncaughtException', caught)
      events.on('unhandledRejection', caught)
      return () => {
        events.off('uncaughtException', caught)
        events.off('unhandledRejection', caught)
      }
    },
  }
}

function toRunError(thrown: unknown, { step }: Origin): MillraceError {
  const error = toMillraceError(thrown, 'uncaught-error')
  return step === undefined ? error : nameFailure(step, error)
}

const effects: Record<FailEffect, string> = {
  failed: 'The run fails.',
  completed: 'The run stays completed, because its answer had ended; its remaining steps are stopped.',
  ending: 'The run was already ending; its outcome does not change.',
  inactive: 'The run was no longer active.',
}

function describe(thrown: unknown, origin: Origin | undefined, effect: FailEffect) {
  const stack = stackOf(thrown)
  const cure = 'Await the promise, or handle the error where it happens.'
  if (origin === undefined) return { message: `Uncaught error outside any run. ${cure}\n${stack}` }
  const { run, step } = origin
  const where = `${step === undefined ? 'a callback' : formatStepName(step)} of run ${run}`
  return omitUndefined({
    message: `Uncaught error in ${where}. ${effects[effect]} ${cure}\n${stack}`,
    run: effect === 'failed' ? run : undefined,
    step: step?.path,
  })
}

/** Errors after which the process is unreliable. (V8 itself ends the process when its heap is full.) */
function isUnsafeError(thrown: unknown): boolean {
  try {
    if (!(thrown instanceof Error)) return false
    const { code, message } = thrown as NodeJS.ErrnoException
    if (['ENOMEM', 'ERR_INTERNAL_ASSERTION', 'ERR_WORKER_OUT_OF_MEMORY'].includes(code ?? '')) return true
    return thrown instanceof RangeError && /out of memory|allocation failed/iu.test(message)
  } catch {
    return false
  }
}

/** Reports of a server, for a terminal or a log collector. They may contain text from clients and models. */
export type Level = 'info' | 'warn' | 'error'

export type Report = { level: Level } & (
  | ({ event: 'run' } & RunEvent)
  /** A request that was answered with an error, without a run. */
  | { event: 'request'; method: string; path: string; status: number; code?: string; message: string }
  /** The store started to fail, or works again. `detail`: the system's own message. */
  | { event: 'store'; message: string; detail?: string }
  /** An uncaught error. `run`: the run that failed because of it. */
  | { event: 'uncaught-error'; message: string; run?: string; step?: string }
  | { event: 'ready'; message: string; url: string }
  | { event: 'note'; message: string }
)

export type Reporter = (report: Report) => void

/** Failed runs are errors. Runs that a client stopped are not. */
export function reportOfRun(event: RunEvent): Report {
  const isFault = event.outcome === 'failed' || event.outcome === 'timed-out' || event.outcome === 'interrupted'
  return { level: isFault ? 'error' : event.outcome === 'budget-exceeded' ? 'warn' : 'info', event: 'run', ...event }
}

/** The error with its stack, without credentials. Secrets known by value must be redacted by the caller. */
export function stackOf(error: unknown): string {
  const stack = error instanceof Error ? (error.stack ?? error.message) : wordsOf(error)
  const detail = error instanceof MillraceError && error.detail !== undefined ? `\n    ${error.detail}` : ''
  return withoutCredentials(stack + detail)
}
