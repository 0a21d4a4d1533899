/** The options of a runtime. */
import type { Store } from '../part/log.ts'
import type { Attribute } from '../engine/attribute.ts'
import type { Registry } from '../engine/registry.ts'
import type { Clock } from '../engine/run-clock.ts'
import type { RunEvent } from './run-event.ts'
import type { AgentSource } from './runtime.ts'
import type { DefaultTimeouts } from '../engine/time-limits.ts'

export interface RuntimeOptions {
  agents: AgentSource
  registry: Registry
  store: Store
  /** The variables that `$env.NAME` can read. Default: none. */
  env?: Readonly<Record<string, string>>
  /** Values that must never be recorded or sent. */
  secrets?: readonly string[]
  /** Keys whose values in inputs and outputs of tools must never be recorded or sent. */
  secretKeys?: readonly string[]
  /** Default: the time of the store, and this machine's steady clock. */
  clock?: Clock
  newRunId?: () => string
  /** ms that the steps of a stopped run have to settle. Default 300. */
  graceMs?: number
  /** ms that a client has to answer a request, before it is closed as unavailable. Default 24 hours. */
  requestDeadlineMs?: number
  /** ms without an entry after which a thread is closed, or `none`. Default 30 days. */
  closeThreadsAfterMs?: number | 'none'
  /** Timeouts for agents that set none, in ms or `none`. Default 2 minutes of silence and 15 minutes for a run. */
  defaultTimeouts?: DefaultTimeouts
  /** Called when a run has ended or is suspended, after that is stored. Must not throw. */
  onRun?: (event: RunEvent) => void
  /** Called with what an operator should know of this process. */
  warn?: (message: string) => void
  /** Executes no runs: what is answered or stopped here goes on in another process of the store. */
  postsOnly?: boolean
  /** For a process that handles uncaught errors and needs to know which run they belong to. */
  attribute?: Attribute
}

/** With the clock that all of the runtime goes by. */
export type TimedOptions = RuntimeOptions & { clock: Clock }
