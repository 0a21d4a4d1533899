/** The timeline across agents: a lane for each agent, a bar for each recent run. */
import { useState, type KeyboardEvent } from 'react'
import { Link } from 'wouter'
import { Button } from '../../kit/Button.tsx'
import { duration, moment } from '../../kit/format.ts'
import { useNow } from '../../data/media.ts'
import type { Query } from '../../data/query.ts'
import { heightOf, lanesThatFit, layLanes, ticksOf, type Bar, type Lane } from './lanes.ts'
import { isFiltered, type RunFilter } from './run-filter.ts'
import { statusInFull } from '../../kit/status-words.ts'
import { useRecentRuns } from './useRecentRuns.ts'
import { useWaits } from './useWaits.ts'
import css from './AgentLanes.module.css'

const windows = { '15m': 900_000, '1h': 3_600_000 } as const

interface Props {
  query: Query
  filter: RunFilter
  isNarrow: boolean
  /** Stands at the end of its head. */
  aside: string
}

/** `lanes` of the URL: `off`, `15m` (the default on wide screens), `1h`. */
export function AgentLanes({ query, filter, isNarrow, aside }: Props) {
  const chosen = query.get('lanes') ?? (isNarrow ? 'off' : '15m')
  const span = Object.hasOwn(windows, chosen) ? windows[chosen as keyof typeof windows] : undefined
  const rows = useRecentRuns(filter, span)
  const waits = useWaits(rows)
  const now = useNow(1000)
  const [isOpen, setOpen] = useState(false)
  const open = (to: string) => query.set({ lanes: to }, { replace: true })
  const lanes = span === undefined ? [] : layLanes(rows, now - span, now, waits)
  const fits = lanesThatFit(lanes, height)
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
        {fits < lanes.length && (
          <Button look="quiet" className={css.all!} aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
            {isOpen ? 'Show fewer' : `Show all ${lanes.length} agents`}
          </Button>
        )}
        {aside !== '' && <span className={`${css.aside} num`}>{aside}</span>}
      </header>
      {span !== undefined && lanes.length === 0 && (
        <p className={css.none}>{isFiltered(filter) ? 'No runs that fit in this time.' : 'No runs in this time.'}</p>
      )}
      {span !== undefined && lanes.length > 0 && (
        <div className={css.box} data-all={(isOpen && fits < lanes.length) || undefined}>
          <Lanes lanes={lanes} fits={isOpen ? lanes.length : fits} to={now} />
          <Axis from={now - span} to={now} />
        </div>
      )}
    </section>
  )
}

/** Of the lanes, without the times below. */
const height = 110

/** One stop of the Tab key: the arrows move from bar to bar, and from lane to lane. */
function Lanes({ lanes, fits, to }: { lanes: readonly Lane[]; fits: number; to: number }) {
  const [last, setLast] = useState<string>()
  const ids = lanes.flatMap(({ bars }) => bars.map(({ run }) => run.id))
  const stop = last !== undefined && ids.includes(last) ? last : ids[0]
  const px = lanes.slice(0, fits).reduce((sum, lane) => sum + heightOf(lane), 0)
  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-element-interactions -- The bars have the focus.
    <div
      className={css.lanes}
      style={{ height: px }}
      role="group"
      aria-label="Timeline"
      data-testid="agent-lanes"
      onKeyDown={moveInLanes}
    >
      {lanes.map((lane) => (
        <div key={lane.agent} className={css.lane}>
          <span className={css.agent} title={lane.agent}>
            {lane.agent}
          </span>
          <ul className={css.track} style={{ height: heightOf(lane) }}>
            {lane.bars.map((bar) => (
              <li key={bar.run.id}>
                <RunBar bar={bar} to={to} isStop={bar.run.id === stop} onFocus={setLast} />
              </li>
            ))}
          </ul>
        </div>
      ))}
    </div>
  )
}

function moveInLanes(event: KeyboardEvent<HTMLElement>): void {
  const barsOf = (lane: Element | undefined) =>
    [...(lane?.querySelectorAll('a') ?? [])].toSorted((a, b) => leftOf(a) - leftOf(b))
  const lanes = [...event.currentTarget.children]
  const from = event.target as HTMLElement
  const at = lanes.findIndex((lane) => lane.contains(from))
  const here = barsOf(lanes[at])
  const beside = { ArrowLeft: -1, ArrowRight: 1 }[event.key]
  const other = { ArrowUp: -1, ArrowDown: 1 }[event.key]
  if (beside === undefined && other === undefined) return
  event.preventDefault()
  if (beside !== undefined) return here[here.indexOf(from as HTMLAnchorElement) + beside]?.focus()
  const distance = (bar: Element) => Math.abs(leftOf(bar) - leftOf(from))
  barsOf(lanes[at + other!])
    .toSorted((a, b) => distance(a) - distance(b))[0]
    ?.focus()
}

const leftOf = (element: Element) => element.getBoundingClientRect().left

interface RunBarProps {
  bar: Bar
  to: number
  isStop: boolean
  onFocus(id: string): void
}

function RunBar({ bar: { run, left, width, level, waits }, to, isStop, onFocus }: RunBarProps) {
  const took = duration((run.endedAt ?? to) - run.startedAt)
  const waited = waits.length > 0 && run.status !== 'suspended' ? ', hatched: waited for somebody' : ''
  return (
    <Link
      href={`/runs/${encodeURIComponent(run.id)}`}
      className={css.bar}
      tabIndex={isStop ? 0 : -1}
      onFocus={() => onFocus(run.id)}
      data-status={run.status}
      style={{ left: `min(${left}%, 100% - 4px)`, width: `max(4px, ${width}%)`, top: level * 10 + 3 }}
      aria-label={`${statusInFull(run.status)}: ${run.title ?? run.id}`}
      title={`${run.title ?? run.id}\n${statusInFull(run.status)} · ${took}${waited} · ${moment(run.startedAt).slice(11, 19)}`}
    >
      {run.status !== 'suspended' &&
        waits.map((wait) => (
          <i
            key={wait.left}
            className={css.wait}
            data-testid="waited"
            style={{ left: `${wait.left}%`, width: `${wait.width}%` }}
          />
        ))}
    </Link>
  )
}

function Axis({ from, to }: { from: number; to: number }) {
  const span = to - from
  return (
    <div className={`${css.lane} ${css.axis}`} aria-hidden="true" data-testid="lanes-axis">
      <span />
      <div className={css.times}>
        {ticksOf(from + span * 0.02, to - span * 0.03).map((at) => (
          <span key={at} className="num" style={{ left: `${((at - from) / span) * 100}%` }}>
            {moment(at).slice(11, 16)}
          </span>
        ))}
      </div>
    </div>
  )
}
