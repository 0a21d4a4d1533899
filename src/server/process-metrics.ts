/** What the process of a server does, for Prometheus: the lag of its event loop, its open streams, starts that were refused. */
import type { monitorEventLoopDelay } from 'node:perf_hooks'
import { createCounter, gauge } from '../record/metrics/families.ts'

/** How often the lag is measured, in ms. */
const resolution = 20

export function createProcessMetrics(streams: () => number) {
  const limited = createCounter('millrace_rate_limited_total', 'Starts of runs that were refused by the rate limit.')
  limited.add({}, 0)
  const full = createCounter('millrace_stream_limited_total', 'Streams that were refused by the limit of open streams.')
  full.add({}, 0)
  let delay: ReturnType<typeof monitorEventLoopDelay> | undefined

  /** Since the last call. Measured once somebody has asked. */
  function lag(): string {
    const names = ['mean', 'p50', 'p99', 'max'] as const
    const { mean = 0, max = 0 } = delay ?? {}
    const found = { mean, p50: delay?.percentile(50) ?? 0, p99: delay?.percentile(99) ?? 0, max }
    if (delay === undefined) {
      delay = process.getBuiltinModule('node:perf_hooks').monitorEventLoopDelay({ resolution })
      delay.enable()
    } else delay.reset()
    return names
      .map((name) => {
        // The timer's own interval is in what it measures.
        const ms = Math.max(0, (found[name] || 0) / 1e6 - resolution)
        return gauge(`nodejs_eventloop_lag_${name}_seconds`, 'Lag of the event loop since the last reading.', ms / 1000)
      })
      .join('')
  }

  return {
    refused: (what: 'start' | 'stream'): void => (what === 'start' ? limited : full).add({}),
    text: () =>
      lag() +
      gauge('millrace_active_streams', 'HTTP responses that are being streamed.', streams()) +
      limited.text() +
      full.text(),
    close: () => delay?.disable(),
  }
}
