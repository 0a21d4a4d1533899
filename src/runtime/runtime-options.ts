/** The options of a runtime. */
import type { Store } from '../part/log.ts'
import type { Attribute } from '../engine/step-name.ts'
import type { Registry } from '../engine/registry.ts'
import type { Clock } from '../engine/run-clock.ts'
import type { OpenAccount } from '../engine/run-account.ts'
import type { AgentSource } from './runtime.ts'
import type { DefaultTimeouts } from '../engine/limits.ts'
import { omitUndefined } from '../part/omit-undefined.ts'
import type { ErrorValue } from '../part/error.ts'
import type { Outcome } from '../part/part.ts'
import type { Usage } from '../part/usage.ts'
import type { SignIns } from '../tools/mcp/auth/sign-ins.ts'
import type { RunState } from '../engine/state.ts'

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
  /** ms that a client has to reply to a request, before it is closed as unavailable. Default 24 hours. */
  requestDeadlineMs?: number
  /** ms without an entry after which a thread is closed, or `none`. Default 30 days. */
  closeThreadsAfterMs?: number | 'none'
  /** Timeouts for agents that set none, in ms or `none`. Default 2 minutes of silence and 15 minutes for a run. */
  defaultTimeouts?: DefaultTimeouts
  /** Called when a run has ended or is suspended, after that is stored. Must not throw. */
  onRun?: (event: RunEvent) => void
  /** Called with messages for an operator. */
  warn?: (message: string) => void
  /** Executes no runs: another process of the store continues runs that get a reply or a stop. */
  postsOnly?: boolean
  /** For a process that handles uncaught errors and needs to know which run they belong to. */
  attribute?: Attribute
  /** The quotas of whoever starts a run. Default: none. */
  openAccount?: OpenAccount | undefined
}

/** With the clock of the whole runtime, and the sign-ins of people with MCP servers. */
export type TimedOptions = RuntimeOptions & { clock: Clock; signIns?: SignIns | undefined }

/* Events about the outcome of each run, for monitoring. Derived from the same log that readers get. */

/** Emitted when a run has ended or is suspended. */
export interface RunEvent {
  run: string
  agent: string
  threadId: string
  /** Where the request came from: a wire's name, or `library`, `cli`, `api`, `page`. */
  protocol: string
  outcome: Outcome | 'suspended'
  /** ms since its start, without suspensions. */
  ms: number
  usage?: Usage
  /** USD. */
  cost?: number
  error?: ErrorValue
  /** How many requests are open, if the run is suspended. */
  requests?: number
}

/** `error`: why the run's log has no end. */
export function notify(onRun: ((event: RunEvent) => void) | undefined, state: RunState, error?: ErrorValue): void {
  const event = onRun === undefined ? undefined : toRunEvent(state, error)
  if (event !== undefined) onRun!(event)
}

/** Undefined for a run that has not started. */
function toRunEvent(state: RunState, error?: ErrorValue): RunEvent | undefined {
  const { start, end, usage, open } = state
  if (start === undefined) return undefined
  const cost = end === undefined ? state.cost : end.cost
  const why = end?.error ?? error
  return {
    run: start.runId,
    agent: start.agent,
    threadId: start.threadId,
    protocol: start.protocol,
    outcome: end?.outcome ?? (why === undefined ? 'suspended' : 'failed'),
    ms: Math.max(0, state.lastTimestamp - start.timestamp - state.suspendedSince(start.timestamp)),
    ...omitUndefined({ usage }),
    ...(cost === undefined || usage === undefined ? undefined : { cost }),
    ...omitUndefined({ error: why }),
    ...(end === undefined && why === undefined ? { requests: open.requests.size } : undefined),
  }
}
