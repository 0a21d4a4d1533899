/** When each step ran, on one scale for both. */
import type { OutlineStep } from '../../../src/fold/outline-item.ts'
import { Empty } from '../../kit/Empty.tsx'
import { duration } from '../../kit/format.ts'
import type { Compared } from './compared.ts'
import { depthOf, lengthOf, nameOf, pairSteps } from './steps.ts'
import { signed } from './Summary.tsx'
import css from './Timing.module.css'

const most = 1000

export function Timing({ steps, a, b }: Compared) {
  const pairs = pairSteps(steps.a, steps.b).slice(0, most)
  if (pairs.length === 0) return <Empty title="Neither run has a step." />
  const [startA, startB] = [steps.a, steps.b].map((each) => Math.min(...each.map(({ at }) => at).slice(0, 1)))
  const span = Math.max(1, ...[a, b].map((run) => run.duration + (run.takenOver ?? 0)))
  return (
    <ol className={css.rows}>
      <li className={css.scale} aria-hidden="true">
        <span>0</span>
        <span>{duration(span)}</span>
      </li>
      {pairs.map(([x, y], i) => {
        const step = (x ?? y)!
        const [ofA, ofB] = [x && lengthOf(x), y && lengthOf(y)]
        return (
          <li key={i} className={css.row}>
            <span className={css.name} style={{ paddingInlineStart: depthOf(step) * 14 }}>
              {nameOf(step)}
            </span>
            <span className={css.track}>
              <Bar side="A" step={x} start={startA!} span={span} />
              <Bar side="B" step={y} start={startB!} span={span} />
            </span>
            <span className={`${css.number} num`}>{ofA === undefined ? '–' : duration(ofA)}</span>
            <span className={`${css.number} num`}>{ofB === undefined ? '–' : duration(ofB)}</span>
            <span className={`${css.number} ${css.change} num`}>
              {ofA === undefined || ofB === undefined ? '' : signed(ofA, ofB, duration)}
            </span>
          </li>
        )
      })}
    </ol>
  )
}

interface BarProps {
  side: 'A' | 'B'
  step: OutlineStep | undefined
  start: number
  span: number
}

function Bar({ side, step, start, span }: BarProps) {
  if (step === undefined) return <span className={css.none} />
  const left = ((step.at - start) / span) * 100
  const width = ((lengthOf(step) ?? 0) / span) * 100
  return (
    <span className={css.line}>
      <span
        className={css.bar}
        data-side={side}
        style={{ left: `min(${left}%, 100% - 2px)`, width: `max(2px, ${Math.min(width, 100 - left)}%)` }}
      />
    </span>
  )
}
