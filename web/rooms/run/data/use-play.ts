/** Plays a run from its log, by the times at which its entries were stored. */
import { useEffect, useRef, useState } from 'react'
import type { Windows } from './windows.ts'

export interface Play {
  isPlaying: boolean
  speed: number
  error: unknown
  setSpeed(speed: number): void
  toggle(): void
  stop(): void
}

export const speeds = [1, 10, 100] as const
const size = 2000
/** Nothing happens for so long at most, in ms of the reader's time. */
const longestPause = 800

/** `seq`: where it stands; `undefined` begins at the start. */
export function usePlay(
  windows: Windows,
  { seq, lastSeq, goTo }: { seq: number | undefined; lastSeq: number; goTo: (seq: number) => void },
): Play {
  const [isPlaying, setPlaying] = useState(false)
  const [speed, setSpeed] = useState(1)
  const [error, setError] = useState<unknown>()
  const latest = useRef({ seq, lastSeq, goTo, speed })
  useEffect(() => {
    latest.current = { seq, lastSeq, goTo, speed }
  })
  useEffect(() => {
    if (!isPlaying) return
    const leave = new AbortController()
    play(windows, () => latest.current, leave.signal).then(
      () => !leave.signal.aborted && setPlaying(false),
      (fault: unknown) => {
        if (leave.signal.aborted) return
        setPlaying(false)
        setError(fault)
      },
    )
    return () => leave.abort()
  }, [isPlaying, windows])
  const toggle = () => {
    setError(undefined)
    setPlaying(!isPlaying)
  }
  return { isPlaying, speed, error, setSpeed, toggle, stop: () => setPlaying(false) }
}

interface Place {
  seq: number | undefined
  lastSeq: number
  goTo: (seq: number) => void
  speed: number
}

async function play(windows: Windows, read: () => Place, signal: AbortSignal): Promise<void> {
  const { seq: given = 0, lastSeq } = read()
  let seq = given >= lastSeq ? 0 : given
  let time: number | undefined
  let before = performance.now()
  for (;;) {
    const entries = await timesBehind(windows, seq, read().lastSeq)
    if (entries.length === 0 || signal.aborted) return
    for (let i = 0; i < entries.length;) {
      time ??= entries[0]!.timestamp
      const now = await nextFrame()
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

async function timesBehind(windows: Windows, seq: number, lastSeq: number) {
  const after = Math.floor(seq / size) * size
  const before = Math.min(after + size, lastSeq) + 1
  if (seq >= lastSeq || before <= after + 1) return []
  const entries = await windows.read({ after, before, cut: 2 })
  return entries.filter((entry) => entry.seq > seq)
}

function nextFrame(): Promise<number> {
  return new Promise((resolve) => requestAnimationFrame(resolve))
}
