/** Metrics of the processes of a shared store, for Prometheus. The number of series does not depend on the number of processes. */
import type { FleetProcess, Store } from '../part/log.ts'
import { createCounter, gauge } from '../record/metrics/families.ts'
import { inTime } from './serve-report.ts'
import type { monitorEventLoopDelay } from 'node:perf_hooks'

/** Empty without a shared store. */
export async function fleetMetrics({ fleet, status }: Store): Promise<string> {
  const [processes, store] = await Promise.all([inTime(fleet.processes?.()), inTime(status?.())])
  let text = ''
  if (processes !== undefined) {
    const self = processes.find((each) => each.self)
    const count = (is: (each: FleetProcess) => boolean) => processes.filter(is).length
    const states = createCounter('millrace_fleet_processes', 'Processes that share the store.', 'gauge')
    states.add(
      { state: 'alive' },
      count(({ alive, draining }) => alive && !draining),
    )
    states.add(
      { state: 'draining' },
      count(({ alive, draining }) => alive && draining),
    )
    states.add(
      { state: 'dead' },
      count(({ alive }) => !alive),
    )
    text += states.text()
    text += gauge('millrace_fleet_owned_runs', 'Active runs that this process owns.', self?.runs ?? 0)
    text += gauge(
      'millrace_fleet_beat_age_seconds',
      'Since the store answered the last beat of this process.',
      (self?.beatAgeMs ?? 0) / 1000,
    )
  }
  if (store === undefined) return text
  const { connected, reconnects, clockAheadMs, claims, takeovers, pending, commits, memory } = store
  const counters: [string, string, number, Record<string, string>?][] = [
    ['millrace_store_reconnects_total', 'Reconnects to the store.', reconnects],
    ['millrace_store_takeovers_total', 'Runs that this process went on with after another one.', takeovers],
    ['millrace_store_commits_total', 'Writes that the store has confirmed.', commits.count],
    ['millrace_store_commit_seconds_total', 'Time that these writes took.', commits.seconds],
  ]
  for (const [name, help, value] of counters) {
    const counter = createCounter(name, help)
    counter.add({}, value)
    text += counter.text()
  }
  const claimed = createCounter('millrace_store_claims_total', 'Claims of runs by this process.')
  claimed.add({ result: 'won' }, claims.won)
  claimed.add({ result: 'refused' }, claims.refused)
  text += claimed.text()
  text += gauge('millrace_store_pending_writes', 'Writes of this process that wait for the store.', pending)
  text += gauge('millrace_store_connected', 'Whether the store is connected.', connected ? 1 : 0)
  const ahead = 'By how much the clock of this machine is ahead of that of the store.'
  text += gauge('millrace_store_clock_ahead_seconds', ahead, clockAheadMs / 1000)
  text += gauge('millrace_store_commit_p50_seconds', 'Of the last 500 writes.', commits.p50Seconds)
  text += gauge('millrace_store_commit_p99_seconds', 'Of the last 500 writes.', commits.p99Seconds)
  if (memory === undefined) return text
  return (
    text +
    gauge('millrace_store_memory_bytes', 'Memory that the store uses.', memory.usedBytes) +
    gauge('millrace_store_memory_limit_bytes', 'Memory that the store may use; 0: no limit.', memory.maxBytes)
  )
}

/* Metrics of the server's process, for Prometheus: event loop lag, open streams, refused starts. */

/** Sampling interval of the lag, in ms. */
const resolution = 20

export function createProcessMetrics(streams: () => number) {
  const limited = createCounter('millrace_rate_limited_total', 'Starts of runs that were refused by the rate limit.')
  limited.add({}, 0)
  const full = createCounter('millrace_stream_limited_total', 'Streams that were refused by the limit of open streams.')
  full.add({}, 0)
  let delay: ReturnType<typeof monitorEventLoopDelay> | undefined

  /** Since the last call. Measured from the first call on. */
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
        // The measured values include the timer's own interval.
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
