/**
 * Rewrites this process's writes that Redis has lost: when a partition is back, before any new write. Writes of other processes in between must
 * come first, so a claim waits until the run is complete up to its own position. Meanwhile claims are blocked.
 */
import { isTransientError } from './transient-error.ts'
import { appendOperation } from './append-job.ts'
import { decodeEntries } from '../encode.ts'
import type { RedisConnection } from './connection.ts'
import { partitions } from './index-script.ts'
import { partitionOf, type Partition } from './keys.ts'
import type { RunHead, Pages } from './pages.ts'
import type { StoredRow } from '../run-row.ts'
import type { RedisTexts } from './texts.ts'
import { runScript } from './write-queue.ts'
import { claimOperation, type Written } from './writes.ts'

/** Duration of the block on claims after a partition is back, and the maximum time for a run to be complete again, in ms. */
const healingTime = 1000
/** For this time after that, in ms, a missing run may be one whose owner is about to rewrite it. */
const lateTime = 3000
/** Polling interval for other processes' writes, in ms. */
export const lookEvery = 50

export interface LostRewriter {
  /** Remembers a write, in case Redis loses it. */
  keep(written: Written): void
  /** Resolves when the partition is available and healed; undefined if it already is. */
  healed(partition: Partition): Promise<void> | undefined
  /** Resolves when claims are allowed; undefined if they already are. */
  mayClaim(partition: Partition): Promise<void> | undefined
  /** Whether the partition is or was recently unavailable, so that missing data may still come. */
  isLate(partition: Partition): boolean
  /** Rewrites a run, as far as its writes are remembered. */
  heal(run: string): Promise<void>
  /** Redis is unavailable: no writes before `start`. */
  pause(partitions: readonly Partition[]): void
  /** Redis is back. */
  start(partitions: readonly Partition[]): void
}

interface HealingContext {
  connection: RedisConnection
  process: string
  pages: Pages
  texts: Pick<RedisTexts, 'share'>
}

function headOf({ epoch, lastSeq, status }: StoredRow): RunHead {
  return { epoch, seq: lastSeq, status }
}

const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms))

export function createLostRewriter({ connection, process, pages, texts }: HealingContext): LostRewriter {
  const opened = Date.now()
  const states = Array.from({ length: partitions }, () => ({
    kept: createRecentWrites(),
    /** Set while it is unavailable. */
    away: undefined as PromiseWithResolvers<void> | undefined,
    /** Set until it is healed. */
    healing: undefined as PromiseWithResolvers<void> | undefined,
    claimsFrom: connection.isFresh ? opened + healingTime : 0,
    /** Counts how often it became unavailable or came back. */
    round: 0,
  }))
  type State = (typeof states)[number]

  /** Runs a script, and retries while Redis is unavailable. */
  async function send(id: string, args: readonly string[], isCurrent: () => boolean): Promise<unknown> {
    const end = Date.now() + connection.timeoutMs
    for (;;) {
      try {
        return (await runScript(connection, partitionOf(id), args))[0]
      } catch (error) {
        if (!isTransientError(error) || Date.now() > end || !isCurrent()) throw error
        await connection.again()
      }
    }
  }

  /** The missing operations of a run at this head: the next ones, `wait` for another process, or none. */
  function missing(head: RunHead | undefined, written: Written): string[][] | 'wait' | undefined {
    if (written.type === 'post') return [written.args]
    if (written.type === 'fork') return head === undefined ? written.operations : undefined
    if (written.type === 'claim') {
      const { epoch, seq } = written
      if (head !== undefined && head.epoch > epoch) return undefined
      const isBehind = head === undefined || head.epoch < epoch || head.seq < seq
      return isBehind ? 'wait' : [claimOperation(process, written, [], { force: true })]
    }
    const { change } = written
    const { before, row } = change
    const follows = head === undefined ? before === undefined : head.epoch === row.epoch && head.seq === before?.lastSeq
    if (!follows) return undefined
    const shared = texts.share(change.run, decodeEntries([change.lines]), change.lines, { all: true })
    // With its whole row: the stored one may be older than before.
    return [appendOperation(process, change, shared, { whole: true })]
  }

  async function healRun(run: string, all: readonly Written[], isCurrent = () => true): Promise<void> {
    let head = all.some(({ type }) => type !== 'post') ? await pages.head(run) : undefined
    // Counted from the first reply: other processes may not be back earlier.
    const end = Date.now() + healingTime * 0.9
    for (const each of all) {
      let next = missing(head, each)
      while (next === 'wait' && Date.now() < end) {
        await pause(lookEvery)
        head = await pages.head(run)
        next = missing(head, each)
      }
      if (next === undefined || next === 'wait') continue
      let result: unknown
      for (const operation of next) result = await send(run, operation, isCurrent)
      if (each.type === 'append' && result === 1) head = headOf(each.change.row)
      else if (each.type !== 'post') head = await pages.head(run)
    }
  }

  async function healAll(state: State): Promise<void> {
    const round = ++state.round
    const isCurrent = () => state.round === round
    const runs = Map.groupBy(state.kept.all(), idOf)
    await Promise.allSettled(Array.from(runs, ([run, all]) => healRun(run, all, isCurrent)))
    if (!isCurrent()) return
    state.kept.hold(false)
    state.healing?.resolve()
    state.healing = undefined
  }

  async function claimable(state: State): Promise<void> {
    for (;;) {
      if (state.away) await state.away.promise
      const wait = state.claimsFrom - Date.now()
      if (state.away === undefined && wait <= 0) return
      await pause(Math.max(0, wait))
    }
  }

  return {
    keep: (written) => states[partitionOf(idOf(written))]!.kept.add(written),
    healed: (partition) => states[partition]!.healing?.promise,
    mayClaim(partition) {
      const state = states[partition]!
      return state.away || Date.now() < state.claimsFrom ? claimable(state) : undefined
    },
    isLate(partition) {
      const { away, claimsFrom } = states[partition]!
      return away !== undefined || Date.now() < claimsFrom - healingTime + lateTime
    },
    heal: (run) => healRun(run, states[partitionOf(run)]!.kept.all(run)),
    pause(all) {
      for (const partition of all) {
        const state = states[partition]!
        state.round++
        state.away ??= Promise.withResolvers()
        state.healing ??= Promise.withResolvers()
        state.kept.hold(true)
      }
    },
    start(all) {
      for (const partition of all) {
        const state = states[partition]!
        state.claimsFrom = Date.now() + healingTime
        state.away?.resolve()
        state.away = undefined
        void healAll(state)
      }
    },
  }
}

/*
 * The writes of this process in the last seconds: Redis may lose as much when it is killed, and then they are written again. While it is
 * unavailable there are no writes, so the list does not grow.
 */

/** An append-only file that is flushed every second may lose somewhat more, in ms. */
export const keptFor = 3000

/** The run or the inbox of a write. */
function idOf(written: Written): string {
  if (written.type === 'append') return written.change.run
  return written.type === 'post' ? written.inbox : written.run
}

interface RecentWrites {
  add(written: Written): void
  /** In the order of writing. Of one run, or all. */
  all(run?: string): Written[]
  /** Pauses expiry while Redis is unavailable. Expiry starts anew when it is back: rewritten data can be lost again. */
  hold(isHeld: boolean): void
}

export function createRecentWrites(now: () => number = Date.now): RecentWrites {
  let items: { written: Written; at: number }[] = []
  /** How many of them have expired. */
  let old = 0
  let held = false

  return {
    add(written) {
      const at = now()
      items.push({ written, at })
      if (held) return
      while (items[old]!.at < at - keptFor) old++
      // Rarely, because it moves all the others.
      if (old > 1000 || old > items.length / 2) {
        items = items.slice(old)
        old = 0
      }
    },
    all: (run) =>
      items
        .slice(old)
        .map(({ written }) => written)
        .filter((written) => run === undefined || idOf(written) === run),
    hold(isHeld) {
      if (held && !isHeld) {
        items = items.slice(old).map(({ written }) => ({ written, at: now() }))
        old = 0
      }
      held = isHeld
    },
  }
}
