/** What a run is doing, in one line on a terminal that is rewritten, and gone before anything else is printed. */
import type { Entry } from '../part/entry.ts'
import { paint } from './style.ts'

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
  const running = new Map<string, string>()
  let isShown = false

  function clear(): void {
    if (!isShown) return
    stream.write('\r\u001b[K')
    isShown = false
  }

  function show(): void {
    clear()
    const last = [...running].at(-1)
    if (last === undefined || !atLineStart()) return
    const text = `… ${last[0].replace(/^main\//u, '')}  ${last[1]}`
    stream.write(paint('dim', text.slice(0, Math.max(10, (stream.columns ?? 80) - 1)), stream))
    isShown = true
  }

  return {
    clear,
    apply(entry) {
      if (entry.type === 'step-start') running.set(entry.step, entry.toolName ?? entry.stepType)
      else if (entry.type === 'step-finish') running.delete(entry.step)
      else return
      show()
    },
  }
}
