/** Shows on a terminal how many cases have run, in one line that is erased before anything else is printed. */
import type { CommandContext, Output } from '../context.ts'
import type { CaseResult } from '../../regress/run-case.ts'
import { printable } from '../printable.ts'
import { paint } from '../style.ts'
import { cut } from '../width.ts'

export interface TestProgress {
  start(name: string, model?: string): void
  done(result: CaseResult): void
  /** Call before printing anything. */
  clear(): void
}

export function createTestProgress(
  context: CommandContext,
  total: number,
  stream: Output = context.stderr,
): TestProgress {
  let ended = 0
  let failed = 0
  let isShown = false

  function clear(): void {
    if (isShown) stream.write('\r\u001b[K')
    isShown = false
  }

  function show(last: string): void {
    if (!stream.isTTY) return
    clear()
    const told = `… ${ended}/${total}${failed > 0 ? `, ${failed} failed` : ''}  ${last}`
    // A longer line would wrap, and only its last row could be erased.
    stream.write(paint(context, 'dim', cut(printable(told), (stream.columns || 80) - 1), stream))
    isShown = true
  }

  return {
    clear,
    start: (name, model) => show(model === undefined ? name : `${name} (${model})`),
    done({ status, name }) {
      ended++
      if (status === 'failed') failed++
      show(name)
    },
  }
}
