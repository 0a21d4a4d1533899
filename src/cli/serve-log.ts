/** The log of `millrace serve`: one line per report, as text or as JSON. */
import { wholeMessage } from '../part/error.ts'
import type { Report, Reporter } from '../server/report.ts'
import { formatCost, formatDuration, formatTokens } from './amounts.ts'
import { printable } from './printable.ts'
import { paint, paintStatus } from './style.ts'

export interface ServeLogOptions {
  /** NDJSON instead of text. */
  json?: boolean | undefined
  /** Only failures. */
  quiet?: boolean | undefined
  stream: NodeJS.WriteStream
  now?: () => Date
}

/** Maximum bytes buffered for a slow reader. Beyond that, lines are dropped to bound memory. */
const mostWaiting = 4 * 1024 * 1024
const longest = 2000

export function createServeLog({ json, quiet, stream, now = () => new Date() }: ServeLogOptions): Reporter {
  let dropped = 0

  function write(line: string): void {
    if (stream.writableLength > mostWaiting) return void dropped++
    if (dropped > 0) line = `(${dropped} lines dropped: the reader of this log was too slow)\n${line}`
    dropped = 0
    stream.write(`${line}\n`)
  }

  if (json) {
    return (report) => {
      if (quiet && report.level !== 'error') return
      const { level, event, ...rest } = report
      write(JSON.stringify({ time: now().toISOString(), level, event, ...rest }))
    }
  }
  return (report) => {
    if (quiet && report.level !== 'error') return
    if (report.event === 'note') return write(formatReport(report, stream))
    const time = paint('dim', now().toTimeString().slice(0, 8), stream)
    write(`${time} ${formatReport(report, stream)}`)
  }
}

export function formatReport(report: Report, stream: NodeJS.WriteStream): string {
  switch (report.event) {
    case 'run': {
      const { run, agent, outcome, ms, usage, cost, error, requests } = report
      const facts = [oneLine(run), oneLine(agent), paintStatus(outcome, stream), formatDuration(ms)]
      if (usage?.totalTokens) facts.push(`${formatTokens(usage)} tokens`)
      if (cost) facts.push(formatCost(cost))
      if (requests !== undefined) facts.push(`waits for ${requests} ${requests === 1 ? 'answer' : 'answers'}`)
      const why = error === undefined ? '' : `: ${oneLine(`${error.code}: ${wholeMessage(error)}`)}`
      return facts.join('  ') + why
    }
    case 'request': {
      const { method, path, status, code, message } = report
      const text = oneLine([code, message].filter(Boolean).join(': '))
      return `${oneLine(`${method} ${path}`)}  ${paint(status < 500 ? 'yellow' : 'red', String(status), stream)}: ${text}`
    }
    case 'store': {
      const { level, message, detail } = report
      const text = detail === undefined ? message : `${message} (${oneLine(detail)})`
      return paint(level === 'error' ? 'red' : 'green', text, stream)
    }
    default:
      return manyLines(report.message)
  }
}

/** A line break from a client or a model must not start a line that looks like one of ours. */
function oneLine(text: string): string {
  const line = printable(text).replaceAll(/\s*[\n\t\u2028\u2029]\s*/gu, ' ')
  return line.length > longest ? `${line.slice(0, longest)}…` : line
}

/** A stack trace, or the errors of a file. */
function manyLines(text: string): string {
  return printable(text)
    .trimEnd()
    .replaceAll(/[\n\u2028\u2029]/gu, '\n    ')
}
