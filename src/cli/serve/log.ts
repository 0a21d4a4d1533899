/** The log of `millrace serve`: one line per report, as text or as JSON. */
import type { CommandContext, Output } from '../context.ts'
import { wholeMessage } from '../../part/error.ts'
import type { Report, Reporter, Level } from '../../server/error-guard.ts'
import { formatCost, formatDuration, formatTokens } from '../terminal/format.ts'
import { printable, paint, paintStatus } from '../terminal/output.ts'
import { secretValues } from '../../project/secrets.ts'
import { createCleaner } from '../../fold/redact.ts'
import { createErrorGuard, type ErrorGuard } from '../../server/error-guard.ts'
import type { Project } from '../../project/project.ts'

export interface ServeLogOptions {
  /** NDJSON instead of text. */
  json?: boolean | undefined
  /** Only failures. */
  quiet?: boolean | undefined
  stream: Output
  now?: () => Date
}

export interface ServeLog {
  report: Reporter
  /** Writes buffered lines. Call it before the process exits. */
  flush(): void
}

/** Maximum bytes buffered for a slow reader. Beyond that, lines are dropped to bound memory. */
const maxBuffered = 4 * 1024 * 1024
const maxLine = 2000
/** ms that a line about a run waits for others. A write to a pipe blocks the process, and with many runs it has many. */
const flushDelay = 20

export function createServeLog(
  context: CommandContext,
  { json, quiet, stream, now = () => new Date() }: ServeLogOptions,
): ServeLog {
  let dropped = 0
  let lines = ''
  let clock = ''
  let second: number | undefined
  let timer: NodeJS.Timeout | undefined

  function flush(): void {
    clearTimeout(timer)
    timer = undefined
    const text = lines
    lines = ''
    if (text !== '') stream.write(text)
  }

  function write(line: string, { event, level }: Report): void {
    if (stream.writableLength + lines.length > maxBuffered) return void dropped++
    if (dropped > 0) line = `(${dropped} lines dropped: the reader of this log was too slow)\n${line}`
    dropped = 0
    lines += `${line}\n`
    const waits = level === 'info' && event === 'run' && !stream.isTTY
    if (!waits) flush()
    else timer ??= setTimeout(flush, flushDelay).unref()
  }

  /** Made once a second: formatting a date takes as long as the rest of a line. */
  function timeOf(date: Date): string {
    const at = Math.floor(date.getTime() / 1000)
    if (at !== second) clock = paint(context, 'dim', date.toTimeString().slice(0, 8), stream)
    second = at
    return clock
  }

  function lineOf(report: Report): string {
    if (json) {
      const { level, event, ...rest } = report
      return JSON.stringify({ time: now().toISOString(), level, event, ...rest })
    }
    if (report.event === 'note') return formatReport(context, report, stream)
    return `${timeOf(now())} ${formatReport(context, report, stream)}`
  }

  const report: Reporter = (each) => {
    if (!quiet || each.level === 'error') write(lineOf(each), each)
  }
  return { report, flush }
}

export function formatReport(context: CommandContext, report: Report, stream: Output): string {
  switch (report.event) {
    case 'run': {
      const { run, agent, outcome, ms, usage, cost, error, requests } = report
      const facts = [oneLine(run), oneLine(agent), paintStatus(context, outcome, stream), formatDuration(ms)]
      if (usage?.totalTokens) facts.push(`${formatTokens(usage)} tokens`)
      if (cost) facts.push(formatCost(cost))
      if (requests !== undefined) facts.push(`waits for ${requests} ${requests === 1 ? 'answer' : 'answers'}`)
      const why = error === undefined ? '' : `: ${oneLine(`${error.code}: ${wholeMessage(error)}`)}`
      return facts.join('  ') + why
    }
    case 'request': {
      const { method, path, status, code, message } = report
      const text = oneLine([code, message].filter(Boolean).join(': '))
      return `${oneLine(`${method} ${path}`)}  ${paint(context, status < 500 ? 'yellow' : 'red', String(status), stream)}: ${text}`
    }
    case 'store': {
      const { level, message, detail } = report
      const text = detail === undefined ? message : `${message} (${oneLine(detail)})`
      return paint(context, level === 'error' ? 'red' : 'green', text, stream)
    }
    default:
      return manyLines(report.message)
  }
}

/** A line break from a client or a model must not start a line that looks like one of ours. */
function oneLine(text: string): string {
  if (/^[\w-]{0,100}$/.test(text)) return text
  const line = printable(text).replaceAll(/\s*[\n\t\u2028\u2029]\s*/gu, ' ')
  return line.length > maxLine ? `${line.slice(0, maxLine)}…` : line
}

/** A stack trace, or the errors of a file. */
function manyLines(text: string): string {
  return printable(text)
    .trimEnd()
    .replaceAll(/[\n\u2028\u2029]/gu, '\n    ')
}

export type Note = (message: string, level?: Level) => void

interface Reporting {
  report: Reporter
  note: Note
  guard: ErrorGuard
}

/** Sets up the log and the handling of uncaught errors. */
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
