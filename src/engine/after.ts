/** Work that runs after the answer has ended. It is recorded, but changes neither the answer nor the outcome. */
import { joinPath } from '../part/path.ts'
import type { Pipeline } from '../pipeline/pipeline.ts'
import { inContainer } from './container.ts'
import { Suspended, emitError, type Scope } from './scope.ts'
import { runSteps } from './walk.ts'

export interface Leftover {
  /** Callbacks that must not hold back the answer's end. */
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
