/** Ends a stream that is no delivery of a run when its reader may no longer read. Deliveries end with an error frame of their protocol. */
import type { BodySource } from '../../delivery/streamed-body.ts'
import type { RequestContext } from '../handler-context.ts'

export function untilExpired<Out extends string | Uint8Array>(
  source: BodySource<Out>,
  { onExpired }: Pick<RequestContext, 'onExpired'>,
): BodySource<Out> {
  let isOver = false
  const forget = onExpired(() => {
    isOver = true
    source.cancel()
  })
  const wrapped: BodySource<Out> = {
    next(give, fail) {
      if (isOver) return give(undefined)
      source.next(
        (piece) => {
          if (piece === undefined) forget()
          give(isOver ? undefined : piece)
        },
        (error) => {
          forget()
          if (isOver) give(undefined)
          else fail(error)
        },
      )
    },
    cancel() {
      forget()
      source.cancel()
    },
  }
  // Its silence is watched by the source itself.
  source.sendKeepAlive = (piece) => {
    if (!isOver) wrapped.sendKeepAlive?.(piece)
  }
  return wrapped
}
