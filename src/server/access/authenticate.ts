/** Asks the application who makes a request. Its failures are for the operator; the caller gets a 503, never an open door. */
import { MillraceError, wholeMessage } from '../../part/error.ts'
import { anyone, type Principal } from '../../part/principal.ts'
import type { Authenticated } from '../../project/config.ts'
import type { AccessRequest } from './access.ts'
import { accessUnavailable } from './refusals.ts'
import { startTimer, type StartTimer } from './timer.ts'
import { toldPrincipal } from './told-principal.ts'

export interface AuthenticateOptions {
  /** The claims that agents may read. Default: all that it says. */
  claims?: readonly string[] | undefined
  now: () => number
  /** Why somebody could not be asked: for the operator. */
  report: (error: unknown) => void
  startTimer?: StartTimer
  /** ms that an answer may take. Default 5000. */
  patienceMs?: number | undefined
}

/** Maximum number of callers of the application that are remembered. */
const mostKept = 10_000
/** What differs between requests of one caller, and says nothing of who it is. */
const passing = /^(?:accept|accept-encoding|content-.*|traceparent|tracestate|x-request-id|last-event-id|if-.*|range)$/u

/** Resolves with undefined for a request of nobody that the application knows. */
export function createAuthenticate(
  ask: (request: Request) => Authenticated | Promise<Authenticated>,
  { claims, now, report, startTimer: start = startTimer, patienceMs = 5000 }: AuthenticateOptions,
): (request: AccessRequest) => Promise<Principal | undefined> {
  const kept = new Map<string, { principal: Principal; until: number }>()

  function failed(why: string, cause?: unknown): MillraceError {
    report(new Error(`authenticate ${why}`, { cause }))
    return accessUnavailable()
  }

  /** Rejects with what the application threw. */
  async function answerTo(request: AccessRequest): Promise<Authenticated> {
    let stop = () => undefined as void
    const late = new Promise<never>((_, reject) => {
      stop = start(patienceMs, () => reject(new Error(`it took more than ${patienceMs} ms`)))
    })
    try {
      return await Promise.race([Promise.resolve().then(() => ask(request.request())), late])
    } catch (error) {
      throw failed(`has failed: ${wholeMessage(error)}`, error)
    } finally {
      stop()
    }
  }

  return async (request) => {
    const name = kept.size === 0 ? '' : nameOf(request)
    const known = kept.get(name)
    if (known !== undefined) {
      if (known.until > now()) return known.principal
      kept.delete(name)
    }
    const answer = await answerTo(request)
    if (answer === null || answer === undefined) return undefined
    if (answer === true) return anyone
    if (answer === false) throw new MillraceError('forbidden', 'This request is not allowed here.', { status: 403 })
    const principal = typeof answer === 'object' ? toldPrincipal(answer, claims) : undefined
    if (principal === undefined) {
      throw failed(
        'must return { id, tenant?, roles?, name?, claims? }, null, true or false. Ids have 1 to 256 characters and do not begin with key: or anonymous:',
      )
    }
    const { cacheSeconds } = answer
    if (typeof cacheSeconds === 'number' && cacheSeconds > 0) {
      if (kept.size >= mostKept) kept.delete(kept.keys().next().value!)
      const until = Math.min(now() + cacheSeconds * 1000, principal.expiresAt ?? Infinity)
      kept.set(nameOf(request), { principal, until })
    }
    return principal
  }
}

/** All by which an application may know somebody: headers, and the query, where an `EventSource` has its token. */
function nameOf({ headers, request }: AccessRequest): string {
  const { search } = new URL(request().url)
  return JSON.stringify([search, ...[...headers].filter(([name]) => !passing.test(name))])
}
