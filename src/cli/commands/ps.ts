import { MillraceError } from '../../part/error.ts'
import type { RunQuery, RunRow, RunStatus } from '../../part/log.ts'
import { openAccess } from '../access.ts'
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
  else
    process.stdout.write(
      `${formatTable(['RUN', 'AGENT', 'STATUS', 'STARTED', 'TOOK', 'TOKENS', 'TITLE'], rows.map(toCells))}\n`,
    )
}

function toCells({ id, agent, status, startedAt, endedAt, usage, title }: RunRow): string[] {
  const took = endedAt === undefined ? '' : `${((endedAt - startedAt) / 1000).toFixed(1)}s`
  const tokens =
    usage?.totalTokens === undefined ? '' : `${usage.totalTokens}${usage.source === 'estimated' ? '~' : ''}`
  const started = new Date(startedAt).toISOString().slice(0, 19).replace('T', ' ')
  return [id, agent, status, started, took, tokens, (title ?? '').replaceAll(/\s+/gu, ' ').slice(0, 60)]
}
