/** What an answer took: each figure with its name, so that columns can be compared at a glance. */
import { Link } from 'wouter'
import { cost, duration, moment, tokens, tokenSides } from '../../../kit/format.ts'
import type { ChatTurn } from '../turn.ts'
import { factsOf, type Mark } from './answer-facts.ts'
import css from './beside.module.css'

export function AnswerLine({ turn, marks = [] }: { turn: ChatTurn; marks?: readonly Mark[] | undefined }) {
  const { time, firstToken, tokensPerSecond, ...facts } = factsOf(turn)
  const { startedAt, usage = {} } = turn
  const ms = (n: number | undefined) => (n === undefined ? '–' : duration(n))
  const all: [name: string, value: string, title: string, mark?: Mark][] = [
    ['Time', ms(time), `Time of the whole answer, which began ${moment(startedAt)}`, 'fastest'],
    ['First token', ms(firstToken), 'Time until the first word came'],
    ['Tokens', facts.tokens === undefined ? '–' : tokens(usage), tokenSides(usage)],
    ['Tokens/s', tokensPerSecond === undefined ? '–' : String(Math.round(tokensPerSecond)), 'While words came'],
    ['Cost', cost(facts.cost), 'Cost of its model calls', 'cheapest'],
  ]
  return (
    <div className={css.line} data-testid="answer-line">
      <dl className={css.facts}>
        {all.map(([name, value, title, mark]) => (
          <div key={name} title={title} data-best={(mark !== undefined && marks.includes(mark)) || undefined}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      <p className={css.marks}>
        <Link href={`/runs/${encodeURIComponent(turn.runId)}`}>
          Open run <span aria-hidden="true">↗</span>
        </Link>
        {turn.yaml !== undefined && (
          <span title="It ran with settings of its own, not with those of the agent’s file">changed agent</span>
        )}
        {marks.map((mark) => (
          <b key={mark} className={css.mark}>
            {mark}
          </b>
        ))}
      </p>
    </div>
  )
}
