/** Limits for starting runs and opening streams, over all processes of the store. */
import { MillraceError } from '../../part/error.ts'
import { threadMark, type Principal } from '../../part/principal.ts'
import type { Limits, Permit } from '../../part/limits.ts'

/** Who makes a request, and from where. */
export interface RequestCaller {
  principal: Principal
  address: string
}

/** The caller of a request, as a counter: a user, the holder of the server's key, or an address. */
export interface Caller {
  /** The key of the store's counter. It contains no secret. */
  id: string
  /** In messages: "from 10.0.0.1". */
  words: string
}

export interface Admission {
  /** The error for a start that must wait, with `retryAfter`. Undefined if it may proceed, and then it is counted. */
  start(caller: RequestCaller): Promise<MillraceError | undefined>
  /** A place for a stream, or the error if there are too many. */
  stream(caller: RequestCaller): Promise<Permit | MillraceError>
}

export interface AdmissionOptions {
  limits: Limits
  /** Default: unlimited. */
  runsPerMinute?: number | undefined
  /** Maximum number of open streams. Default: unlimited. */
  streams?: number | undefined
  callerOf(caller: RequestCaller): Caller
  onRefused?: (what: 'start' | 'stream') => void
}

const minute = 60_000
/** Seconds for `Retry-After`: a place may be free by then. */
const placeRetry = 5
const open: Permit = { leave: () => undefined }

export function createAdmission({ limits, runsPerMinute, streams, callerOf, onRefused }: AdmissionOptions): Admission {
  return {
    async start(by) {
      if (runsPerMinute === undefined) return undefined
      const { id, words } = callerOf(by)
      const wait = await limits.take(`start:${id}`, { count: runsPerMinute, perMs: minute })
      if (wait === 0) return undefined
      onRefused?.('start')
      const retryAfter = Math.ceil(wait / 1000)
      const cure = `Try again in ${retryAfter} second${retryAfter === 1 ? '' : 's'}.`
      const limit = `The limit is ${runsPerMinute} run${runsPerMinute === 1 ? '' : 's'} per minute.`
      return new MillraceError('rate-limited', `Too many runs were started ${words}. ${limit} ${cure}`, {
        status: 429,
        retryAfter,
      })
    },

    async stream(by) {
      if (streams === undefined) return open
      const { id, words } = callerOf(by)
      const place = await limits.occupy(`stream:${id}`, streams)
      if (place !== undefined) return place
      onRefused?.('stream')
      const limit = `The limit is ${streams} at the same time. Close one, or try again later.`
      return new MillraceError('too-many-streams', `Too many streams are open ${words}. ${limit}`, {
        status: 429,
        retryAfter: placeRetry,
      })
    },
  }
}

/** `keyHash`: a hash of the server's key, if it has one: then all requests have the same caller, whatever the address. */
export function createCallerOf(keyHash: string | undefined): (caller: RequestCaller) => Caller {
  const holder = keyHash === undefined ? undefined : { id: `key:${keyHash.slice(0, 16)}`, words: 'with this key' }
  return ({ principal, address }) => {
    if (principal.id !== '')
      return { id: `user:${threadMark(principal)}`, words: `by ${principal.name ?? principal.id}` }
    return holder ?? { id: `address:${address}`, words: `from ${address}` }
  }
}
