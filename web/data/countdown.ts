import { useEffect, useState } from 'react'

/** Whole seconds that are left until a time (epoch ms), counted down; 0 without one. */
export function useSecondsUntil(time: number | undefined): number {
  const [now, setNow] = useState(Date.now)
  const isOver = time === undefined || now >= time
  useEffect(() => {
    if (isOver) return
    setNow(Date.now())
    const timer = setInterval(() => setNow(Date.now()), 250)
    return () => clearInterval(timer)
  }, [time, isOver])
  return time === undefined ? 0 : Math.max(0, Math.ceil((time - now) / 1000))
}
