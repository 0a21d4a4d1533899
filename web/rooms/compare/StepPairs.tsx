/** The steps of both, those that are the same on one line. */
import { useState } from 'react'
import { Link } from 'wouter'
import type { OutlineStep } from '../../../src/fold/outline-item.ts'
import { Button } from '../../kit/Button.tsx'
import { Empty } from '../../kit/Empty.tsx'
import { duration } from '../../kit/format.ts'
import type { Compared } from './compared.ts'
import { depthOf, differences, lengthOf, nameOf, pairSteps } from './steps.ts'
import css from './Steps.module.css'

const page = 500

export function StepPairs({ steps, a, b }: Compared) {
  const [most, setMost] = useState(page)
  const pairs = pairSteps(steps.a, steps.b)
  if (pairs.length === 0) return <Empty title="Neither run has a step." />
  return (
    <>
      <table className={css.steps}>
        <thead>
          <tr>
            <th scope="col">
              <span className="visually-hidden">Difference</span>
            </th>
            <th scope="col">A</th>
            <th scope="col">B</th>
          </tr>
        </thead>
        <tbody>
          {pairs.slice(0, most).map(([x, y], i) => {
            const found = x && y ? differences(x, y) : []
            const mark = x === undefined ? '+' : y === undefined ? '−' : found.length > 0 ? '~' : ''
            return (
              <tr key={i} data-mark={mark} data-testid="step-pair">
                <td className={css.mark} title={words[mark]}>
                  <span aria-hidden="true">{mark}</span>
                  <span className="visually-hidden">{words[mark]}</span>
                </td>
                <Cell step={x} run={a.id} found={found} />
                <Cell step={y} run={b.id} found={found} />
              </tr>
            )
          })}
        </tbody>
      </table>
      {pairs.length > most && <Button onClick={() => setMost(most + page)}>{pairs.length - most} more steps</Button>}
    </>
  )
}

const words: Record<string, string> = { '+': 'only in B', '−': 'only in A', '~': 'differs', '': 'the same' }

function Cell({ step, run, found }: { step: OutlineStep | undefined; run: string; found: readonly string[] }) {
  if (step === undefined) return <td>–</td>
  const took = lengthOf(step)
  return (
    <td>
      <div className={css.step} style={{ paddingInlineStart: depthOf(step) * 14 }}>
        <Link
          href={`/runs/${encodeURIComponent(run)}?${new URLSearchParams({ sel: step.path })}`}
          className={css.name}
          data-kind={step.kind}
        >
          {nameOf(step)}
        </Link>
        {found.includes('end') && <span className={css.note}>{step.finishReason ?? 'not finished'}</span>}
        {step.error !== undefined && (
          <span className={css.error} title={step.error.message}>
            {step.error.code}
          </span>
        )}
        <span className={`${css.took} num`}>{took === undefined ? '–' : duration(took)}</span>
      </div>
    </td>
  )
}
