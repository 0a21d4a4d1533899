/** What `millrace serve` prints, and what it catches, from its first moment on. */
import { secretValues } from '../library/secrets.ts'
import { createCleaner } from '../part/redact.ts'
import { createErrorGuard, type ErrorGuard } from '../server/error-guard.ts'
import type { Project } from '../server/project.ts'
import type { Level, Reporter } from '../server/report.ts'
import { createServeLog } from './serve-log.ts'

export type Note = (message: string, level?: Level) => void

export interface Reporting {
  report: Reporter
  note: Note
  guard: ErrorGuard
}

export function startReporting({ json, quiet }: { json?: boolean; quiet?: boolean }): Reporting {
  const stream = json ? process.stdout : process.stderr
  // A server does not end because its log has no reader any more.
  if (json) process.stdout.removeAllListeners('error').on('error', () => undefined)
  const write = createServeLog({ json, quiet, stream })
  // The server knows more secrets than the environment, and takes them out itself.
  const redact = createCleaner(secretValues({}, process.env))
  const report: Reporter = (each) => write(redact(each))
  const guard = createErrorGuard({ report, exit: () => process.exit(1) })
  guard.install()
  return { report, guard, note: (message, level = 'info') => report({ level, event: 'note', message }) }
}

const names = { SIGINT: 'Ctrl-C', SIGTERM: 'SIGTERM', SIGHUP: 'the terminal was closed' } as const

export function stoppingLine(signal: keyof typeof names, { runtime, config }: Project): string {
  const { active } = runtime
  const again = signal === 'SIGINT' ? ' Ctrl-C again stops it at once.' : ''
  if (active === 0) return `stopping (${names[signal]}): no run is under way.${again}`
  const seconds = (config.server?.graceMs ?? 2000) / 1000
  const runs = active === 1 ? '1 run has' : `${active} runs have`
  return `stopping (${names[signal]}): ${runs} ${seconds} s to end.${again}`
}
