/** Uncaught errors in `millrace run` and `chat`: as on the server, the run fails and secrets are redacted. */
import type { CommandContext } from './context.ts'
import { secretValues } from '../project/secrets.ts'
import { createCleaner } from '../fold/redact.ts'
import type { Runtime } from '../runtime/runtime.ts'
import { createErrorGuard, type ErrorGuard } from '../server/error-guard.ts'
import { printable } from './printable.ts'

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
