/** What a run is doing, in one line on a terminal that is rewritten, and gone before anything else is printed. */
import type { Entry } from '../part/entry.ts'
import { printable } from './printable.ts'
import { paint } from './style.ts'
import { cut } from './width.ts'

export interface Progress {
  /** Tells what begins and what is done; shows the step that began last and still runs. */
  apply(entry: Entry): void
  /** To be called before anything is printed. */
  clear(): void
}

const silent: Progress = { apply: () => undefined, clear: () => undefined }

/** `atLineStart`: whether the cursor of the terminal stands where a line may be written. */
export function createProgress(stream: NodeJS.WriteStream, atLineStart: () => boolean): Progress {
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
    // A longer line would break, and only its last piece could be taken back.
    stream.write(paint('dim', cut(text, (stream.columns || 80) - 1), stream))
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
