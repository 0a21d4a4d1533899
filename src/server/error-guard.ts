/**
 * Catches what code of an application throws where nobody awaits it (a timer, an event handler, a floating promise). Left to
 * Node it would end the process, with all runs, and print the error as it is, secrets included. Only for a process that is
 * ours alone: a library must not decide this for its host.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { toMillraceError, type MillraceError } from '../part/error.ts'
import type { Attribute, Origin } from '../run/attribute.ts'
import type { FailEffect, Runtime } from '../run/runtime.ts'
import { formatStepName, nameFailure } from '../run/step-name.ts'
import { stackOf, type Reporter } from './report.ts'

export interface GuardOptions {
  report: Reporter
  /** Ends the process after an error that it must not go on from. */
  exit(): void
}

export interface ErrorGuard {
  readonly attribute: Attribute
  /** Errors that belong to no active run. */
  readonly unattributed: number
  /** Whose runs these are, and whose secrets. Until this is called no error has a run. */
  bind(runtime: Pick<Runtime, 'fail' | 'redact'>): void
  /** Listens for the rest of the process's life, or until the function that it gives back is called. */
  install(): () => void
}

/** Reports in so many ms are at most so many: a timer may throw a thousand times a second. */
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
      const origin = origins.getStore()
      const effect = (origin && runtime?.fail(origin.run, toRunError(thrown, origin))) ?? 'inactive'
      if (effect === 'inactive') unattributed++
      if (isUnsafe || mayReport())
        report({ level: 'error', event: 'uncaught-error', ...describe(thrown, origin, effect) })
    } catch {
      // Nothing may come out of here: Node would end the process, and print it.
    }
    if (isUnsafe) options.exit()
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
    install() {
      process.on('uncaughtException', caught)
      process.on('unhandledRejection', caught)
      return () => {
        process.off('uncaughtException', caught)
        process.off('unhandledRejection', caught)
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
  if (origin === undefined) return { message: `An error that nobody awaited, in no run. ${cure}\n${stack}` }
  const { run, step } = origin
  const where = `${step === undefined ? 'a callback' : formatStepName(step)} of run ${run}`
  return {
    message: `An error that nobody awaited, from ${where}. ${effects[effect]} ${cure}\n${stack}`,
    ...(effect === 'failed' ? { run } : undefined),
    ...(step === undefined ? undefined : { step: step.path }),
  }
}

/** After these nothing in the process can be relied on. (When V8 itself runs out of memory, it ends the process.) */
function isUnsafeError(thrown: unknown): boolean {
  if (!(thrown instanceof Error)) return false
  const { code, message } = thrown as NodeJS.ErrnoException
  if (['ENOMEM', 'ERR_INTERNAL_ASSERTION', 'ERR_WORKER_OUT_OF_MEMORY'].includes(code ?? '')) return true
  return thrown instanceof RangeError && /out of memory|allocation failed/iu.test(message)
}
