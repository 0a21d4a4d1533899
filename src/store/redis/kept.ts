/**
 * What this process wrote in the last seconds: Redis may lose as much when it is killed, and then it is written again. While it is away nothing is
 * written, so what is kept does not grow however long that takes.
 */
import type { Written } from './writes.ts'

/** An append-only file that is written every second may lack somewhat more, in ms. */
export const keptFor = 3000

/** The run or the inbox that it went to. */
export function idOf(written: Written): string {
  if (written.type === 'append') return written.change.run
  return written.type === 'post' ? written.inbox : written.run
}

export interface Kept {
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
