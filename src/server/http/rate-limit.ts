/**
 * Limits how many runs each address may start in a minute (GCRA: one number per address). An address that has been silent may
 * start all of them at once; after that one every `60 / runsPerMinute` seconds.
 */
import { MillraceError } from '../../part/error.ts'

/** The error for a start that must wait, with `retryAfter`. Undefined if it may go ahead, which counts it. */
export type RateLimit = (address: string) => MillraceError | undefined

const minute = 60_000
/** Addresses to remember before those that are idle are looked for. */
const many = 1000

/** `now`: ms of a steady clock. */
export function createRateLimit(runsPerMinute: number, now: () => number = () => performance.now()): RateLimit {
  const gap = minute / runsPerMinute
  /** When an address would have used what it started, at a steady pace. */
  const usedUntil = new Map<string, number>()
  let mostAddresses = many

  function forgetIdle(at: number): void {
    for (const [address, until] of usedUntil) if (until <= at) usedUntil.delete(address)
    mostAddresses = Math.max(many, 2 * usedUntil.size)
  }

  return (address) => {
    const at = now()
    const from = Math.max(usedUntil.get(address) ?? at, at)
    // With a tolerance, because the sums of fractions are not exact.
    const wait = from + gap - minute - at
    if (wait > 1e-3) {
      const retryAfter = Math.ceil(wait / 1000)
      const cure = `Try again in ${retryAfter} second${retryAfter === 1 ? '' : 's'}.`
      const limit = `The limit is ${runsPerMinute} run${runsPerMinute === 1 ? '' : 's'} per minute.`
      return new MillraceError('rate-limited', `Too many runs were started from ${address}. ${limit} ${cure}`, {
        status: 429,
        retryAfter,
      })
    }
    usedUntil.set(address, from + gap)
    if (usedUntil.size > mostAddresses) forgetIdle(at)
    return undefined
  }
}
