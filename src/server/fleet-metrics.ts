/** What the processes of a shared store do, for Prometheus. There are as few series however many processes there are. */
import type { FleetProcess, Store } from '../part/log.ts'
import { createCounter, gauge } from '../record/metrics/families.ts'
import { inTime } from './serve-report.ts'

/** Empty where nothing is shared. */
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
