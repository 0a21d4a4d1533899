import { MillraceError } from '../../part/error.ts'
import type { RunQuery, RunRow, RunStatus } from '../../part/log.ts'
import { openAccess } from '../access.ts'
import { formatDuration, formatTime, formatTokens } from '../amounts.ts'
import { paint, paintStatus } from '../style.ts'
import { formatTable } from '../table.ts'

export interface PsFlags {
  status?: string
  agent?: string
  limit: string
  json?: boolean
  data: string
}

export async function psCommand({ status, agent, limit, json, data }: PsFlags): Promise<void> {
  if (!/^[1-9]\d{0,3}$/u.test(limit)) throw new MillraceError('usage', `--limit must be 1 to 1000, not "${limit}".`)
  const access = await openAccess(data)
  const query: RunQuery = { limit: Math.min(1000, Number(limit)) }
  if (status !== undefined) query.status = status as RunStatus
  if (agent !== undefined) query.agent = agent
  const rows = await access.list(query)
  await access.close()
  if (json) process.stdout.write(`${JSON.stringify(rows, null, 2)}\n`)
  else process.stdout.write(`${formatTable(head, rows.map(toCells), { style })}\n`)
  if (!json && rows.length === 0) {
    const narrowed = status !== undefined || agent !== undefined
    process.stderr.write(narrowed ? 'no such runs\n' : 'no runs yet\n')
  }
}

const head = ['RUN', 'AGENT', 'STATUS', 'STARTED', 'TOOK', 'TOKENS', 'TITLE']

function style(cell: string, column: number, row: number): string {
  if (row < 0) return paint('bold', cell)
  return column === head.indexOf('STATUS') ? paintStatus(cell) : cell
}

function toCells({ id, agent, status, startedAt, endedAt, usage, title }: RunRow): string[] {
  // How long it has run, as long as it does.
  const end = endedAt ?? (status === 'running' ? Date.now() : undefined)
  const took = end === undefined ? '' : formatDuration(Math.max(0, end - startedAt))
  const words = (title ?? '').replaceAll(/\s+/gu, ' ').slice(0, 60)
  return [id, agent, status, formatTime(startedAt), took, formatTokens(usage), words]
}
