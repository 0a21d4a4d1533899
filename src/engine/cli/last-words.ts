/** The end of what a program says on stderr, as the reason of an error. */
import { compact } from '../../part/compact.ts'
import { fromErrorValue, type ErrorValue, type MillraceError } from '../../part/error.ts'

/** Where things are on this machine is nothing for clients: of a path they see its last name. */
export function withoutPaths(text: string): string {
  return text.replaceAll(/(?:[A-Za-z]:)?(?:[\\/][\w.@~+-]+)+[\\/]([\w.@~+-]+)/gu, '…/$1')
}

/** The error with the reason that stderr gives, where the program has given none. */
export function withReason(error: ErrorValue, words: string | undefined): MillraceError {
  const hasNone = error.code === 'cli-exit' || error.code === 'interrupted'
  if (words === undefined || !hasNone) return fromErrorValue(error)
  const shown = withoutPaths(words)
  const detail = error.detail ?? (shown === words ? undefined : `its stderr: ${words}`)
  return fromErrorValue(compact({ ...error, message: `${error.message} It said: ${shown}`, detail }) as ErrorValue)
}
