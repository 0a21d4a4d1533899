/**
 * The account of one run: counts each `usage` entry of its log once, and ends the run when a quota is used up.
 *
 * An entry is counted when it is stored, under the run's mark in the ledger, which is the `seq` of the last counted one. Whoever goes on with the run
 * after a crash counts the entries of its log beyond the mark; one that both count has been counted already. `run-end` is stored after all of them
 * are counted. The window of an entry is that of its own time, so that it is the same whoever counts it.
 */
import { pause } from '../async/pause.ts'
import type { AccountedRun, RunAccount } from '../engine/run-account.ts'
import type { Limit, Speaking } from '../engine/limits.ts'
import type { EntryOf } from '../part/entry.ts'
import { MillraceError } from '../part/error.ts'
import type { Ledger } from '../part/ledger.ts'
import { bookOf, fromUnits, nanoUsd, sumKey, tokensOf, windowOf, type QuotaKind } from './quota-windows.ts'
import type { Gauge, Spender, Spenders } from './spending.ts'

const day = 86_400_000
/** The longest window, and a day for clocks that differ: what was used before that counts for nothing any more. */
const markFor = 32 * day
/** An owner that was paused may still count for a run that has ended. */
const markForEnded = day / 24
/** ms within which a run that ends waits for the ledger. */
const patience = 5000
/** Attempts to count an entry, at growing intervals: several minutes. */
const mostAttempts = 12

interface Noted {
  seq: number
  time: number
  tokens: number
  /** Billionths of a USD. */
  usd: number
}

export interface AccountContext {
  ledger: Ledger
  spenders: Spenders
  /** Epoch ms. */
  now(): number
}

/** A class, not closures: one for each open stream of a user (decisions/0028). */
export class LedgerAccount implements RunAccount, Limit {
  readonly watches = true
  readonly counts: boolean
  readonly ready: Promise<void>
  private readonly context: AccountContext
  private readonly run: AccountedRun
  private readonly spenders: Spender[]
  private readonly controller = new AbortController()
  /** Not counted yet, in order. */
  private readonly pending: Noted[] = []
  private storedSeq = 0
  private working: Promise<void> | undefined = undefined
  private hasCounted = false
  /** What the spenders have of this run in `ahead`. */
  private readonly ahead = { tokens: 0, usd: 0 }
  private isClosed = false
  private isLeft = false
  /** Entries of an earlier process come first: those behind the mark count no more. */
  private isPrepared = false
  private failures = 0

  constructor(context: AccountContext, run: AccountedRun, spenders: Spender[]) {
    this.context = context
    this.run = run
    this.spenders = spenders
    this.counts = spenders.some(({ gauges }) => gauges.some(({ unit }) => unit === 'usd'))
    for (const spender of spenders) spender.runs++
    this.ready = this.prepare()
  }

  get limit(): Limit {
    return this
  }

  get signal(): AbortSignal {
    return this.controller.signal
  }

  readonly check = (): void => {
    const { signal } = this.controller
    if (signal.aborted) throw signal.reason
    this.measure()
    const now = this.context.now()
    for (const spender of this.spenders) {
      const gauge = spender.exceeded(now)
      if (gauge === undefined) continue
      this.controller.abort(runExceeded(gauge))
      throw signal.reason
    }
  }

  readonly checkStep = (): void => this.check()

  readonly hasRoom = (): boolean => {
    if (this.controller.signal.aborted) return false
    this.measure()
    const now = this.context.now()
    return [...this.spenders].every((spender) => spender.exceeded(now) === undefined)
  }

  readonly release = (): void => undefined

  noted({ seq, timestamp, usage, cost = 0 }: EntryOf<'usage'>): void {
    this.pending.push({ seq, time: timestamp, tokens: tokensOf(usage), usd: Math.round(cost * nanoUsd) })
    this.measure()
  }

  stored(seq: number): void {
    this.storedSeq = seq
    if (this.pending.length > 0) this.work()
  }

  async counted(): Promise<void> {
    await this.ready
    if (this.working === undefined) return
    const over = new AbortController()
    await Promise.race([this.working, pause(patience, over.signal)])
    over.abort()
  }

  async close(hasEnded: boolean): Promise<void> {
    if (this.isClosed) return
    this.isClosed = true
    await this.counted()
    void this.leave(hasEnded)
  }

  private async leave(hasEnded: boolean): Promise<void> {
    await this.working
    this.pending.length = 0
    this.isLeft = true
    this.measure()
    this.context.spenders.release(this.spenders)
    if (!hasEnded || !this.hasCounted) return
    const once = { key: this.run.id, position: Number.MAX_SAFE_INTEGER, until: this.context.now() + markForEnded }
    // If that fails, the mark stays for longer.
    await this.context.ledger.add(this.book, [], once).catch(() => undefined)
  }

  private get book(): string {
    return bookOf(this.run.user)
  }

  /** Learns the sums, and counts what an earlier process has not. */
  private async prepare(): Promise<void> {
    const now = this.context.now()
    const reading = Promise.all(this.spenders.map((spender) => spender.refresh(now))).catch(() => undefined)
    const { calls, start } = this.run.state
    // What a fork shares was counted where it happened, and what was recorded elsewhere is of nobody here.
    const from = Math.max(start?.forkedFrom?.seq ?? 0, start?.foreign ?? 0)
    const earlier = calls.filter(({ seq }) => seq > from)
    if (earlier.length > 0) {
      const mark = await this.context.ledger.mark(this.book, this.run.id).catch(() => 0)
      const missed = earlier.filter(({ seq }) => seq > mark)
      if (mark > 0) this.hasCounted = true
      // Those that were noted meanwhile are behind them.
      const noted = this.pending.splice(0)
      for (const entry of missed) if (entry.seq < (noted[0]?.seq ?? Infinity)) this.noted(entry)
      this.pending.push(...noted)
      this.storedSeq = Math.max(this.storedSeq, missed.at(-1)?.seq ?? 0)
    }
    this.isPrepared = true
    this.work()
    await reading
  }

  /** Tells the spenders of this run what it has spent beyond the ledger. */
  private measure(): void {
    let tokens = 0
    let usd = 0
    for (const call of this.isLeft ? [] : this.run.speaking.values()) {
      const input = Math.ceil(call.inputCharacters / 4)
      const output = Math.ceil(call.outputCharacters / 4)
      tokens += input + output
      usd += priceOf(call, input, output)
    }
    for (const each of this.pending) {
      tokens += each.tokens
      usd += each.usd
    }
    const { ahead } = this
    for (const { ahead: all } of this.spenders) {
      all.tokens += tokens - ahead.tokens
      all.usd += usd - ahead.usd
    }
    ahead.tokens = tokens
    ahead.usd = usd
  }

  private work(): void {
    if (!this.isPrepared || this.working !== undefined || !this.isDue()) return
    this.working = this.countAll().finally(() => {
      this.working = undefined
      // More was stored while the last one ended.
      this.work()
    })
  }

  private isDue(): boolean {
    const [first] = this.pending
    return first !== undefined && first.seq <= this.storedSeq && this.failures < mostAttempts
  }

  private async countAll(): Promise<void> {
    while (this.isDue()) {
      try {
        await this.count(this.pending[0]!)
        this.failures = 0
      } catch {
        // It may be sent again: it counts once.
        await pause(++this.failures <= 2 ? 0 : 100 * 2 ** this.failures, undefined, { background: true })
      }
    }
  }

  private async count(noted: Noted): Promise<void> {
    const { seq, time } = noted
    const places = this.spenders.flatMap((spender) =>
      spender.gauges.map((gauge) => ({ spender, gauge, ...windowOf(gauge.window, time) })),
    )
    const now = this.context.now()
    const open = places.filter(({ gauge, end }) => noted[gauge.unit] !== 0 && end > now)
    const amounts = open.map(({ spender, gauge, start, end }) => {
      // A minute more, for processes whose clocks are behind.
      return { key: sumKey(gauge, start, spender.name), amount: noted[gauge.unit], until: end + 60_000 }
    })
    const once = { key: this.run.id, position: seq, until: Math.max(time, now) + markFor }
    const sums = await this.context.ledger.add(this.book, amounts, once)
    this.hasCounted = true
    this.pending.shift()
    for (const [i, { spender, gauge, start }] of open.entries()) spender.added(gauge, start, sums[i]!)
    this.measure()
  }
}

function priceOf({ price }: Speaking, input: number, output: number): number {
  return price === undefined ? 0 : Math.round((input * price.input + output * price.output) * nanoUsd)
}

const windowWords = { minute: 'minute', day: 'day (UTC)', month: 'month (UTC)' }

/** `200000 tokens per day (UTC)`. */
export function limitWords({ unit, window, limit }: QuotaKind & { limit: number }): string {
  return `${fromUnits(unit, limit)} ${unit === 'usd' ? 'USD' : 'tokens'} per ${windowWords[window]}`
}

function runExceeded(gauge: Gauge): MillraceError {
  const { which, end } = gauge
  const message = `The run was ended by a quota: ${which} (${limitWords(gauge)}) is used up until ${new Date(end).toISOString()}.`
  return new MillraceError('budget-exceeded', message, { which })
}
