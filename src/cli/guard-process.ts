/** What `millrace run` and `chat` do about errors that nobody awaits: as the server does, the run fails and no secret is printed. */
import { secretValues } from '../library/secrets.ts'
import { createCleaner } from '../part/redact.ts'
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
