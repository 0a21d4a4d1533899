/**
 * What the holders of quotas have spent, as this process knows it: the sums of the ledger, which all processes share, and what the model calls of
 * this process add to them. Sums are read again at most once a second for each holder.
 */
import type { Ledger } from '../part/ledger.ts'
import { bookOf, inUnits, spentKinds, sumKey, windowOf, type Holder, type QuotaKind } from './quota-windows.ts'

/** One quota of a holder. */
export interface Gauge extends QuotaKind {
  /** `perUser.tokensPerDay`. */
  which: string
  /** In units: tokens, or billionths of a USD. */
  limit: number
  /** The current window, epoch ms. */
  start: number
  end: number
  /** The sum of the ledger in it, as last seen. */
  sum: number
}

/** ms for which sums that were read are good enough. */
const fresh = 1000

export class Spender {
  readonly book: string
  readonly name: string
  readonly gauges: Gauge[]
  /** What the runs of this process have spent that is not in the ledger yet: calls in progress are estimated. */
  readonly ahead = { tokens: 0, usd: 0 }
  /** The number of runs that use it. */
  runs = 0
  private readonly ledger: Ledger
  private readAt = -Infinity
  private reading: Promise<void> | undefined = undefined
  /** Changes with each answer of the ledger to an addition: it is newer than a read that was sent before. */
  private version = 0

  constructor(ledger: Ledger, book: string, { kind, name, quota }: Holder, now: number) {
    this.ledger = ledger
    this.book = book
    this.name = name
    this.gauges = spentKinds.flatMap((each) => {
      const limit = quota[each.name]
      if (limit === undefined) return []
      const which = `${kind}.${each.name}`
      return [{ ...each, which, limit: inUnits(each.unit, limit), ...windowOf(each.window, now), sum: 0 }]
    })
  }

  /** The quota that is used up. `now`: epoch ms. */
  exceeded(now: number): Gauge | undefined {
    this.turn(now)
    // While the ledger cannot be read, the last sums count.
    if (now - this.readAt >= fresh) this.readNow(now).catch(() => undefined)
    return this.gauges.find((gauge) => gauge.sum + this.ahead[gauge.unit] >= gauge.limit)
  }

  /** Reads the sums, unless they are younger than `maxAge` ms. Rejects if the ledger cannot be read. */
  async refresh(now: number, maxAge = fresh): Promise<void> {
    this.turn(now)
    if (now - this.readAt >= maxAge || this.reading !== undefined) await this.readNow(now)
  }

  added(gauge: Gauge, start: number, sum: number): void {
    this.version++
    if (gauge.start === start) gauge.sum = sum
  }

  /** Begins new windows. */
  private turn(now: number): void {
    for (const gauge of this.gauges) {
      if (now < gauge.end && now >= gauge.start) continue
      Object.assign(gauge, windowOf(gauge.window, now))
      gauge.sum = 0
      this.readAt = -Infinity
    }
  }

  private readNow(now: number): Promise<void> {
    this.reading ??= this.ask(now).finally(() => (this.reading = undefined))
    return this.reading
  }

  private async ask(now: number): Promise<void> {
    this.readAt = now
    const { version } = this
    const starts = this.gauges.map(({ start }) => start)
    const sums = await this.ledger.read(
      this.book,
      this.gauges.map((gauge) => sumKey(gauge, gauge.start, this.name)),
    )
    if (this.version !== version) return
    for (const [i, gauge] of this.gauges.entries()) if (gauge.start === starts[i]) gauge.sum = sums[i]!
  }
}

export interface Spenders {
  /** Those of a user whom a quota of tokens or USD limits. */
  of(user: { id: string; tenant?: string; key?: string }, now: number): Spender[]
  /** Call it when a run no longer uses them. */
  release(spenders: readonly Spender[]): void
}

/** Number of holders above which those without a run are forgotten. */
const many = 10_000

export function createSpenders(ledger: Ledger, holdersOf: (user: { id: string; key?: string }) => Holder[]): Spenders {
  const known = new Map<string, Spender>()
  return {
    of(user, now) {
      const book = bookOf(user)
      return holdersOf(user).flatMap((holder) => {
        const id = JSON.stringify([book, holder.name])
        let spender = known.get(id)
        if (spender === undefined) {
          spender = new Spender(ledger, book, holder, now)
          if (spender.gauges.length === 0) return []
          if (known.size >= many) for (const [each, { runs }] of known) if (runs === 0) known.delete(each)
          known.set(id, spender)
        }
        return [spender]
      })
    },
    release(spenders) {
      for (const spender of spenders) spender.runs--
    },
  }
}
