/** The runs of an agent, newest first. */
import { useEffect } from 'react'
import { Link } from 'wouter'
import type { RunRow } from '../../../src/part/log.ts'
import { api } from '../../data/client.ts'
import { followRows } from '../../data/live.ts'
import { useResource } from '../../data/resource.ts'
import { Empty } from '../../kit/Empty.tsx'
import { ErrorNote } from '../../kit/ErrorNote.tsx'
import { ago, cost, duration, tokens } from '../../kit/format.ts'
import { Skeleton } from '../../kit/Skeleton.tsx'
import { Status } from '../../kit/Status.tsx'
import css from './Agents.module.css'

export function AgentRuns({ id }: { id: string }) {
  const path = `/api/runs?limit=100&agent=${encodeURIComponent(id)}`
  const { value, error, reload } = useResource(path, (signal) => api<{ runs: RunRow[] }>(path, { signal }))
  useEffect(() => followRows((rows) => rows.some(({ agent }) => agent === id) && reload()), [id, reload])
  if (value === undefined)
    return error === undefined ? <Skeleton rows={6} /> : <ErrorNote error={error} onRetry={reload} />
  if (value.runs.length === 0) {
    return (
      <Empty title="This agent has not run yet.">
        <Link href={`/chat/${encodeURIComponent(id)}`}>Try it</Link>
      </Empty>
    )
  }
  return (
    <div className={css.runs}>
      <ul>
        {value.runs.map((row) => (
          <li key={row.id}>
            <Link href={`/runs/${encodeURIComponent(row.id)}`} className={css.run}>
              <Status status={row.status} compact />
              <span className={css.title}>{row.title ?? row.id}</span>
              <span className={css.small}>{ago(row.startedAt)}</span>
              <span className={css.small}>
                {row.endedAt === undefined ? '' : duration(row.endedAt - row.startedAt)}
              </span>
              <span className={css.small}>{row.usage === undefined ? '' : `${tokens(row.usage)} tok`}</span>
              <span className={css.small}>{row.cost === undefined ? '' : cost(row.cost)}</span>
            </Link>
          </li>
        ))}
      </ul>
      <Link className={css.all} href={`/runs?agent=${encodeURIComponent(id)}`}>
        All its runs, with filters
      </Link>
    </div>
  )
}
