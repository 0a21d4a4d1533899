/** An error as it is recorded and sent: no stack, no cause, no secret. `status` is an HTTP status worth passing on. */
export interface ErrorValue {
  code: string
  message: string
  status?: number
  /** Seconds until it is worth trying again. */
  retryAfter?: number
}

/** Every error that Millrace throws. `code` is stable and lower-case; `message` names the place and the cure. */
export class MillraceError extends Error {
  override readonly name = 'MillraceError'
  readonly code: string
  readonly status: number | undefined
  readonly retryAfter: number | undefined

  constructor(code: string, message: string, options: { status?: number; retryAfter?: number; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.code = code
    this.status = options.status
    this.retryAfter = options.retryAfter
  }
}

/** Anything thrown → what may be recorded of it. Never throws, whatever it is given. */
export function toErrorValue(error: unknown, code = 'error'): ErrorValue {
  if (error instanceof MillraceError) {
    const value: ErrorValue = { code: error.code, message: error.message }
    if (error.status !== undefined) value.status = error.status
    if (error.retryAfter !== undefined) value.retryAfter = error.retryAfter
    return value
  }
  if (isErrorValue(error)) return error
  return { code, message: messageOf(error) }
}

/** A line to show for anything thrown. */
export function messageOf(error: unknown): string {
  if (error instanceof Error && error.message !== '') return error.message
  if (typeof error === 'string') return error
  if (typeof error === 'object' && error !== null && 'message' in error && typeof error.message === 'string') {
    return error.message
  }
  try {
    return JSON.stringify(error) ?? String(error)
  } catch {
    return Object.prototype.toString.call(error)
  }
}

function isErrorValue(value: unknown): value is ErrorValue {
  return (
    typeof value === 'object' &&
    value !== null &&
    !(value instanceof Error) &&
    typeof (value as ErrorValue).code === 'string' &&
    typeof (value as ErrorValue).message === 'string'
  )
}
