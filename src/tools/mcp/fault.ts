/** Errors of calls, and waiting that a signal ends. Apart from `connection.ts`, which loads the SDK. */
import { MillraceError } from '../../part/error.ts'

/** The call was not executed and the connection is closed: the call may be repeated on a new connection. */
export const sessionEnded = 'mcp-session-ended'

export function stoppedError(signal: AbortSignal): MillraceError {
  if (signal.reason instanceof MillraceError) return signal.reason
  return new MillraceError('aborted', 'The call was stopped.', { cause: signal.reason })
}

/** Waits for a shared promise until `signal` aborts, without affecting its other waiters. */
export async function unlessStopped<T>(shared: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return shared
  let stop = () => {}
  const stopped = new Promise<never>((_, reject) => {
    stop = () => reject(stoppedError(signal))
    if (signal.aborted) stop()
    signal.addEventListener('abort', stop)
  })
  try {
    return await Promise.race([shared, stopped])
  } finally {
    signal.removeEventListener('abort', stop)
  }
}

/** An error that was thrown here, such as `mcp-unauthorized`: the SDK hands it on, or as a cause. */
export function ownFault(error: unknown): MillraceError | undefined {
  return [error, (error as { cause?: unknown } | undefined)?.cause].find((each) => each instanceof MillraceError)
}
