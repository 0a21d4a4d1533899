/** The callbacks an agent names: called once, never trusted. */
import { toErrorValue } from '../part/error.ts'
import { joinPath } from '../part/path.ts'
import type { Pipeline } from '../pipeline/pipeline.ts'
import type { Registry } from './ports.ts'
import type { Scope } from './scope.ts'

/** What a callback throws becomes a `warning`. */
export function createInvoke(registry: Registry, emit: Scope['emit']): Scope['invoke'] {
  return async (name, event) => {
    if (name === undefined) return
    try {
      await registry.callbacks.get(name)?.(event)
    } catch (error) {
      const { message } = toErrorValue(error)
      emit('', { type: 'warning', code: 'callback-failed', message: `Callback ${name} threw: ${message}` })
    }
  }
}

/** `onAbort` with the text so far, `onError` with the failure: once per `llm` step that was cut off. */
export async function tellAbort(
  { state, invoke }: Pick<Scope, 'state' | 'invoke'>,
  pipeline: Pipeline,
  { error, aborted, graceMs }: { error: unknown; aborted: boolean; graceMs: number },
): Promise<void> {
  const calls = pipeline.workflow.concat(pipeline.after).map(async (step) => {
    if (step.type !== 'llm') return
    const path = [joinPath('main', step.id), joinPath('after', step.id)].find(
      (at) => state.open.steps.has(at) || (!aborted && state.finished.get(at)?.error !== undefined),
    )
    if (path === undefined) return
    const { onAbort, onError } = step.config
    if (!aborted) return invoke(onError, { error })
    const text = state
      .turns(path)
      .list.flatMap(({ content }) => content)
      .map((part) => (part.type === 'text' ? part.text : ''))
      .join('')
    return invoke(onAbort, { text, reason: toErrorValue(error).message })
  })
  await within(Promise.all(calls), graceMs)
}

async function within(work: Promise<unknown>, ms: number): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined
  await Promise.race([work, new Promise((resolve) => (timer = setTimeout(resolve, ms)))])
  clearTimeout(timer)
}
