/** What a runtime is made of. */
import type { Store } from '../part/log.ts'
import type { Attribute } from './attribute.ts'
import type { Registry } from './ports.ts'
import type { Clock } from './run-clock.ts'
import type { RunEvent } from './run-event.ts'
import type { AgentSource } from './runtime.ts'
import type { DefaultTimeouts } from './time-limits.ts'

export interface RuntimeOptions {
  agents: AgentSource
  registry: Registry
  store: Store
  /** What `$env.NAME` may see. Default: nothing. */
  env?: Readonly<Record<string, string>>
  /** Values that must never be recorded or sent. */
  secrets?: readonly string[]
  clock?: Clock
  newRunId?: () => string
  /** ms that a stopped run's steps get to settle; default 300. */
  graceMs?: number
  /** ms that a client has to answer a request before it is closed as unavailable; default 24 hours. */
  requestDeadlineMs?: number
  /** What holds where an agent sets no timeouts: ms or `none`; default 2 minutes of silence, 15 minutes for a run. */
  defaultTimeouts?: DefaultTimeouts
  /** Called when a run has ended or waits for a client, once that is stored. Must not throw. */
  onRun?: (event: RunEvent) => void
  /** For a process that catches errors which nobody awaits, and wants to know which run they belong to. */
  attribute?: Attribute
}
