/** A conversation as a chat of its runs. */
import { useEffect, useRef, useState } from 'react'
import { Link, useLocation } from 'wouter'
import type { UsedByModel } from '../../../src/fold/usage-fold.ts'
import type { RunRow } from '../../../src/part/log.ts'
import type { ThreadRow } from '../../../src/part/thread.ts'
import { addUsage, type Usage } from '../../../src/part/usage.ts'
import { api } from '../../data/client.ts'
import { useAgents } from '../../data/hooks.ts'
import { followRows, followTitles } from '../../data/live.ts'
import { useQuery } from '../../data/query.ts'
import { useMayDelete, useThreadName } from '../../data/server.ts'
import { useResource } from '../../data/resource.ts'
import { Button } from '../../kit/Button.tsx'
import { DeleteThread } from '../../kit/DeleteThread.tsx'
import { ErrorNote } from '../../kit/ErrorNote.tsx'
import { cachedShare, cost, count, tokens } from '../../kit/format.ts'
import { Owner } from '../../kit/Owner.tsx'
import { Skeleton } from '../../kit/Skeleton.tsx'
import { ThreadState } from '../../kit/ThreadState.tsx'
import { useTitle } from '../../shell/title.ts'
import { branchOf } from './branches.ts'
import { Turn } from './Turn.tsx'
import { useFollowEnd } from './useFollowEnd.ts'
import css from './ThreadView.module.css'

interface ShownThread extends ThreadRow {
  usageByModel: UsedByModel[]
  runs: RunRow[]
}

/** Turns that are shown at first, and more at each request. */
const page = 20

export function ThreadView({ id }: { id: string }) {
  const path = `/api/threads/${encodeURIComponent(id)}?limit=1000&messages=1`
  const { value: thread, error, reload } = useResource(path, (signal) => api<ShownThread>(path, { signal }))
  const rows = useRunsOf(thread?.id ?? id, thread?.runs, reload)
  useTitle(thread?.title)
  if (thread === undefined)
    return error === undefined ? <Skeleton rows={8} /> : <ErrorNote error={error} onRetry={reload} />
  return (
    <div className={css.room}>
      <Head thread={thread} rows={rows} />
      {error !== undefined && <ErrorNote error={error} onRetry={reload} />}
      <Chat rows={rows} />
    </div>
  )
}

/** The runs of the thread, those that begin meanwhile included. When one ends, the sums have changed. */
function useRunsOf(id: string, loaded: readonly RunRow[] | undefined, reload: () => void): readonly RunRow[] {
  const [changed, setChanged] = useState<ReadonlyMap<string, RunRow>>(new Map())
  useEffect(() => {
    const ended = new Set<string>()
    const leaveTitles = followTitles((named) => void (named.id === id && reload()))
    const leaveRows = followRows((rows) => {
      const own = rows.filter(({ threadId }) => threadId === id)
      if (own.length === 0) return
      setChanged((before) => new Map([...before, ...own.map((row) => [row.id, row] as const)]))
      const isNews = own.some(({ id: run, endedAt }) => endedAt !== undefined && !ended.has(run))
      for (const { id: run, endedAt } of own) if (endedAt !== undefined) ended.add(run)
      if (isNews) reload()
    })
    return () => {
      leaveTitles()
      leaveRows()
    }
  }, [id, reload])
  const all = new Map(loaded?.map((row) => [row.id, row]))
  for (const [run, row] of changed) if ((all.get(run)?.lastSeq ?? -1) < row.lastSeq) all.set(run, row)
  return [...all.values()]
}

function Head({ thread, rows }: { thread: ShownThread; rows: readonly RunRow[] }) {
  const [isDoomed, setDoomed] = useState(false)
  const [, navigate] = useLocation()
  const { usage, usageByModel } = thread
  const share = cachedShare(
    usageByModel.reduce<Usage | undefined>((sum, each) => addUsage(sum, each.usage), undefined) ?? {},
  )
  const { name, owner, tenant } = useThreadName()(thread.id)
  const mayDelete = useMayDelete()(owner)
  const agent = rows.find(({ id }) => id === thread.lastRunId)?.agent ?? thread.agents[0]
  return (
    <header className={css.head}>
      <h1 className="visually-hidden">{thread.title ?? name}</h1>
      <details className={css.sums}>
        <summary>
          <ThreadState status={thread.status} />
          <span>{thread.agents.join(', ')}</span>
          <Owner owner={owner} tenant={tenant} />
          <span className="num">{thread.runCount === 1 ? '1 run' : `${thread.runCount} runs`}</span>
          <span className="num">{tokens(usage)} tok</span>
          {share !== undefined && share !== '0%' && <span className="num">{share} from the cache</span>}
          <span className="num">{cost(thread.cost)}</span>
        </summary>
        <UsageTable used={thread.usageByModel} />
      </details>
      <div className={css.actions}>
        {agent !== undefined && (
          <Link
            href={`/chat/${encodeURIComponent(agent)}?thread=${encodeURIComponent(thread.id)}`}
            className={css.continue}
          >
            Continue in chat
          </Link>
        )}
        {mayDelete && (
          <Button look="danger" onClick={() => setDoomed(true)}>
            Delete
          </Button>
        )}
      </div>
      <DeleteThread
        thread={isDoomed ? thread : undefined}
        onClose={() => setDoomed(false)}
        onDeleted={() => navigate('/threads', { replace: true })}
      />
    </header>
  )
}

function UsageTable({ used }: { used: readonly UsedByModel[] }) {
  if (used.length === 0) return <p>No model has been called.</p>
  return (
    <table className={css.usage}>
      <thead>
        <tr>
          {['Model', 'Calls', 'Input', 'Cached', 'Output', 'Cost'].map((name) => (
            <th key={name} scope="col">
              {name}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {used.map(({ model, calls, usage, cost: usd }) => (
          <tr key={model}>
            <th scope="row">{model}</th>
            <td>{count(calls)}</td>
            <td>{count(usage.inputTokens ?? 0)}</td>
            <td>{cachedShare(usage) ?? '–'}</td>
            <td>{count(usage.outputTokens ?? 0)}</td>
            <td>{cost(usd)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

function Chat({ rows }: { rows: readonly RunRow[] }) {
  const { get, set } = useQuery()
  const agents = useAgents().value?.agents
  const [most, setMost] = useState(page)
  const newest = rows.reduce<RunRow | undefined>(
    (a, b) => (a === undefined || b.startedAt >= a.startedAt ? b : a),
    undefined,
  )
  // The branch that was the newest when the thread was opened stays, also when somebody branches meanwhile.
  const [first] = useState(newest?.id)
  const through = get('run') ?? first
  const isClientKept = (agent: string) => agents?.find(({ id }) => id === agent)?.history === 'client'
  const turns = branchOf(rows, through, isClientKept)
  const pane = useRef<HTMLDivElement>(null)
  useFollowEnd(pane)
  return (
    // A pane that scrolls is reached with the keyboard.
    <div ref={pane} className={css.pane} data-testid="thread-pane" tabIndex={-1}>
      <ol className={css.turns}>
        {turns.length > most && (
          <li className={css.earlier}>
            <Button onClick={() => setMost(most + page)}>{turns.length - most} earlier</Button>
          </li>
        )}
        {turns.slice(-most).map(({ run, siblings }) => (
          <Turn
            key={run.id}
            run={run}
            siblings={siblings}
            isWhole={isClientKept(run.agent)}
            show={(id) => set({ run: id })}
          />
        ))}
      </ol>
    </div>
  )
}
