/** Fails a run from outside of its steps: an error was thrown where nobody awaits it. */
import type { MillraceError } from '../part/error.ts'
import type { RunState } from '../engine/state.ts'

/**
 * `failed`: the run ends as failed. `completed`: its answer had ended, so it ends as completed; steps that still run are
 * stopped. `ending`: its outcome was decided before. `inactive`: it does not run in this process.
 */
export type FailEffect = 'failed' | 'completed' | 'ending' | 'inactive'

export function failRun(
  owner: { state: RunState; controller: AbortController } | undefined,
  error: MillraceError,
): FailEffect {
  if (owner === undefined || owner.state.open.suspended) return 'inactive'
  const { state, controller } = owner
  if (state.end !== undefined || controller.signal.aborted) return 'ending'
  controller.abort(error)
  return state.open.answered ? 'completed' : 'failed'
}
