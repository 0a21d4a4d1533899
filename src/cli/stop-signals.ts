/** What ends a run from outside: Ctrl-C, a kill, a terminal that is closed, a reader of stdout that has seen enough. */
const signals = {
  SIGINT: { reason: 'Stopped with Ctrl-C.', code: 130, notice: 'stopping … (Ctrl-C again to kill)' },
  SIGTERM: { reason: 'Stopped with SIGTERM.', code: 143, notice: 'stopping …' },
  SIGHUP: { reason: 'The terminal was closed.', code: 129, notice: 'stopping …' },
} as const

export interface Ending {
  reason: string
  /** What the command exits with, unless the run had completed. */
  code: number
}

/** Calls back once; a second signal ends the process. Gives back how to stop listening. */
export function onEnding(end: (ending: Ending) => void): () => void {
  const { stdout, stderr } = process
  let isEnding = false

  const listeners = Object.entries(signals).map(([signal, { reason, code, notice }]) => {
    const listener = () => {
      if (isEnding) {
        // The next prompt of the shell stands on a line of its own.
        if (stderr.isTTY) stderr.write('\n')
        process.exit(code)
      }
      isEnding = true
      stderr.write(`\n${notice}\n`)
      end({ reason, code })
    }
    process.on(signal, listener)
    return [signal, listener] as const
  })
  // Elsewhere the command ends at once; a run has to be ended in its log as well.
  stdout.removeAllListeners('error').on('error', () => {
    if (isEnding) return
    isEnding = true
    end({ reason: 'Nobody reads its output any more.', code: 1 })
  })
  return () => {
    for (const [signal, listener] of listeners) process.off(signal, listener)
  }
}
