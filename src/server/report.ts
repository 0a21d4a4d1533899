/** Reports of a server, for a terminal or a log collector. They may contain text from clients and models. */
import { MillraceError } from '../part/error.ts'
import { withoutCredentials, wordsOf } from '../part/error-words.ts'
import type { RunEvent } from '../runtime/run-event.ts'

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
