/** Plays a run from its log, by the times at which its entries were stored. */
import type { Windows } from './windows.ts'

/** Entries whose times are read at once. */
const size = 2000
/** Nothing happens for so long at most, in ms of the reader's time. */
const longestPause = 800

/** Where it stands now, and how it goes on: asked again in each frame. */
export interface Playhead {
  seq: number | undefined
  lastSeq: number
  goTo: (seq: number) => void
  speed: number
}

/** `frame` resolves with the time, in ms, when something may be drawn. */
export async function play(
  windows: Pick<Windows, 'read'>,
  read: () => Playhead,
  signal: AbortSignal,
  frame: () => Promise<number> = nextFrame,
): Promise<void> {
  const { seq: given = 0, lastSeq } = read()
  let seq = given >= lastSeq ? 0 : given
  let time: number | undefined
  let before = await frame()
  for (;;) {
    const entries = await timesBehind(windows, seq, read().lastSeq)
    if (entries.length === 0 || signal.aborted) return
    for (let i = 0; i < entries.length;) {
      time ??= entries[0]!.timestamp
      const now = await frame()
      if (signal.aborted) return
      const { speed, goTo } = read()
      time = Math.max(time + Math.min(now - before, 100) * speed, entries[i]!.timestamp - longestPause * speed)
      before = now
      const begin = i
      while (i < entries.length && entries[i]!.timestamp <= time) i++
      if (i === begin) continue
      seq = entries[i - 1]!.seq
      goTo(seq)
    }
  }
}

async function timesBehind(windows: Pick<Windows, 'read'>, seq: number, lastSeq: number) {
  const after = Math.floor(seq / size) * size
  const before = Math.min(after + size, lastSeq) + 1
  if (seq >= lastSeq || before <= after + 1) return []
  const entries = await windows.read({ after, before, cut: 2 })
  return entries.filter((entry) => entry.seq > seq)
}

function nextFrame(): Promise<number> {
  return new Promise((resolve) => requestAnimationFrame(resolve))
}
