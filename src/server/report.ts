/** What a server says about its work, for a terminal or a log collector. Texts may hold what clients and models said. */
import { MillraceError } from '../part/error.ts'
import { withoutCredentials, wordsOf } from '../part/error-words.ts'
import type { RunEvent } from '../run/run-event.ts'

export type Level = 'info' | 'warn' | 'error'

export type Report = { level: Level } & (
  | ({ event: 'run' } & RunEvent)
  /** Answered with an error, without a run. */
  | { event: 'request'; method: string; path: string; status: number; code?: string; message: string }
  /** The store began to fail, or works again. `detail`: what the system said. */
  | { event: 'store'; message: string; detail?: string }
  /** An error that nobody awaited. `run`: the run that it ended. */
  | { event: 'uncaught-error'; message: string; run?: string; step?: string }
  | { event: 'ready'; message: string; url: string }
  | { event: 'note'; message: string }
)

export type Reporter = (report: Report) => void

/** A run that failed needs attention; one that was stopped by its client does not. */
export function reportOfRun(event: RunEvent): Report {
  const isFault = event.outcome === 'failed' || event.outcome === 'timed-out' || event.outcome === 'interrupted'
  return { level: isFault ? 'error' : event.outcome === 'budget-exceeded' ? 'warn' : 'info', event: 'run', ...event }
}

/** With its stack, for people who debug; secrets that are known by value are the caller's to take out. */
export function stackOf(error: unknown): string {
  const stack = error instanceof Error ? (error.stack ?? error.message) : wordsOf(error)
  const detail = error instanceof MillraceError && error.detail !== undefined ? `\n    ${error.detail}` : ''
  return withoutCredentials(stack + detail)
}
