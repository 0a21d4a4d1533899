/**
 * Writes again what Redis has lost of this process's writes: after a reconnect, before anything new. What another process wrote in between
 * must be there first, so a claim waits until the run is as far as it was. Meanwhile nobody claims.
 */
import { isAway } from './away.ts'
import { appendOperation } from './append-job.ts'
import type { Connection } from './connection.ts'
import { idOf, type Kept } from './kept.ts'
import { partitionOf } from './keys.ts'
import type { Head, Pages } from './pages.ts'
import type { StoredRow } from '../run-row.ts'
import { runScript } from './write-queue.ts'
import { claimOperation, type Written } from './writes.ts'

/** How long after a reconnect nobody claims, and how long a run may take to be whole again, in ms. */
export const healingTime = 1000
/** For so long after a reconnect, in ms, a run that is not there may be one whose owner is about to write it again. */
const lateTime = 3000
/** How often to look whether something has come, in ms. */
export const lookEvery = 50

export interface Healing {
  /** Resolves when all that was lost is written again; undefined if that is so. */
  healed(): Promise<void> | undefined
  /** Resolves when claims are allowed; undefined if they are. */
  mayClaim(): Promise<void> | undefined
  /** Whether Redis was away a moment ago, so that what is not there may still come. */
  isLate(): boolean
  /** Writes a run again, as far as it is kept. */
  heal(run: string): Promise<void>
  /** Call this after a reconnect. */
  start(): void
}

interface HealingContext {
  connection: Connection
  process: string
  pages: Pages
  kept: Kept
}

function headOf({ epoch, lastSeq, status }: StoredRow): Head {
  return { epoch, seq: lastSeq, status }
}

export function createHealing({ connection, process, pages, kept }: HealingContext): Healing {
  let healing: Promise<void> | undefined
  let isDue = false
  let claimsFrom = connection.isFresh ? Date.now() + healingTime : 0

  /** Runs a script, again while Redis is away. */
  async function send(id: string, args: readonly string[]): Promise<unknown> {
    const end = Date.now() + connection.timeoutMs
    for (;;) {
      try {
        return (await runScript(connection, partitionOf(id), args))[0]
      } catch (error) {
        if (!isAway(error) || Date.now() > end) throw error
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
    const { appending } = written
    const { before, row } = appending
    const follows = head === undefined ? before === undefined : head.epoch === row.epoch && head.seq === before?.lastSeq
    // With its whole row: what is stored may be older than what was there before.
    return follows ? [appendOperation(process, appending, { whole: true })] : undefined
  }

  async function healRun(run: string, all: readonly Written[]): Promise<void> {
    const end = Date.now() + healingTime * 0.9
    let head = all.some(({ type }) => type !== 'post') ? await pages.head(run) : undefined
    for (const each of all) {
      let next = missing(head, each)
      while (next === 'wait' && Date.now() < end) {
        await new Promise((resolve) => setTimeout(resolve, lookEvery))
        head = await pages.head(run)
        next = missing(head, each)
      }
      if (next === undefined || next === 'wait') continue
      let result: unknown
      for (const operation of next) result = await send(run, operation)
      if (each.type === 'append' && result === 1) head = headOf(each.appending.row)
      else if (each.type !== 'post') head = await pages.head(run)
    }
  }

  async function healAll(): Promise<void> {
    while (isDue) {
      isDue = false
      const runs = Map.groupBy(kept.all(), idOf)
      await Promise.allSettled(Array.from(runs, ([run, all]) => healRun(run, all)))
    }
    healing = undefined
    kept.hold(false)
  }

  return {
    healed: () => healing,
    mayClaim() {
      const wait = claimsFrom - Date.now()
      return wait > 0 ? new Promise((resolve) => setTimeout(resolve, wait)) : undefined
    },
    isLate: () => Date.now() < claimsFrom - healingTime + lateTime,
    heal: (run) => healRun(run, kept.all(run)),
    start() {
      isDue = true
      claimsFrom = Date.now() + healingTime
      healing ??= healAll()
    },
  }
}
