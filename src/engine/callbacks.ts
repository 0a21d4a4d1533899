/** Calls the callbacks that an agent names. Their errors never fail the run. */
import { wholeMessage } from '../part/error.ts'
import { isUnder } from '../part/path.ts'
import { LazySet } from '../fold/lazy-map.ts'
import { stepsInside } from '../pipeline/calls.ts'
import type { ToolLoopConfig, Pipeline } from '../pipeline/pipeline.ts'
import type { Registry } from './registry.ts'
import type { Scope } from './scope.ts'
import { readStored } from './stored-pipeline.ts'

/** An error of a callback is recorded as a `warning`. */
export function createInvoke(registry: Registry, emit: Scope['emit']): Scope['invoke'] {
  return async (name, event) => {
    if (name === undefined) return
    try {
      await registry.callbacks.get(name)?.(event)
    } catch (error) {
      const message = `Callback ${name} threw: ${wholeMessage(error)}`
      emit('', { type: 'warning', code: 'callback-failed', message })
    }
  }
}

/** Calls `onAbort` with the text so far, once for each `llm` or `router` step that was stopped, at any depth. */
export async function notifyAbort(
  { state, invoke }: Pick<Scope, 'state' | 'invoke'>,
  pipeline: Pipeline,
  { error, aborted = true, graceMs, root: under = '', notified = new LazySet() }: AbortNotice,
): Promise<void> {
  const calls = state.toolLoops().map(async ({ root, list }) => {
    // A step that failed by itself is closed and has called `onError`.
    if (!state.open.steps.has(root) || !isUnder(root, under) || notified.has(root)) return
    notified.add(root)
    const config = findToolLoop(state, pipeline, root)
    if (!aborted) return invoke(config?.onError, { error })
    const text = list
      .flatMap(({ content }) => content)
      .map((part) => (part.type === 'text' ? part.text : ''))
      .join('')
    return invoke(config?.onAbort, { text, reason: wholeMessage(error) })
  })
  // A bug in here must not prevent the run's end.
  await within(Promise.allSettled(calls), graceMs)
}

interface AbortNotice {
  error: unknown
  /** Whether the step was stopped rather than failed. Default true. */
  aborted?: boolean
  graceMs: number
  /** Only steps at or under this path. */
  root?: string
  /** Paths of steps whose callback was called. */
  notified?: LazySet<string>
}

/** Finds a step's config by path, in the pipeline or in that of the innermost called agent around the step. */
function findToolLoop(
  { calledPipelines }: Scope['state'],
  pipeline: Pipeline,
  path: string,
): ToolLoopConfig | undefined {
  const calls = [...calledPipelines].filter(([at]) => path.startsWith(`${at}/`))
  const innermost = calls.toSorted(([a], [b]) => b.length - a.length)[0]
  const around = innermost === undefined ? pipeline : readStored(innermost[1])
  const id = path.slice(path.lastIndexOf('/') + 1)
  const steps = around === undefined ? [] : [...around.workflow, ...around.after]
  for (let step = steps.pop(); step !== undefined; step = steps.pop()) {
    if (step.id === id && (step.type === 'llm' || step.type === 'router')) return step.config
    steps.push(...stepsInside(step))
  }
  return undefined
}

async function within(work: Promise<unknown>, ms: number): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined
  await Promise.race([work, new Promise((resolve) => (timer = setTimeout(resolve, ms)))])
  clearTimeout(timer)
}
