/** Uncaught errors in `millrace run` and `chat`: as on the server, the run fails and secrets are redacted. */
import { secretValues } from '../project/secrets.ts'
import { createCleaner } from '../fold/redact.ts'
import { createErrorGuard, type ErrorGuard } from '../server/error-guard.ts'
import { printable } from './printable.ts'

export function guardProcess(): ErrorGuard & { release(): void } {
  const redact = createCleaner(secretValues({}, process.env))
  const guard = createErrorGuard({
    report: (report) => process.stderr.write(`${printable(redact('message' in report ? report.message : ''))}\n`),
    exit: () => process.exit(1),
  })
  return Object.assign(guard, { release: guard.install() })
}
