/** Plays a run, or pauses. */
import { useEffect, useRef, useState } from 'react'
import { play } from './play.ts'
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
