/** Sets up the log of `millrace serve` and its handling of uncaught errors. */
import type { CommandContext } from './context.ts'
import { secretValues } from '../project/secrets.ts'
import { createCleaner } from '../fold/redact.ts'
import { createErrorGuard, type ErrorGuard, type Level, type Reporter } from '../server/error-guard.ts'
import type { Project } from '../project/project.ts'
import { createServeLog } from './serve-log.ts'

export type Note = (message: string, level?: Level) => void

export interface Reporting {
  report: Reporter
  note: Note
  guard: ErrorGuard
}

export function startReporting(
  context: CommandContext,
  { json, quiet }: { json?: boolean; quiet?: boolean },
): Reporting {
  const stream = json ? context.stdout : context.stderr
  // The server keeps running when the reader of its log goes away.
  if (json) context.stdout.removeAllListeners('error').on('error', () => undefined)
  const log = createServeLog(context, { json, quiet, stream })
  context.events.on('exit', log.flush)
  // Only secrets of the environment; the server redacts those of its config itself.
  const redact = createCleaner(secretValues({}, context.env))
  const report: Reporter = (each) => log.report(redact(each))
  const guard = createErrorGuard({ report, exit: () => context.exit(1) })
  guard.install(context.events)
  return { report, guard, note: (message, level = 'info') => report({ level, event: 'note', message }) }
}

const names = { SIGINT: 'Ctrl-C', SIGTERM: 'SIGTERM', SIGHUP: 'terminal closed' } as const

export function stoppingLine(signal: keyof typeof names, { runtime, config }: Project): string {
  const { active } = runtime
  const again = signal === 'SIGINT' ? ' Press Ctrl-C again to stop at once.' : ''
  if (active === 0) return `stopping (${names[signal]}): no active runs.${again}`
  const seconds = (config.server?.graceMs ?? 2000) / 1000
  const runs = active === 1 ? '1 active run has' : `${active} active runs have`
  return `stopping (${names[signal]}): ${runs} ${seconds} s to finish.${again}`
}
