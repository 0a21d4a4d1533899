/**
 * Errors, and their audience.
 *
 * A `message` is public: every client sees it. It is the message of a `MillraceError`, which is written for clients, or the
 * error that a provider or an MCP tool returned. Any other error (thrown by a step type, a tool or a package) may contain
 * internals: clients only learn that something failed. Its own message becomes the `detail`, which only the log contains.
 */

/**
 * An error as it is stored: without stack, secrets, and the fields in which packages keep headers and bodies. Wires for
 * clients send `message` and `code`; the log (and so `/api/runs`, `millrace logs`, a run's `result`) has all fields.
 */
export interface ErrorValue {
  code: string
  message: string
  /** An HTTP status to pass on. */
  status?: number
  /** Seconds to wait before a retry. */
  retryAfter?: number
  /** The path of the step that failed; `message` contains its name. */
  step?: string
  /** The quota that is used up, as the config names it: `perUser.tokensPerDay`. */
  which?: string
  /** Not sent to clients: the message of an error that application code threw, followed by those of its causes. */
  detail?: string
}

const brand = Symbol.for('millrace.error')

/**
 * Every error that Millrace throws. `code` is stable and lower-case; `message` names the place and the cure. The message is
 * public: throw a `MillraceError` in a step type to show clients a message of your own.
 */
export class MillraceError extends Error {
  override readonly name = 'MillraceError'
  readonly code: string
  readonly status: number | undefined
  readonly retryAfter: number | undefined
  readonly step: string | undefined
  readonly which: string | undefined
  readonly detail: string | undefined

  constructor(code: string, message: string, options: Omit<ErrorValue, 'code' | 'message'> & { cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.code = code
    this.status = options.status
    this.retryAfter = options.retryAfter
    this.step = options.step
    this.which = options.which
    this.detail = options.detail
  }

  get [brand](): true {
    return true
  }

  /**
   * Bundlers may put several copies of this module into one process: `instanceof` also accepts errors of another copy's
   * class. Subclasses are compared as usual.
   */
  static override [Symbol.hasInstance](value: unknown): boolean {
    if (this !== MillraceError) return Function.prototype[Symbol.hasInstance].call(this, value)
    try {
      return typeof value === 'object' && value !== null && brand in value
    } catch {
      // A proxy that throws.
      return false
    }
  }
}

/** The message that clients get for errors that were not written for them. */
export const unexplained = 'Something went wrong.'

/** Wraps anything thrown in a `MillraceError` that shows clients only the code; returns a `MillraceError` as it is. */
export function toMillraceError(thrown: unknown, code = 'error'): MillraceError {
  if (thrown instanceof MillraceError) return thrown
  return new MillraceError(code, unexplained, { detail: wordsOf(thrown), cause: thrown })
}

/** Converts anything thrown, or an `ErrorValue`, to the form that is stored. Never throws. */
export function toErrorValue(error: unknown, code = 'error'): ErrorValue {
  const known = error instanceof MillraceError || isErrorValue(error) ? error : toMillraceError(error, code)
  const value = toPublicError(known)
  if (known.step !== undefined) value.step = known.step
  if (known.detail !== undefined) value.detail = known.detail
  return value
}

/** The fields that clients may see. */
export function toPublicError({ code, message, status, retryAfter, which }: MillraceError | ErrorValue): ErrorValue {
  const value: ErrorValue = { code, message }
  if (status !== undefined) value.status = status
  if (retryAfter !== undefined) value.retryAfter = retryAfter
  if (which !== undefined) value.which = which
  return value
}

/** The reverse of {@link toErrorValue}. */
export function fromErrorValue({ code, message, ...options }: ErrorValue): MillraceError {
  return new MillraceError(code, message, options)
}

const longest = { message: 2000, detail: 8000 }

/** Truncates an error's texts. Call it after redaction: a truncated secret would not be recognized. */
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

/** The full text for readers of the log: the message followed by the detail. */
export function wholeMessage(error: unknown): string {
  if (!(error instanceof MillraceError) && !isErrorValue(error)) return wordsOf(error)
  const { message, detail } = error
  return detail === undefined ? message : `${message.replace(/\.$/u, '')}: ${detail}`
}

/** The message of anything thrown. Not for clients: see {@link toErrorValue}. Never throws. */
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

/*
 * Describes a thrown value as text. Uses messages, not arbitrary fields: packages keep requests, headers and bodies in fields
 * (`requestBodyValues`, `responseHeaders`, `config.headers`). Credentials in a message are recognized by their form and
 * removed; known secrets are removed by value when the text is recorded.
 */

/** Maximum depth of causes, and maximum number of errors of an `AggregateError`, that are included. */
const most = 5

/** Never throws. Appends causes after `; caused by: ` and the errors of an `AggregateError` in parentheses. */
export function wordsOf(thrown: unknown): string {
  try {
    return withoutCredentials(wordsAt(thrown, 0))
  } catch {
    // A getter or a proxy that throws.
    return 'an error that cannot be read'
  }
}

function wordsAt(thrown: unknown, depth: number): string {
  if (typeof thrown !== 'object' || thrown === null) return String(thrown)
  const { message, cause } = thrown as { message?: unknown; cause?: unknown }
  const own = typeof message === 'string' && message !== '' ? nameOf(thrown) + message : undefined
  const inside = depth < most && thrown instanceof AggregateError ? thrown.errors.slice(0, most) : []
  const beside = inside.map((each: unknown) => wordsAt(each, depth + 1)).join('; ')
  const text =
    [own, beside && (own === undefined ? beside : `(${beside})`)].filter(Boolean).join(' ') || fieldsOf(thrown)
  if (cause === undefined || cause === null || depth >= most) return text
  const why = wordsAt(cause, depth + 1)
  // Many packages repeat their cause in their own message.
  return text.includes(why) ? text : `${text}; caused by: ${why}`
}

/** `TypeError: `; empty for a plain `Error` and for values that are not errors. */
function nameOf(thrown: object): string {
  const { name } = thrown as { name?: unknown }
  return thrown instanceof Error && typeof name === 'string' && name !== 'Error' && name !== '' ? `${name}: ` : ''
}

const untold = /auth|cookie|key|token|secret|pass|credential|header|body|request/iu

/** Describes a value without a message by its primitive fields, such as `code`. */
function fieldsOf(thrown: object): string {
  const plain = Object.entries(thrown).filter(([name, value]) => {
    return ['string', 'number', 'boolean'].includes(typeof value) && !untold.test(name)
  })
  if (plain.length > 0) return JSON.stringify(Object.fromEntries(plain))
  return thrown instanceof Error ? thrown.name : 'an object without a message'
}

/** Removes user names and passwords in URLs, the values of secret URL parameters, and tokens after `Bearer` or `Basic`. */
export function withoutCredentials(text: string): string {
  return (
    text
      .replaceAll(/\b([a-z][\w+.-]{1,20}:\/\/)[^\s/?#]{1,500}@/giu, '$1')
      .replaceAll(/([?&][\w.-]{0,50}(?:key|token|secret|signature|sig|password|auth)=)[^&\s#"']+/giu, '$1…')
      // Our own keys.
      .replaceAll(/\bmr_[\w-]{40,}/gu, 'mr_…')
      .replaceAll(/\b(Bearer|Basic)\s+(?:(?=\S*\d)[\w.~+/=-]{6,}|[\w.~+/=-]{16,})/giu, '$1 …')
  )
}
