import { MillraceError } from '../../part/error.ts'

/** Nothing was done and the connection has been closed: the same call may be made on a new one. */
export const sessionEnded = 'mcp-session-ended'

export function stoppedError(signal: AbortSignal): MillraceError {
  if (signal.reason instanceof MillraceError) return signal.reason
  return new MillraceError('aborted', 'The call was stopped.', { cause: signal.reason })
}

/** Lets one of several who wait for the same go without ending it for the others. */
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
