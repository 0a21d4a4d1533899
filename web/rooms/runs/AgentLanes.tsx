/** The timeline across agents: a lane for each agent, a bar for each recent run. */
import { Link } from 'wouter'
import { Button } from '../../kit/Button.tsx'
import { duration, moment } from '../../kit/format.ts'
import { useNow } from '../../data/media.ts'
import type { Query } from '../../data/query.ts'
import { layLanes, ticksOf } from './lanes.ts'
import { statusInFull } from '../../kit/status-words.ts'
import { useRecentRuns } from './useRecentRuns.ts'
import css from './AgentLanes.module.css'

const windows = { '15m': 900_000, '1h': 3_600_000 } as const

/** `lanes` of the URL: `off`, `15m` (the default on wide screens), `1h`. */
export function AgentLanes({ query, isNarrow }: { query: Query; isNarrow: boolean }) {
  const chosen = query.get('lanes') ?? (isNarrow ? 'off' : '15m')
  const span = Object.hasOwn(windows, chosen) ? windows[chosen as keyof typeof windows] : undefined
  const rows = useRecentRuns(span)
  const now = useNow(1000)
  const open = (to: string) => query.set({ lanes: to }, { replace: true })
  return (
    <section className={css.strip} aria-label="Recent runs by agent">
      <header className={css.head}>
        <Button
          look="quiet"
          icon={span === undefined ? 'right' : 'down'}
          aria-expanded={span !== undefined}
          onClick={() => open(span === undefined ? '15m' : 'off')}
        >
          Timeline
        </Button>
        {span !== undefined &&
          Object.keys(windows).map((name) => (
            <Button key={name} look="quiet" aria-pressed={chosen === name} onClick={() => open(name)}>
              {name === '15m' ? '15 min' : '1 h'}
            </Button>
          ))}
      </header>
      {span !== undefined && <Lanes rows={rows} from={now - span} to={now} />}
    </section>
  )
}

function Lanes({ rows, from, to }: { rows: Parameters<typeof layLanes>[0]; from: number; to: number }) {
  const lanes = layLanes(rows, from, to)
  if (lanes.length === 0) return <p className={css.none}>No runs in this time.</p>
  const span = to - from
  return (
    <div className={css.lanes}>
      {lanes.map(({ agent, bars, levels }) => (
        <div key={agent} className={css.lane}>
          <span className={css.agent} title={agent}>
            {agent}
          </span>
          <ul className={css.track} style={{ height: levels * 10 + 4 }}>
            {bars.map(({ run, left, width, level }) => (
              <li key={run.id}>
                <Link
                  href={`/runs/${encodeURIComponent(run.id)}`}
                  className={css.bar}
                  data-status={run.status}
                  style={{ left: `min(${left}%, 100% - 4px)`, width: `max(4px, ${width}%)`, top: level * 10 + 3 }}
                  aria-label={`${statusInFull(run.status)}: ${run.title ?? run.id}`}
                  title={`${run.title ?? run.id}\n${statusInFull(run.status)} · ${duration((run.endedAt ?? to) - run.startedAt)} · ${moment(run.startedAt).slice(11, 19)}`}
                />
              </li>
            ))}
          </ul>
        </div>
      ))}
      <div className={css.lane} aria-hidden="true">
        <span />
        <div className={css.times}>
          {ticksOf(from + span * 0.02, to - span * 0.03).map((at) => (
            <span key={at} className="num" style={{ left: `${((at - from) / span) * 100}%` }}>
              {moment(at).slice(11, 16)}
            </span>
          ))}
        </div>
      </div>
    </div>
  )
}
