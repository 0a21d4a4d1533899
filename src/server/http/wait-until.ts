/** The `waitUntil` of platforms that end a request's work with it: from the options, or from the request. */
import { isBoundToRequest } from '../../async/bound-to-request.ts'
import { MillraceError } from '../../part/error.ts'

/** Keeps the request's work alive until the promise has settled. */
export type WaitUntil = (ended: Promise<unknown>) => void

/** Cloudflare passes this to a `fetch` function as its third argument. */
export interface RequestExecution {
  waitUntil?: WaitUntil
}

const executions = new WeakMap<Request, RequestExecution>()

export function noteExecution(request: Request, execution: RequestExecution | undefined): void {
  if (typeof execution?.waitUntil === 'function') executions.set(request, execution)
}

/** The request's own `waitUntil`. Called as a method: Cloudflare's refuses another `this`. */
export function waitUntilOf(request: Request): WaitUntil | undefined {
  const execution = executions.get(request)
  return execution && ((ended) => execution.waitUntil!(ended))
}

/** Keeps the run alive, if the platform needs that. Only there is `run.result` read: it reads the log. */
export function keepRunning(waitUntil: WaitUntil | undefined, run: { readonly result: Promise<unknown> }): void {
  if (waitUntil !== undefined) waitUntil(run.result)
}

/** For a run without readers. Throws `no-wait-until` where it would end with the response. */
export function checkWaits(given: WaitUntil | undefined, what: string): void {
  if (given !== undefined || !isBoundToRequest()) return
  throw new MillraceError(
    'no-wait-until',
    `${what}: this platform stops a run with its response. Pass waitUntil to createHandler, or call the handler with the platform's (request, env, ctx).`,
  )
}
