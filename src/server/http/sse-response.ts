/** A stream of server-sent events that is no run's answer: for monitors. */
import { toBody, type BodySource } from '../../answer/streamed-body.ts'

export function sseResponse(source: BodySource): Response {
  const headers = {
    'content-type': 'text/event-stream',
    'cache-control': 'no-cache, no-transform',
    'x-accel-buffering': 'no',
  }
  return new Response(toBody(source), { headers })
}

/** Calls `tell` when nothing was written for a while, and again until it is stopped. */
export function watchSilence(ms: number, tell: () => void): { wrote(): void; stop(): void } {
  let lastWrite = performance.now()
  let timer: ReturnType<typeof setTimeout> | undefined

  function watch(): void {
    timer = setTimeout(() => {
      if (performance.now() - lastWrite >= ms / 2) tell()
      watch()
    }, ms)
    timer.unref?.()
  }

  watch()
  return {
    wrote: () => void (lastWrite = performance.now()),
    stop: () => clearTimeout(timer),
  }
}
