/**
 * Writes again what Redis has lost of this process's writes: when a partition is back, before anything new. What another process wrote in between
 * must be there first, so a claim waits until the run is as far as it was. Meanwhile nobody claims.
 */
import { isAway } from './away.ts'
import { appendOperation } from './append-job.ts'
import type { Connection } from './connection.ts'
import { partitions } from './index-script.ts'
import { partitionOf, type Partition } from './keys.ts'
import type { Head, Pages } from './pages.ts'
import type { StoredRow } from '../run-row.ts'
import { runScript } from './write-queue.ts'
import { claimOperation, type Written } from './writes.ts'

/** How long after a partition is back nobody claims, and how long a run may take to be whole again, in ms. */
const healingTime = 1000
/** For so long after that, in ms, a run that is not there may be one whose owner is about to write it again. */
const lateTime = 3000
/** How often to look whether something has come, in ms. */
export const lookEvery = 50

export interface Healing {
  /** What was written, in case that Redis loses it. */
  keep(written: Written): void
  /** Resolves when the partition is there, with all that was lost; undefined if it is. */
  healed(partition: Partition): Promise<void> | undefined
  /** Resolves when claims are allowed; undefined if they are. */
  mayClaim(partition: Partition): Promise<void> | undefined
  /** Whether the partition is away, or was a moment ago, so that what is not there may still come. */
  isLate(partition: Partition): boolean
  /** Writes a run again, as far as it is kept. */
  heal(run: string): Promise<void>
  /** Redis is away: nothing is written before `start`. */
  pause(partitions: readonly Partition[]): void
  /** It is back. */
  start(partitions: readonly Partition[]): void
}

interface HealingContext {
  connection: Connection
  process: string
  pages: Pages
}

function headOf({ epoch, lastSeq, status }: StoredRow): Head {
  return { epoch, seq: lastSeq, status }
}

const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms))

export function createHealing({ connection, process, pages }: HealingContext): Healing {
  const opened = Date.now()
  const states = Array.from({ length: partitions }, () => ({
    kept: createKept(),
    /** While it is away. */
    away: undefined as PromiseWithResolvers<void> | undefined,
    /** Until it is healed. */
    healing: undefined as PromiseWithResolvers<void> | undefined,
    claimsFrom: connection.isFresh ? opened + healingTime : 0,
    /** Counts the times that it went away or came back. */
    round: 0,
  }))
  type State = (typeof states)[number]

  /** Runs a script, again while Redis is away. */
  async function send(id: string, args: readonly string[], isCurrent: () => boolean): Promise<unknown> {
    const end = Date.now() + connection.timeoutMs
    for (;;) {
      try {
        return (await runScript(connection, partitionOf(id), args))[0]
      } catch (error) {
        if (!isAway(error) || Date.now() > end || !isCurrent()) throw error
        await connection.again()
      }
    }
  }

  /** What is missing of a run, at its head: the operations that come next, `wait` for another process, or nothing. */
  function missing(head: Head | undefined, written: Written): string[][] | 'wait' | undefined {
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
    // With its whole row: what is stored may be older than what was there before.
    return follows ? [appendOperation(process, change, { whole: true })] : undefined
  }

  async function healRun(run: string, all: readonly Written[], isCurrent = () => true): Promise<void> {
    let head = all.some(({ type }) => type !== 'post') ? await pages.head(run) : undefined
    // Counted from the first answer: others may not be back before.
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
 * What this process wrote in the last seconds: Redis may lose as much when it is killed, and then it is written again. While it is away nothing is
 * written, so what is kept does not grow however long that takes.
 */

/** An append-only file that is written every second may lack somewhat more, in ms. */
export const keptFor = 3000

/** The run or the inbox that it went to. */
function idOf(written: Written): string {
  if (written.type === 'append') return written.change.run
  return written.type === 'post' ? written.inbox : written.run
}

interface Kept {
  add(written: Written): void
  /** In the order in which it was written. Of one run, or all. */
  all(run?: string): Written[]
  /** How long it is kept is counted only while Redis is there, and anew when it is back: what was written again can be lost again. */
  hold(isHeld: boolean): void
}

export function createKept(now: () => number = Date.now): Kept {
  let items: { written: Written; at: number }[] = []
  /** How many of them are too old. */
  let old = 0
  let held = false

  return {
    add(written) {
      const at = now()
      items.push({ written, at })
      if (held) return
      while (items[old]!.at < at - keptFor) old++
      // Seldom, because it moves all the others.
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
