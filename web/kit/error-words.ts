/** What an error says to a person: what has happened, what to do, and whether it may be different the next time. */
import type { ErrorValue } from '../../src/part/error.ts'

export interface ToldError {
  /** What has happened. Absent for an error that this page knows nothing of: its own words say it. */
  title?: string
  detail?: string
  code?: string
  /** Another try may end otherwise. */
  canRetry: boolean
  /** Seconds. */
  retryAfter?: number
  /** Where to go on instead. */
  link?: { href: string; label: string }
}

interface Given {
  message?: string
  code?: string
  retryAfter?: number
  step?: string
}

/** `final`: the same again fails again, until somebody changes the agent, the input or the server. */
const kinds = new Map<string, { title: string; final?: true }>(
  Object.entries({
    'rate-limited': { title: 'The model is busy' },
    'model-unavailable': { title: 'The model cannot be reached' },
    'connection-lost': { title: 'The connection to the model broke' },
    'model-incomplete': { title: 'The answer is not complete' },
    'model-failed': { title: 'The model failed' },
    'step-failed': { title: 'A step of the agent failed' },
    'bad-output': { title: 'The answer does not have the form that the agent asks for' },
    'model-refused': { title: 'The model refused the request', final: true },
    'missing-key': { title: 'The key for the model is missing', final: true },
    'bad-key': { title: 'The key for the model cannot be used', final: true },
    'unknown-model': { title: 'There is no such model', final: true },
    'missing-value': { title: 'A value is missing', final: true },
    'bad-value': { title: 'A value cannot be used', final: true },
    'bad-changes': { title: 'What was changed for this chat does not fit' },
    'bad-input': { title: 'The input does not fit', final: true },
    'bad-expression': { title: 'A condition of the agent cannot be read', final: true },
    'invalid-messages': { title: 'The messages cannot be sent to the model', final: true },
    'bad-query': { title: 'This address cannot be read', final: true },
    'budget-exceeded': { title: 'The budget of the run is used up', final: true },
    'timed-out': { title: 'It took too long' },
    'tool-failed': { title: 'A tool failed' },
    'mcp-unreachable': { title: 'A tool server cannot be reached' },
    'mcp-lost': { title: 'The connection to a tool server broke' },
    'too-many-runs': { title: 'The server is busy' },
    'too-many-streams': { title: 'The server is busy' },
    'too-many-messages': { title: 'Too many messages wait' },
    'too-large': { title: 'It is too large', final: true },
    'quota-exceeded': { title: 'The quota is used up' },
    'access-unavailable': { title: 'The server cannot find out who you are' },
    closing: { title: 'The server is stopping' },
    'unknown-agent': { title: 'There is no such agent', final: true },
    'bad-run': { title: 'This run cannot become a test', final: true },
    'tests-running': { title: 'Other tests are running' },
    'tests-changed': { title: 'The test has changed meanwhile' },
    forbidden: { title: 'This is not allowed', final: true },
  } as const),
)

const links = new Map([
  ['unknown-run', { href: '/runs', label: 'All runs' }],
  ['unknown-thread', { href: '/threads', label: 'All threads' }],
  ['unknown-test', { href: '/tests', label: 'All tests' }],
  ['unknown-agent', { href: '/agents', label: 'All agents' }],
])

/** `Step "answer" (llm): `: a person in a chat knows nothing of steps. */
const stepName = /^Step "[^"]*" \([^)]*\)(?:: | failed\.)/u

/** `You may not do this here (runs.delete). …`: names of actions are for programs. */
const actionOf = /^You may not do this here \([\w.]+\)/u

export function explain(error: unknown): ToldError {
  const { message = String(error), code, retryAfter, step } = (error ?? {}) as Given
  const said = message.replace(stepName, '')
  if (code === undefined) return { detail: message, canRetry: true }
  if (code === 'interrupted' || code === 'abandoned') {
    const isTold = /server (?:is shutting down|stopped)/u.test(said) || said === ''
    return {
      title: 'The answer was cut off: the server stopped.',
      ...(!isTold && { detail: said }),
      code,
      canRetry: true,
    }
  }
  const isOfStep = step !== undefined || said !== message
  if (code === 'connection-lost' && !isOfStep) {
    return { title: 'The server cannot be reached', code, canRetry: true }
  }
  if (code === 'rate-limited' && !isOfStep) {
    return { title: 'Too many runs at once', detail: said, code, canRetry: true, ...after(retryAfter) }
  }
  const link = links.get(code)
  if (code === 'unknown-run' || code === 'unknown-thread' || code === 'unknown-test')
    return { title: said, code, canRetry: false, ...(link && { link }) }
  if (code === 'forbidden' && actionOf.test(said))
    return { title: 'Your role does not allow this.', code, canRetry: false }
  const kind = kinds.get(code)
  const wait =
    retryAfter === undefined || /try again in/iu.test(said) ? '' : ` Try again in ${Math.ceil(retryAfter)} s.`
  const detail = `${said}${wait !== '' && !/[.!?]$/u.test(said) ? '.' : ''}${wait}`.trim()
  // Nothing is left of a message that names its step only.
  const title = kind?.title ?? (message === '' ? 'Something failed' : undefined)
  const more = detail === '' && kind === undefined ? message : detail
  return {
    ...(title !== undefined && { title }),
    // Not what the title has said.
    ...(more !== '' && more.replace(/\.$/u, '') !== (title ?? '') && { detail: more }),
    code,
    canRetry: kind?.final !== true,
    ...after(retryAfter),
    ...(link && { link }),
  }
}

/** For a line of a list, where another try is not offered. */
export function inShort({ code, message }: Pick<ErrorValue, 'code' | 'message'>): string {
  const { title, detail } = explain({ code, message })
  return detail ?? title ?? message
}

function after(retryAfter: number | undefined): { retryAfter?: number } {
  return retryAfter === undefined ? {} : { retryAfter }
}
