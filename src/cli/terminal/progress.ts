/** How far a long command has got, and how long the rest takes: one line on a terminal, nothing elsewhere. */
import type { Output } from '../context.ts'

export interface Progress {
  /** `part`: what is done of the whole work, from 0 to 1. */
  tell(done: number, of: number, part?: number): void
  /** Takes the line away. */
  clear(): void
}

/** Before this many ms there is no estimate. */
const patience = 2000

/** `now`: ms. */
export function createProgress(stderr: Output, noun: string, now: () => number = () => performance.now()): Progress {
  const began = now()
  let shown = ''
  return {
    tell(done, of, part = of === 0 ? 1 : done / of) {
      if (stderr.isTTY !== true) return
      const passed = now() - began
      const rest =
        passed < patience || part <= 0 || part >= 1 ? '' : `, about ${inWords((passed * (1 - part)) / part)} left`
      const text = `${done.toLocaleString('en')} of ${of.toLocaleString('en')} ${noun}${rest}`
      if (text === shown) return
      shown = text
      stderr.write(`\r\u001b[K${text}`)
    },
    clear() {
      if (shown !== '') stderr.write('\r\u001b[K')
      shown = ''
    },
  }
}

function inWords(ms: number): string {
  const seconds = Math.max(1, Math.ceil(ms / 1000))
  if (seconds < 60) return `${seconds} s`
  const minutes = Math.round(seconds / 60)
  return minutes < 120 ? `${minutes} min` : `${Math.round(minutes / 60)} h`
}
