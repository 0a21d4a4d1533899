/** The error of a run that another process goes on with, or has ended. It is not a failure: nothing is reported or recorded. */
import { MillraceError } from '../part/error.ts'

export function moved(): MillraceError {
  return new MillraceError('moved', 'Another process has taken over the run.')
}

export function isMoved(error: unknown): boolean {
  return error instanceof MillraceError && error.code === 'moved'
}
