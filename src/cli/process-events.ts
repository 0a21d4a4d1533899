/** Events of the process that end a command or fail a run: signals, a closed terminal, a closed stdout pipe, uncaught errors. */
import type { CommandContext } from './context.ts'
import { secretValues } from '../project/secrets.ts'
import { createCleaner } from '../fold/redact.ts'
import type { Runtime } from '../runtime/runtime.ts'
import { createErrorGuard, type ErrorGuard } from '../server/error-guard.ts'
import { printable } from './terminal/output.ts'

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

/** Uncaught errors in `millrace run` and `chat`: as on the server, the run fails and secrets are redacted. */
export function guardProcess(context: CommandContext): ErrorGuard & { release(): void } {
  const redact = createCleaner(secretValues({}, context.env))
  const guard = createErrorGuard({
    report: (report) => context.stderr.write(`${printable(redact('message' in report ? report.message : ''))}\n`),
    exit: () => context.exit(1),
  })
  return Object.assign(guard, { release: guard.install(context.events) })
}

/** The same for a command with several runtimes. */
export function guardRuntimes(context: CommandContext) {
  const guard = guardProcess(context)
  const runtimes = new Set<Runtime>()
  guard.bind({
    fail(run, error) {
      for (const runtime of runtimes) {
        const effect = runtime.fail(run, error)
        if (effect !== 'inactive') return effect
      }
      return 'inactive'
    },
    redact: createCleaner(secretValues({}, context.env)),
  })
  return {
    attribute: guard.attribute,
    onRuntime(runtime: Runtime): () => void {
      runtimes.add(runtime)
      return () => void runtimes.delete(runtime)
    },
    release: () => guard.release(),
  }
}
