/** The log of a run, a line for each entry. */
import type { ReactNode } from 'react'
import type { LogLine } from '../client/live-run.ts'
import type { LogRow } from '../fold/log-rows.ts'
import type { RunProps } from './run-outline.tsx'
import { useLiveRun } from './use-live-run.ts'

/** The log of a run as a list, live. `limit`: the newest lines that are drawn, default 500. Classes: `millrace-log`, `millrace-log-line` with `data-type`. */
export function RunLog({ runId, client, limit = 500 }: RunProps & { limit?: number }): ReactNode {
  const { lines, startedAt } = useLiveRun(runId, client)
  return <LogList lines={lines} startedAt={startedAt} limit={limit} />
}

/** The same for lines that you have. `startedAt`: of the run, epoch ms. */
export function LogList({
  lines,
  startedAt,
  limit = 500,
}: {
  lines: readonly LogLine[]
  startedAt: number
  limit?: number
}): ReactNode {
  const first = Math.max(0, lines.length - limit)
  return (
    <ol className="millrace-log" aria-label="Log" start={first + 1}>
      {lines.slice(first).map((line) => (
        <li key={line.seq} className="millrace-log-line" data-type={line.type} data-failed={line.failed || undefined}>
          <LogCells row={line} offset={line.at - startedAt} text={line.text} classes={classes} />
        </li>
      ))}
    </ol>
  )
}

/** Of the pieces of a line. */
export interface LogClasses {
  seq: string
  offset: string
  type: string
  step: string
  text: string
}

const classes: LogClasses = {
  seq: 'millrace-log-seq',
  offset: 'millrace-log-offset',
  type: 'millrace-log-type',
  step: 'millrace-log-step',
  text: 'millrace-log-text',
}

/** The content of a line. `offset`: ms since the start of the run. The page of Millrace draws it with classes of its own. */
export function LogCells({
  row: { seq, to, type, step, note },
  offset,
  text = note ?? '',
  classes: of,
}: {
  row: LogRow
  offset: number
  text: string | undefined
  classes: Partial<LogClasses>
}): ReactNode {
  const isMerged = to > seq && to < Number.MAX_SAFE_INTEGER
  return (
    <>
      <span className={of.seq} title={isMerged ? `entries ${seq} to ${to}` : undefined}>
        {seq}
      </span>{' '}
      <span className={of.offset}>{offsetText(offset)}</span>{' '}
      <span className={of.type} data-family={familyOf(type)}>
        {type}
      </span>{' '}
      <span className={of.step} title={step}>
        {step.replace(/^main\//u, '')}
      </span>{' '}
      <span className={of.text}>{text.slice(0, 400)}</span>
    </>
  )
}

/** `+1.204` in seconds. */
function offsetText(ms: number): string {
  return `+${(Math.max(0, ms) / 1000).toFixed(3)}`
}

function familyOf(type: string): string {
  if (type === 'error' || type === 'warning' || type === 'retry') return 'error'
  if (type === 'request' || type === 'response' || type === 'message' || type === 'suspend' || type === 'resume')
    return 'request'
  return /^(?:text|reasoning|tool)/u.exec(type)?.[0] ?? 'other'
}
