/**
 * Errors, and who is told what of them.
 *
 * A `message` is public: every client is shown it. Public are the texts of a `MillraceError`, which are written for whoever
 * reads an answer, and what a provider or an MCP tool answered. Whatever else is thrown (by a step type, a tool, a package) may
 * hold internals: clients are told that it failed, and its own words are the `detail`, which only the log and its readers get.
 */
import { wordsOf } from './error-words.ts'

/**
 * An error as it is recorded: no stack, no secret, nothing of the fields in which packages keep headers and bodies. Wires for
 * clients show `message` and `code`; the log (and so `/api/runs`, `millrace logs`, a run's `result`) holds all of it.
 */
export interface ErrorValue {
  code: string
  message: string
  /** An HTTP status worth passing on. */
  status?: number
  /** Seconds until it is worth trying again. */
  retryAfter?: number
  /** The path of the step that failed; its name stands in `message`. */
  step?: string
  /** What clients are not told: the words of what code of an application threw, those of its causes behind them. */
  detail?: string
}

const brand = Symbol.for('millrace.error')

/**
 * Every error that Millrace throws. `code` is stable and lower-case; `message` names the place and the cure, and is public:
 * throw one in a step type for what its clients may read.
 */
export class MillraceError extends Error {
  override readonly name = 'MillraceError'
  readonly code: string
  readonly status: number | undefined
  readonly retryAfter: number | undefined
  readonly step: string | undefined
  readonly detail: string | undefined

  constructor(code: string, message: string, options: Omit<ErrorValue, 'code' | 'message'> & { cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.code = code
    this.status = options.status
    this.retryAfter = options.retryAfter
    this.step = options.step
    this.detail = options.detail
  }

  get [brand](): true {
    return true
  }

  /**
   * Bundlers may put several copies of this module into one process: an error that a step throws with the class of another
   * copy is a `MillraceError` here too. Subclasses are compared as usual.
   */
  static override [Symbol.hasInstance](value: unknown): boolean {
    if (this !== MillraceError) return Function.prototype[Symbol.hasInstance].call(this, value)
    return typeof value === 'object' && value !== null && brand in value
  }
}

/** What clients are told of what was not written for them. */
export const unexplained = 'Something went wrong.'

/** Whatever was thrown as an error of ours: one already, or one that tells clients nothing but the code. */
export function toMillraceError(thrown: unknown, code = 'error'): MillraceError {
  if (thrown instanceof MillraceError) return thrown
  return new MillraceError(code, unexplained, { detail: wordsOf(thrown), cause: thrown })
}

/** Anything thrown, or recorded before → what may be recorded of it. Never throws, whatever it is given. */
export function toErrorValue(error: unknown, code = 'error'): ErrorValue {
  const known = error instanceof MillraceError || isErrorValue(error) ? error : toMillraceError(error, code)
  const value = toPublicError(known)
  if (known.step !== undefined) value.step = known.step
  if (known.detail !== undefined) value.detail = known.detail
  return value
}

/** What a client may see of it. */
export function toPublicError({ code, message, status, retryAfter }: MillraceError | ErrorValue): ErrorValue {
  const value: ErrorValue = { code, message }
  if (status !== undefined) value.status = status
  if (retryAfter !== undefined) value.retryAfter = retryAfter
  return value
}

/** The reverse of {@link toErrorValue}. */
export function fromErrorValue({ code, message, ...options }: ErrorValue): MillraceError {
  return new MillraceError(code, message, options)
}

const longest = { message: 2000, detail: 8000 }

/** An error's texts may be a page. To be cut when secrets are taken out: the piece of one that a cut leaves is found by nobody. */
export function cutError(value: ErrorValue): ErrorValue {
  const { message, detail = '' } = value
  if (message.length <= longest.message && detail.length <= longest.detail) return value
  const cut = (text: string, length: number) => (text.length > length ? `${text.slice(0, length)}…` : text)
  return {
    ...value,
    message: cut(message, longest.message),
    ...(value.detail === undefined ? undefined : { detail: cut(detail, longest.detail) }),
  }
}

/** All there is to say, for those who read the log: the message and the detail behind it. */
export function wholeMessage(error: unknown): string {
  if (!(error instanceof MillraceError) && !isErrorValue(error)) return wordsOf(error)
  const { message, detail } = error
  return detail === undefined ? message : `${message.replace(/\.$/u, '')}: ${detail}`
}

/** A line to show for anything thrown. Not for clients: see {@link toErrorValue}. Never throws. */
export function messageOf(error: unknown): string {
  try {
    if (typeof error === 'string') return error
    const { message } = (error ?? {}) as { message?: unknown }
    if (typeof message === 'string') return message
    return JSON.stringify(error) ?? String(error)
  } catch {
    return Object.prototype.toString.call(error)
  }
}

function isErrorValue(value: unknown): value is ErrorValue {
  if (typeof value !== 'object' || value === null || value instanceof Error) return false
  try {
    const { code, message } = value as Partial<ErrorValue>
    return typeof code === 'string' && typeof message === 'string'
  } catch {
    return false
  }
}
