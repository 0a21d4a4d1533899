/** A chart, and the same as a table. */
import { useEffect, useRef, useState } from 'react'
import { Link } from 'wouter'
import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import { useMedia } from '../../data/media.ts'
import { Button } from '../../kit/Button.tsx'
import { moment } from '../../kit/format.ts'
import { useTheme } from '../../shell/theme.ts'
import { shortest } from './range.ts'
import { noneOf, rowsOf, type ChartData } from './series.ts'
import css from './Chart.module.css'

const height = 168

interface Props {
  data: ChartData
  /** A time was chosen, epoch ms. */
  onRange(since: number, until: number): void
}

export function Chart({ data, onRange }: Props) {
  const [isTable, setTable] = useState(false)
  const [at, setAt] = useState<number>()
  const { title, times, series, write } = data
  const none = noneOf(data)
  const said = (value: number | null | undefined) => (value === null || value === undefined ? '–' : write(value))
  return (
    <figure className={css.chart}>
      <figcaption className={css.head}>
        <h2>{title}</h2>
        <span className={`${css.legend} num`}>
          {at !== undefined && times[at] !== undefined && <span>{moment(times[at] * 1000).slice(5, 16)}</span>}
          {series.map(({ label, color, values, about }, i) => (
            <span
              key={label}
              title={about}
              className={css.key}
              data-dashed={i > 0 || undefined}
              style={{ '--key': `var(${color})` }}
            >
              {label} {at !== undefined && said(values[at])}
            </span>
          ))}
        </span>
        <Button
          look="quiet"
          aria-pressed={isTable}
          aria-label={`${title} as a table`}
          onClick={() => setTable(!isTable)}
        >
          Table
        </Button>
      </figcaption>
      {none !== undefined ? (
        <p className={`${css.pane} ${css.none}`}>{none}</p>
      ) : isTable ? (
        <Table data={data} said={said} />
      ) : (
        <Plot data={data} onPoint={setAt} onRange={onRange} />
      )}
    </figure>
  )
}

function Table({ data, said }: { data: ChartData; said(value: number | null): string }) {
  const rows = rowsOf(data)
  return (
    <section className={css.pane} aria-label={`${data.title}: table`}>
      <table className={css.table}>
        <thead>
          <tr>
            <th scope="col">From</th>
            {data.series.map(({ label }) => (
              <th key={label} scope="col">
                {label}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(({ at, values }) => (
            <tr key={at}>
              <th scope="row">
                <Link href={`/runs?since=${Math.floor(at)}&until=${Math.ceil(at + data.slice * 1000)}`}>
                  {moment(at).slice(5, 16)}
                </Link>
              </th>
              {values.map((value, i) => (
                <td key={data.series[i]!.label}>{said(value)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {rows.length === 0 && <p className={css.none}>Nothing in this time.</p>}
    </section>
  )
}

function Plot({ data, onPoint, onRange }: Props & { onPoint(at: number | undefined): void }) {
  const place = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot>(undefined)
  const theme = useTheme()
  const isDark = useMedia('(prefers-color-scheme: dark)')
  const latest = useRef({ data, onPoint, onRange })
  useEffect(() => {
    latest.current = { data, onPoint, onRange }
  })
  const shape = JSON.stringify(data.series.map(({ label, color, kind }) => [label, color, kind]))
  // Colours are drawn: another theme is another chart.
  useEffect(() => {
    const target = place.current!
    const options = optionsOf(latest.current.data, target, {
      onPoint: (at) => latest.current.onPoint(at),
      onRange: (since, until) => latest.current.onRange(since, until),
    })
    plot.current = new uPlot(options, valuesOf(latest.current.data), target)
    const observer = new ResizeObserver(() => plot.current?.setSize({ width: target.clientWidth, height }))
    observer.observe(target)
    return () => {
      observer.disconnect()
      plot.current?.destroy()
      plot.current = undefined
    }
  }, [shape, theme, isDark])
  useEffect(() => plot.current?.setData(valuesOf(data)), [data])
  return <div ref={place} className={css.plot} aria-hidden="true" />
}

function valuesOf({ times, series }: ChartData): uPlot.AlignedData {
  return [times, ...series.map(({ values }) => values)]
}

interface Told {
  onPoint(at: number | undefined): void
  onRange(since: number, until: number): void
}

function optionsOf(data: ChartData, target: HTMLElement, { onPoint, onRange }: Told): uPlot.Options {
  const color = colorsOf(target)
  const font = `11px ${getComputedStyle(document.body).fontFamily}`
  const bars = uPlot.paths.bars!({ size: [0.8, 24], align: 1 })
  const axis: uPlot.Axis = {
    stroke: color('--ink-soft'),
    font,
    grid: { stroke: color('--line'), width: 1 },
    ticks: { show: false },
  }
  return {
    width: target.clientWidth,
    height,
    legend: { show: false },
    cursor: { y: false, points: { show: false }, drag: { x: true, y: false, setScale: false } },
    hooks: {
      setCursor: [({ cursor }) => onPoint(cursor.idx ?? undefined)],
      setSelect: [
        (plot) => {
          const { left, width } = plot.select
          if (width < shortestDrag) return
          const [since, until] = [left, left + width].map((x) => Math.round(plot.posToVal(x, 'x') * 1000))
          plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false)
          if (until! - since! >= shortest) onRange(since!, until!)
        },
      ],
    },
    // At the right, half of a label that stands at the end.
    padding: [8, 20, 0, 0],
    scales: {
      x: { range: (u) => rangeOf(u.data[0], data.slice) },
      y: { range: (_, __, max) => [0, max > 0 ? max * 1.1 : 1] },
    },
    axes: [
      { ...axis, space: 72, size: 24, values: (_, ticks) => ticks.map((tick) => timeOf(tick * 1000, data)) },
      {
        ...axis,
        space: 32,
        size: 56,
        values: (_, ticks) => ticks.map((tick) => data.write(tick)),
        ...(data.isWhole && { incrs: wholeSteps }),
      },
    ],
    series: [
      {},
      ...data.series.map((series, i): uPlot.Series => {
        const stroke = color(series.color)
        return {
          label: series.label,
          stroke,
          width: series.kind === 'bars' ? 0 : 2,
          points: { show: series.kind === 'dots', size: 5, fill: stroke },
          ...(series.kind === 'bars' ? { fill: stroke, paths: bars } : i > 0 && { dash: [4, 3] }),
        }
      }),
    ],
  }
}

/** px. What is shorter is a click. */
const shortestDrag = 8

/** Between the lines of an axis that counts: there is no half of a run. */
const wholeSteps = Array.from({ length: 9 }, (_, i) => [1, 2, 5].map((step) => step * 10 ** i)).flat()

/** To the end of the last slice. */
function rangeOf(times: ArrayLike<number>, slice: number): uPlot.Range.MinMax {
  const last = times[times.length - 1] ?? 0
  return [times[0] ?? 0, last + slice]
}

/** `14:05`, or the day if the chart spans days. */
function timeOf(at: number, { times }: ChartData): string {
  const text = moment(at)
  return times.at(-1)! - times[0]! > 2 * 86_400 ? text.slice(5, 10) : text.slice(11, 16)
}

/** What a custom property is in the theme of now: a canvas knows no variables. */
function colorsOf(target: HTMLElement): (name: string) => string {
  return (name) => {
    const probe = document.createElement('i')
    probe.style.color = `var(${name})`
    target.append(probe)
    const { color } = getComputedStyle(probe)
    probe.remove()
    return color
  }
}
