/**
 * Quotas of users, tenants and keys: how many runs they may start, how many streams they may have open, and how many tokens and USD their runs may
 * use, over all processes of the store. docs/quotas.md says what is promised.
 */
import type { OpenAccount } from '../engine/run-account.ts'
import { MillraceError } from '../part/error.ts'
import type { Ledger } from '../part/ledger.ts'
import type { Limits, Permit } from '../part/limits.ts'
import { roleOf, runUserOf, type Principal, type RunUser } from '../part/principal.ts'
import type { QuotasConfig, QuotaUse } from '../part/quota.ts'
import { bookOf, fromUnits, holdersOf, spentKinds, type Holder } from './quota-windows.ts'
import { LedgerAccount, limitWords } from './run-account.ts'
import { createSpenders, type Gauge } from './spending.ts'

export interface Quotas {
  /** The error for a start that must wait, with `which` and `retryAfter`. Undefined if it may proceed, and then it is counted. */
  admitStart(principal: Principal): Promise<MillraceError | undefined>
  /** A place for a stream, or the error if there are too many. */
  occupyStream(principal: Principal): Promise<Permit | MillraceError>
  /** For the runtime. Absent if no quota is about tokens or USD. */
  openAccount?: OpenAccount
  /** The quotas that limit a principal. */
  usesOf(principal: Principal): Promise<QuotaUse[]>
}

export interface QuotasOptions {
  config: QuotasConfig
  ledger: Ledger
  limits: Limits
  /** Epoch ms, by the clock of the store. */
  now(): number
  onRefused?: (what: 'start' | 'stream') => void
}

const minute = 60_000
/** Seconds for `Retry-After`: a place may be free by then. */
const placeRetry = 5
const free: Permit = { leave: () => undefined }

export function createQuotas({ config, ledger, limits, now, onRefused }: QuotasOptions): Quotas {
  const holders = (user: Pick<RunUser, 'id' | 'key'>) => holdersOf(config, user)
  const spenders = createSpenders(ledger, holders)
  const spends = Object.values(config).some((quota) => spentKinds.some(({ name }) => quota[name] !== undefined))

  /** The quota that is used up for the longest. While the ledger cannot be read, nothing is: no run can start without the store anyway. */
  async function spent(user: RunUser): Promise<Gauge | undefined> {
    const at = now()
    const all = spenders.of(user, at)
    await Promise.all(all.map((spender) => spender.refresh(at, 0).catch(() => undefined)))
    const gauges = all.flatMap((spender) =>
      spender.gauges.filter((gauge) => gauge.sum + spender.ahead[gauge.unit] >= gauge.limit),
    )
    return gauges.toSorted((a, b) => b.end - a.end)[0]
  }

  const nameOf = (user: RunUser, { name }: Holder) => `${bookOf(user)}\n${name}`

  const openAccount: OpenAccount = (run) => {
    const all = spenders.of(run.user, now())
    return all.length === 0 ? undefined : new LedgerAccount({ ledger, spenders, now }, run, all)
  }

  return {
    ...(spends && { openAccount }),

    async admitStart(principal) {
      const user = runUserOf(principal)
      if (user === undefined) return undefined
      const gauge = spends ? await spent(user) : undefined
      if (gauge !== undefined) {
        onRefused?.('start')
        return startExceeded(gauge, now())
      }
      for (const holder of holders(user)) {
        const { runsPerMinute } = holder.quota
        if (runsPerMinute === undefined) continue
        const rate = { count: runsPerMinute, perMs: minute }
        const wait = await limits.take(`start:${nameOf(user, holder)}`, rate)
        if (wait === 0) continue
        onRefused?.('start')
        return rateExceeded(holder, runsPerMinute, wait)
      }
      return undefined
    },

    async occupyStream(principal) {
      const user = runUserOf(principal)
      if (user === undefined) return free
      const places: Permit[] = []
      const leave = () => {
        for (const place of places.splice(0)) place.leave()
      }
      for (const holder of holders(user)) {
        const { streams } = holder.quota
        if (streams === undefined) continue
        const place = await limits.occupy(`stream:${nameOf(user, holder)}`, streams)
        if (place === undefined) {
          leave()
          onRefused?.('stream')
          return tooManyStreams(holder, streams)
        }
        places.push(place)
      }
      return places.length === 0 ? free : { leave }
    },

    async usesOf(principal) {
      const user = runUserOf(principal)
      if (user === undefined) return []
      const at = now()
      const role = roleOf(principal)
      const all = spenders.of(user, at)
      await Promise.all(all.map((spender) => spender.refresh(at, 0)))
      const uses = holders(user).flatMap(({ kind, quota: { runsPerMinute, streams } }): QuotaUse[] => [
        ...(runsPerMinute === undefined ? [] : [{ which: `${kind}.runsPerMinute`, limit: runsPerMinute }]),
        ...(streams === undefined ? [] : [{ which: `${kind}.streams`, limit: streams }]),
      ])
      const spentOf = all.flatMap((spender) =>
        spender.gauges.map(({ which, unit, limit, sum, end }): QuotaUse => {
          // A sum over its tenant tells a user what the others use.
          if (role === 'user' && which.startsWith('perTenant.')) {
            return { which, limit: fromUnits(unit, limit), resetsAt: end }
          }
          return { which, limit: fromUnits(unit, limit), used: fromUnits(unit, sum), resetsAt: end }
        }),
      )
      return [...uses, ...spentOf]
    },
  }
}

function inSeconds(ms: number): number {
  return Math.max(1, Math.ceil(ms / 1000))
}

function again(seconds: number): string {
  return `Try again in ${seconds} second${seconds === 1 ? '' : 's'}.`
}

function startExceeded(gauge: Gauge, at: number): MillraceError {
  const { which, end } = gauge
  const retryAfter = inSeconds(end - at)
  const message = `A quota is used up: ${which} (${limitWords(gauge)}), until ${new Date(end).toISOString()}. ${again(retryAfter)}`
  return new MillraceError('quota-exceeded', message, { status: 429, retryAfter, which })
}

function rateExceeded({ kind }: Holder, runsPerMinute: number, wait: number): MillraceError {
  const which = `${kind}.runsPerMinute`
  const retryAfter = inSeconds(wait)
  const limit = `${runsPerMinute} run${runsPerMinute === 1 ? '' : 's'} per minute`
  const message = `A quota is used up: ${which} (${limit}). ${again(retryAfter)}`
  return new MillraceError('quota-exceeded', message, { status: 429, retryAfter, which })
}

function tooManyStreams({ kind }: Holder, streams: number): MillraceError {
  const which = `${kind}.streams`
  const message = `Too many streams are open: ${which} (${streams} at the same time). Close one, or try again later.`
  return new MillraceError('too-many-streams', message, { status: 429, retryAfter: placeRetry, which })
}
