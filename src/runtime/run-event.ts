/** Events about the outcome of each run, for monitoring. Derived from the same log that readers get. */
import { compact } from '../part/compact.ts'
import type { ErrorValue } from '../part/error.ts'
import type { Outcome } from '../part/part.ts'
import type { Usage } from '../part/usage.ts'
import type { RunState } from '../engine/state.ts'

/** Emitted when a run has ended or is suspended. */
export interface RunEvent {
  run: string
  agent: string
  threadId: string
  /** Where the request came from: a wire's name, or `library`, `cli`, `api`. */
  protocol: string
  outcome: Outcome | 'suspended'
  /** ms since its start, without the time in which it was suspended. */
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
    ...compact({ usage }),
    ...(cost === undefined || usage === undefined ? undefined : { cost }),
    ...compact({ error: why }),
    ...(end === undefined && why === undefined ? { requests: open.requests.size } : undefined),
  }
}
