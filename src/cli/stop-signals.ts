/** Ends a run on Ctrl-C, SIGTERM, a closed terminal or a closed stdout pipe. */
import type { CommandContext } from './context.ts'

const signals = {
  SIGINT: { reason: 'Stopped with Ctrl-C.', code: 130, notice: 'stopping … (press Ctrl-C again to kill)' },
  SIGTERM: { reason: 'Stopped with SIGTERM.', code: 143, notice: 'stopping …' },
  SIGHUP: { reason: 'The terminal was closed.', code: 129, notice: 'stopping …' },
} as const

export interface Ending {
  reason: string
  /** The exit code, unless the run has completed. */
  code: number
}

/** Calls `end` once; a second signal kills the process. Returns a function that stops listening. */
export function onEnding(context: CommandContext, end: (ending: Ending) => void): () => void {
  const { stdout, stderr } = context
  let isEnding = false

  const listeners = Object.entries(signals).map(([signal, { reason, code, notice }]) => {
    const listener = () => {
      if (isEnding) {
        // The shell's next prompt starts on its own line.
        if (stderr.isTTY) stderr.write('\n')
        context.exit(code)
      }
      isEnding = true
      stderr.write(`\n${notice}\n`)
      end({ reason, code })
    }
    context.events.on(signal, listener)
    return [signal, listener] as const
  })
  // Replaces the listener that exits at once: the run has to be ended in its log first.
  stdout.removeAllListeners('error').on('error', () => {
    if (isEnding) return
    isEnding = true
    end({ reason: 'The output pipe was closed.', code: 1 })
  })
  return () => {
    for (const [signal, listener] of listeners) context.events.off(signal, listener)
  }
}
