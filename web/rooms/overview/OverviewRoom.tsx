/** What the server did in the last hour, day or week, or in a time of one's own. */
import { useEffect } from 'react'
import { Link } from 'wouter'
import type { Totals } from '../../../src/part/stats.ts'
import type { WindowStats } from '../../../src/part/window-stats.ts'
import { api } from '../../data/client.ts'
import { followRows } from '../../data/live.ts'
import { useNow } from '../../data/media.ts'
import { useQuery, type Query } from '../../data/query.ts'
import { useResource } from '../../data/resource.ts'
import { Button } from '../../kit/Button.tsx'
import { Empty } from '../../kit/Empty.tsx'
import { ErrorNote } from '../../kit/ErrorNote.tsx'
import { cost, count, duration } from '../../kit/format.ts'
import { Skeleton } from '../../kit/Skeleton.tsx'
import { useRunCounts } from '../../shell/use-run-counts.ts'
import { Chart } from './Chart.tsx'
import { Ranks } from './Ranks.tsx'
import { isNow, rangeQuery, readTimeRange, runsIn, sayRange, timeBefore, type TimeRange } from './range.ts'
import { TimePicker } from './TimePicker.tsx'
import { Usage } from './Usage.tsx'
import { changeOf, chartsOf, sumsOf, totalsOf, type Sums } from './series.ts'
import css from './Overview.module.css'

interface Overview extends WindowStats, Totals {}

const slices = 60

export default function OverviewRoom() {
  const { get, set } = useQuery()
  const range = readTimeRange(get)
  const key = JSON.stringify(range)
  const path =
    range.kind === 'window'
      ? `/api/stats?window=${range.name}`
      : `/api/stats?since=${range.since}&until=${range.until}&slices=${slices}`
  const { value, error, reload } = useResource(path, (signal) => api<Overview>(path, { signal }))
  const before = useResource(`before ${key}`, (signal) => readBefore(range, signal))
  useRefresh(reload, range)
  return (
    <div className={css.room}>
      <header className={css.head}>
        <h1 className="visually-hidden">Overview</h1>
        <TimePicker range={range} set={set} />
      </header>
      {error !== undefined && <ErrorNote error={error} onRetry={reload} />}
      {value === undefined ? (
        error === undefined && <Skeleton rows={8} />
      ) : (
        <>
          <Tiles stats={value} before={before.value} range={range} />
          {isEmpty(value) ? (
            <Nothing range={range} set={set} />
          ) : (
            <>
              <div className={css.charts}>
                {chartsOf(value, isPriced(value)).map((data) => (
                  <Chart
                    key={data.title}
                    data={data}
                    onRange={(since, until) => set(rangeQuery({ kind: 'own', since, until }))}
                  />
                ))}
              </div>
              <Ranks stats={value} range={range} />
            </>
          )}
          <Usage range={range} />
        </>
      )}
    </div>
  )
}

function isEmpty({ outcomes, tools, usage }: Overview): boolean {
  return outcomes.length === 0 && tools.length === 0 && (usage?.calls ?? 0) === 0
}

/** Charts without a run say nothing. */
function Nothing({ range, set }: { range: TimeRange; set: Query['set'] }) {
  const isLongest = range.kind === 'window' && range.name === '7d'
  return (
    <Empty title={`No runs ${sayRange(range)}.`}>
      <Link href="/chat">Start one in Chat</Link>
      {isLongest ? '.' : ', or look at more time.'}
      {!isLongest && (
        <p className={css.more}>
          <Button onClick={() => set({ window: '7d', since: undefined, until: undefined })}>The last 7 days</Button>
        </p>
      )}
    </Empty>
  )
}

/** Nothing was called, or at least one price is known: else the sum says nothing. */
function isPriced({ usageByAgent }: Overview): boolean {
  return usageByAgent.every(({ unpriced }) => unpriced === 0) || usageByAgent.some(({ knownCost }) => knownCost > 0)
}

async function readBefore(range: TimeRange, signal: AbortSignal): Promise<Sums> {
  const { since, until } = timeBefore(range, Date.now())
  return sumsOf(await api<Totals>(`/api/stats?since=${since}&until=${until}`, { signal }))
}

function Tiles({ stats, before, range }: { stats: Overview; before: Sums | undefined; range: TimeRange }) {
  const live = useRunCounts()
  const totals = totalsOf(stats.buckets)
  const { success } = sumsOf(stats)
  const { duration: took } = stats
  const running = live === undefined || live.isCut ? stats.running : live.running
  const waiting = live === undefined || live.isCut ? stats.waiting : live.waiting
  const runs = (more: Record<string, string> = {}) => `/runs?${new URLSearchParams({ ...more, ...runsIn(range) })}`
  return (
    <dl className={css.tiles}>
      <Tile name="Running" value={count(running)} href="/runs?status=running" />
      <Tile name="Waiting" value={count(waiting)} href="/runs?status=waiting" />
      <Tile name="Runs" value={count(totals.runs)} href={runs()} change={changeOf(totals.runs, before?.runs)} />
      <Tile name="Failed" value={count(totals.failed)} href={runs({ status: 'failed' })} isBad={totals.failed > 0} />
      <Tile
        name="Success"
        title="Of the runs that have ended and were not stopped"
        value={success === undefined ? '–' : percent(success)}
        change={before?.success === undefined ? undefined : `${percent(before.success)} before`}
      />
      <Tile
        name="Took"
        title="Half of the runs that have ended took no longer, with the time in which they waited; the slowest 5 % took longer than the second number"
        value={took === null ? '–' : duration(took.p50)}
        href={runs({ sort: 'duration' })}
        note={took === null ? undefined : `slowest 5 %: ${duration(took.p95)}`}
      />
      <Tile
        name="Tokens"
        value={count(totals.tokens)}
        href={runs({ sort: 'tokens' })}
        change={changeOf(totals.tokens, before?.tokens)}
      />
      <Tile
        name="Cost"
        value={cost(isPriced(stats) ? totals.cost : undefined)}
        href={runs({ sort: 'cost' })}
        change={changeOf(totals.cost, before?.cost)}
      />
    </dl>
  )
}

interface TileProps {
  name: string
  title?: string
  value: string
  href?: string
  isBad?: boolean
  /** Beside the time before. */
  change?: string | undefined
  note?: string | undefined
}

function Tile({ name, title, value, href, isBad, change, note }: TileProps) {
  return (
    <div className={css.tile} title={title}>
      <dt>{name}</dt>
      <dd className="num" data-bad={isBad || undefined}>
        {href === undefined ? value : <Link href={href}>{value}</Link>}
        {change !== undefined && (
          <small className={css.change} title="Compared with the time before, of the same length">
            {change}
          </small>
        )}
        {note !== undefined && <small className={css.change}>{note}</small>}
      </dd>
    </div>
  )
}

function percent(share: number): string {
  return `${(share * 100).toFixed(share > 0.99 && share < 1 ? 1 : 0)} %`
}

/** Again when runs have changed, at most every three seconds, and each half minute, because time moves on. A time that is over stays as it is. */
function useRefresh(reload: () => void, range: TimeRange): void {
  const isOver = !isNow(range, useNow(10_000))
  useEffect(() => {
    if (isOver) return
    let timer: ReturnType<typeof setTimeout> | undefined
    const leave = followRows(() => {
      timer ??= setTimeout(() => {
        timer = undefined
        reload()
      }, 3000)
    })
    const clock = setInterval(() => document.visibilityState === 'visible' && reload(), 30_000)
    return () => {
      leave()
      clearTimeout(timer)
      clearInterval(clock)
    }
  }, [reload, isOver])
}
