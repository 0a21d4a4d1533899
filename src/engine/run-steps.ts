/**
 * Runs lists of steps. New and continued runs use the same code: a step that has finished in the log returns its value again and emits nothing, so
 * the walk reaches the point where the run stopped.
 */
import { joinPath } from '../part/path.ts'
import type { Step, Pipeline } from '../pipeline/pipeline.ts'
import { revisitAgents } from './agent-tools.ts'
import { type StepRole, type StepOutcome, inContainer } from './container.ts'
import { isWrapped, stepValue } from './finished-step.ts'
import { asRecorded, type Scope, Suspended, emitError } from './scope.ts'
import { containers, runPipelineStep } from './step.ts'

/** Runs a list in order. Its value is that of the last step that ran. A step that is the answer ends the list. */
export async function runSteps(
  scope: Scope,
  steps: readonly Step[],
  base: string,
  place: StepRole,
): Promise<StepOutcome> {
  let outcome: StepOutcome = { value: null }
  for (const [i, step] of steps.entries()) {
    const path = joinPath(base, step.id)
    const finished = containers.has(step.type) && !isWrapped(scope, step) ? undefined : scope.state.finished.get(path)
    if (finished?.error !== undefined) throw asRecorded(finished.error)
    const last = place.last && i === steps.length - 1
    outcome = finished
      ? stepValue(scope, step, path, finished, place)
      : await runPipelineStep(scope, step, path, { ...place, last })
    const { agentTools = [] } = step.type === 'llm' || step.type === 'router' ? step.config : {}
    if (finished && agentTools.length > 0) await revisitAgents(scope, path, agentTools)
    if (step.result !== undefined) scope.variables.set(step.result, outcome.value)
    if (outcome.answer !== undefined) break
  }
  return outcome
}

/** Work that runs after the answer has ended. It is recorded, but changes neither the answer nor the outcome. */
export interface Leftover {
  /** Callbacks that must not delay the answer's end. */
  deferred: (() => Promise<void>)[]
  /** The `after` of called agents, in the order of their calls. */
  afters: { scope: Scope; pipeline: Pipeline; path: string }[]
}

/** Runs the deferred callbacks first, then the `after` steps of called agents, then the pipeline's own. */
export async function runLeftover(scope: Scope, pipeline: Pipeline, { deferred, afters }: Leftover): Promise<void> {
  for (const task of deferred.splice(0)) await task()
  for (const each of afters) {
    if (each.pipeline.after.length > 0) await runAfter(each.scope, each.pipeline, each.path)
  }
  if (pipeline.after.length > 0) await runAfter(scope, pipeline)
}

async function runAfter(scope: Scope, { after, text }: Pipeline, call?: string): Promise<void> {
  const place = { answers: false, last: false }
  const base = call === undefined ? 'after' : joinPath('after', call.replaceAll('/', '.'))
  try {
    if (call === undefined) await runSteps(scope, after, base, place)
    else
      await inContainer(scope, base, { stepType: 'call-agent', kind: 'container', pipeline: text }, () =>
        runSteps(scope, after, base, place),
      )
  } catch (error) {
    if (error instanceof Suspended || scope.signal.aborted) throw error
    emitError(scope, '', error)
  }
}
