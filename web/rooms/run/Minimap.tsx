/** All of a run in one strip: how much happened when. Drag over it to see a part below. */
import { useMemo, useRef, useState, type PointerEvent } from 'react'
import { duration } from '../../kit/format.ts'
import { measureActivity } from './layout/activity.ts'
import { segmentsOf, ticksOf } from './layout/bars.ts'
import { wholeView } from './layout/scale.ts'
import { pausesOf } from './layout/spans.ts'
import { useZoom } from './use-zoom.ts'
import type { Room } from './use-room.ts'
import css from './Minimap.module.css'

const slices = 240

export function Minimap({ room }: { room: Room }) {
  const { model, view, at, snapshot } = room
  const { whole, scale } = model
  const strip = useRef<HTMLDivElement>(null)
  const [brush, setBrush] = useState<{ from: number; to: number }>()
  useZoom(strip, room, false)
  // Of the whole run: the scrubber moves a line over it.
  // A large one is measured less often.
  const every = whole.all.length > 2000 ? 2000 : 200
  const end = at === undefined && snapshot.isLive ? Math.ceil(model.now / every) * every : scale.to
  const paths = useMemo(() => {
    const pauses = pausesOf(whole, end)
    const activity = measureActivity(whole, scale, (node) => segmentsOf(node, end, pauses), slices)
    const sum = activity.text.map((value, i) => value + activity.reasoning[i]!)
    return {
      wait: area(activity.wait, 0.1),
      tool: area(activity.tool, 0.3),
      text: area(sum, 0.92),
      reasoning: area(activity.reasoning, 0.92),
    }
  }, [whole, scale, end])
  const faults = useMemo(
    () => whole.all.flatMap(({ marks }) => ticksOf(marks)).filter(({ kind }) => kind === 'error' || kind === 'retry'),
    [whole],
  )
  const place = (event: PointerEvent) => {
    const { left, width } = strip.current!.getBoundingClientRect()
    return Math.min(1, Math.max(0, (event.clientX - left) / width))
  }
  const percent = (x: number) => `${x * 100}%`
  const isZoomed = view.to - view.from < 0.999
  const shown = brush ?? (isZoomed ? view : undefined)
  return (
    // Keys do the same: w, s, a and d.
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-element-interactions
    <div
      ref={strip}
      className={css.strip}
      role="group"
      aria-label={`Activity over ${duration(scale.to - scale.from)}`}
      onPointerDown={(event) => {
        if (event.button !== 0) return
        event.currentTarget.setPointerCapture(event.pointerId)
        setBrush({ from: place(event), to: place(event) })
      }}
      onPointerMove={(event) => brush && setBrush({ ...brush, to: place(event) })}
      onPointerUp={() => {
        if (brush === undefined) return
        const [from, to] = [Math.min(brush.from, brush.to), Math.max(brush.from, brush.to)]
        setBrush(undefined)
        if (to - from > 0.005) room.setView({ from, to })
      }}
      onPointerCancel={() => setBrush(undefined)}
      onDoubleClick={() => room.setView(wholeView)}
    >
      <svg viewBox={`0 0 ${slices} 1`} preserveAspectRatio="none" aria-hidden="true">
        <path d={paths.wait} data-kind="wait" />
        <path d={paths.tool} data-kind="tool" />
        <path d={paths.text} data-kind="text" />
        <path d={paths.reasoning} data-kind="reasoning" />
      </svg>
      {faults.slice(0, 100).map(({ seq, kind, at: time }) => (
        <i key={seq} className={css.fault} data-kind={kind} style={{ left: percent(scale.toX(time)) }} />
      ))}
      {scale.gaps.map(({ from, to }) => (
        <span
          key={from}
          className={css.gap}
          title={`${duration(to - from)} without anything`}
          style={{ left: percent(scale.toX(from)), width: percent(scale.toX(to) - scale.toX(from)) }}
        >
          <span>{shortGap(to - from)}</span>
        </span>
      ))}
      {shown && (
        <div
          className={css.window}
          style={{
            left: percent(Math.min(shown.from, shown.to)),
            width: percent(Math.abs(shown.to - shown.from)),
          }}
        />
      )}
      {(at !== undefined || snapshot.isLive) && (
        <i className={css.head} style={{ left: percent(Math.min(1, scale.toX(model.now))) }} />
      )}
    </div>
  )
}

/** `2h`, `15m`, `3s` */
function shortGap(ms: number): string {
  if (ms >= 3_600_000) return `${Math.round(ms / 3_600_000)}h`
  return ms >= 60_000 ? `${Math.round(ms / 60_000)}m` : `${Math.round(ms / 1000)}s`
}

function area(values: Float64Array, height: number): string {
  let path = ''
  for (const [i, value] of values.entries()) {
    if (value <= 0) continue
    const top = (1 - Math.max(0.04, value * height)).toFixed(3)
    path += `M${i} 1V${top}H${i + 1}V1Z`
  }
  return path
}
