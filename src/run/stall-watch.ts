/** Notices a model that says nothing: before its first content, and between two parts. One timer for a whole call. */
import { MillraceError } from '../part/error.ts'
import type { StepTimeouts } from '../pipeline/pipeline.ts'

export interface StallWatch {
  /** Aborts with `timed-out`. */
  readonly signal: AbortSignal
  /** Content came. Cheap: it is called for every delta. */
  alive(): void
  release(): void
}

/** Undefined when there is nothing to watch. */
export function createStallWatch({
  firstToken,
  idle,
}: Pick<StepTimeouts, 'firstToken' | 'idle'>): StallWatch | undefined {
  if (firstToken === undefined && idle === undefined) return undefined
  const controller = new AbortController()
  let timer: ReturnType<typeof setTimeout> | undefined
  let last: number | undefined

  const give = (ms: number, what: string) =>
    controller.abort(new MillraceError('timed-out', `The model said nothing for ${ms} ms ${what}.`))

  function look(): void {
    if (idle === undefined || last === undefined) return
    const silent = performance.now() - last
    if (silent >= idle) give(idle, 'in the middle of its answer')
    else timer = setTimeout(look, idle - silent)
  }

  if (firstToken !== undefined) timer = setTimeout(() => give(firstToken, 'before its first token'), firstToken)
  return {
    signal: controller.signal,
    alive() {
      if (last === undefined) {
        clearTimeout(timer)
        if (idle !== undefined) timer = setTimeout(look, idle)
      }
      last = performance.now()
    },
    release: () => clearTimeout(timer),
  }
}
