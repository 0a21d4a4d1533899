/** `AbortSignal.any`, also where there is none: `@edge-runtime/vm` has not got it. */
export function anySignal(signals: AbortSignal[]): AbortSignal {
  if (typeof AbortSignal.any === 'function') return AbortSignal.any(signals)
  const controller = new AbortController()
  const aborted = signals.find((signal) => signal.aborted)
  if (aborted !== undefined) controller.abort(aborted.reason)
  else {
    for (const signal of signals) {
      signal.addEventListener('abort', () => controller.abort(signal.reason), { signal: controller.signal })
    }
  }
  return controller.signal
}
