/** Shows the current step of a run in one terminal line, which is erased before anything else is printed. */
import type { CommandContext, Output } from './context.ts'
import type { Entry } from '../part/entry.ts'
import { printable } from './printable.ts'
import { paint } from './style.ts'
import { cut } from './width.ts'

export interface Progress {
  /** Records started and finished steps, and shows the most recent one that is still running. */
  apply(entry: Entry): void
  /** Call before printing anything. */
  clear(): void
}

const silent: Progress = { apply: () => undefined, clear: () => undefined }

/** `atLineStart`: whether the cursor is at the start of a line. */
export function createProgress(context: CommandContext, stream: Output, atLineStart: () => boolean): Progress {
  if (!stream.isTTY) return silent
  const running = new Map<string, { what: string; since: number }>()
  let isShown = false
  let tick: ReturnType<typeof setInterval> | undefined

  function clear(): void {
    clearInterval(tick)
    if (!isShown) return
    stream.write('\r\u001b[K')
    isShown = false
  }

  function show(): void {
    clear()
    const last = [...running].at(-1)
    if (last === undefined || !atLineStart()) return
    const [path, { what, since }] = last
    const seconds = Math.floor((performance.now() - since) / 1000)
    const text = printable(`… ${path.replace(/^main\//u, '')}  ${what}${seconds === 0 ? '' : `  ${seconds}s`}`)
    // A longer line would wrap, and only its last row could be erased.
    stream.write(paint(context, 'dim', cut(text, (stream.columns || 80) - 1), stream))
    isShown = true
    tick = setInterval(show, 1000).unref()
  }

  return {
    clear,
    apply(entry) {
      const { type, step } = entry
      if (type === 'step-start') running.set(step, { what: entry.toolName ?? entry.stepType, since: performance.now() })
      else if (type === 'step-finish') running.delete(step)
      else return
      show()
    },
  }
}
