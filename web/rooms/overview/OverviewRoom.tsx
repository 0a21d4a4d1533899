/** What the server did in the last hour, day or week. */
import { useEffect } from 'react'
import { Link } from 'wouter'
import type { Totals } from '../../../src/part/stats.ts'
import type { WindowStats } from '../../../src/part/window-stats.ts'
import { api } from '../../data/client.ts'
import { followRows } from '../../data/live.ts'
import { useQuery } from '../../data/query.ts'
import { useResource } from '../../data/resource.ts'
import { Button } from '../../kit/Button.tsx'
import { ErrorNote } from '../../kit/ErrorNote.tsx'
import { cost, count } from '../../kit/format.ts'
import { Skeleton } from '../../kit/Skeleton.tsx'
import { useRunCounts } from '../../shell/use-run-counts.ts'
import { Chart } from './Chart.tsx'
import { Ranks } from './Ranks.tsx'
import { lengths, Usage } from './Usage.tsx'
import { changeOf, chartsOf, sumsOf, totalsOf, type Sums } from './series.ts'
import css from './Overview.module.css'

const windows = ['1h', '24h', '7d'] as const

interface Overview extends WindowStats, Totals {}

export default function OverviewRoom() {
  const { get, set } = useQuery()
  const span = windows.find((each) => each === get('window')) ?? '1h'
  const path = `/api/stats?window=${span}`
  const { value, error, reload } = useResource(path, (signal) => api<Overview>(path, { signal }))
  const before = useResource(`before ${span}`, (signal) => readBefore(span, signal))
  useRefresh(reload)
  return (
    <div className={css.room}>
      <header className={css.head}>
        <h1 className="visually-hidden">Overview</h1>
        <fieldset className={css.windows} aria-label="Time">
          {windows.map((each) => (
            <Button key={each} aria-pressed={each === span} onClick={() => set({ window: each })}>
              {each}
            </Button>
          ))}
        </fieldset>
      </header>
      {error !== undefined && <ErrorNote error={error} onRetry={reload} />}
      {value === undefined ? (
        error === undefined && <Skeleton rows={8} />
      ) : (
        <>
          <Tiles stats={value} before={before.value} span={span} />
          <div className={css.charts}>
            {chartsOf(value, isPriced(value)).map((data) => (
              <Chart key={data.title} data={data} />
            ))}
          </div>
          <Ranks stats={value} span={span} />
          <Usage span={span} />
        </>
      )}
    </div>
  )
}

/** Nothing was called, or at least one price is known: else the sum says nothing. */
function isPriced({ usageByAgent }: Overview): boolean {
  return usageByAgent.every(({ unpriced }) => unpriced === 0) || usageByAgent.some(({ knownCost }) => knownCost > 0)
}

/** The time of the same length before the one that is shown. */
async function readBefore(span: (typeof windows)[number], signal: AbortSignal): Promise<Sums> {
  const length = lengths[span]
  const until = Date.now() - length
  return sumsOf(await api<Totals>(`/api/stats?since=${until - length}&until=${until}`, { signal }))
}

function Tiles({ stats, before, span }: { stats: Overview; before: Sums | undefined; span: string }) {
  const live = useRunCounts()
  const totals = totalsOf(stats.buckets)
  const { success } = sumsOf(stats)
  const running = live === undefined || live.isCut ? stats.running : live.running
  const waiting = live === undefined || live.isCut ? stats.waiting : live.waiting
  const failed = `/runs?status=failed&since=${span}`
  return (
    <dl className={css.tiles}>
      <Tile name="Running" value={count(running)} href="/runs?status=running" />
      <Tile name="Waiting" value={count(waiting)} href="/runs?status=waiting" />
      <Tile
        name="Runs"
        value={count(totals.runs)}
        href={`/runs?since=${span}`}
        change={changeOf(totals.runs, before?.runs)}
      />
      <Tile name="Failed" value={count(totals.failed)} href={failed} isBad={totals.failed > 0} />
      <Tile
        name="Success"
        title="Of the runs that have ended and were not stopped"
        value={success === undefined ? '–' : percent(success)}
        change={before?.success === undefined ? undefined : `${percent(before.success)} before`}
      />
      <Tile name="Tokens" value={count(totals.tokens)} change={changeOf(totals.tokens, before?.tokens)} />
      <Tile
        name="Cost"
        value={cost(isPriced(stats) ? totals.cost : undefined)}
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
}

function Tile({ name, title, value, href, isBad, change }: TileProps) {
  return (
    <div className={css.tile} title={title}>
      <dt>{name}</dt>
      <dd className="num" data-bad={isBad || undefined}>
        {href === undefined ? value : <Link href={href}>{value}</Link>}
        {change !== undefined && (
          <small className={css.change} title="Beside the time before, of the same length">
            {change}
          </small>
        )}
      </dd>
    </div>
  )
}

function percent(share: number): string {
  return `${(share * 100).toFixed(share > 0.99 && share < 1 ? 1 : 0)} %`
}

/** Again when runs have changed, at most every three seconds, and each half minute, because time moves on. */
function useRefresh(reload: () => void): void {
  useEffect(() => {
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
  }, [reload])
}
