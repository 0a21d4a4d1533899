/** The slowest tools, the most expensive agents and models, and what failed. */
import { Link } from 'wouter'
import type { Totals, UsageOf } from '../../../src/part/stats.ts'
import type { WindowStats } from '../../../src/part/window-stats.ts'
import { cost, count, duration } from '../../kit/format.ts'
import { Heads, Share } from './RankTable.tsx'
import { runsIn, type TimeRange } from './range.ts'
import css from './Overview.module.css'

const most = 10
/** It counts in no other column. */
const waitedTitle = 'Half of the calls that asked a person or a client were answered within this time'

interface Props {
  stats: Pick<WindowStats, 'tools'> & Pick<Totals, 'usageByAgent' | 'usageByModel' | 'errors'>
  range: TimeRange
}

export function Ranks({ stats: { tools, usageByAgent, usageByModel, errors }, range }: Props) {
  const slowest = tools.slice(0, most)
  const slow = Math.max(1, ...slowest.map(({ p95 }) => p95 ?? 0))
  return (
    <div className={css.ranks}>
      <section className={css.rank} aria-labelledby="slowest-tools">
        <h2 id="slowest-tools">Slowest tools</h2>
        {slowest.length === 0 ? (
          <p>No tool was called in this time.</p>
        ) : (
          <table>
            <Heads
              names={['Tool', 'Calls', 'Errors', 'p50', 'p95', 'Waited']}
              titles={{
                p50: 'Half of the calls took no longer than this',
                p95: 'The slowest 5 % took longer than this',
              }}
            />
            <tbody>
              {slowest.map(({ name, calls, errors, p50, p95, waited }) => (
                <tr key={name}>
                  <th scope="row">
                    <Share of={(p95 ?? 0) / slow} color="--tool-part" />
                    {name}
                  </th>
                  <td>{count(calls)}</td>
                  <td data-bad={errors > 0 || undefined}>{count(errors)}</td>
                  <td>{p50 === null ? '–' : duration(p50)}</td>
                  <td>{p95 === null ? '–' : duration(p95)}</td>
                  <td title={waitedTitle}>{waited === null ? '–' : duration(waited.p50)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
        {slowest.length > 0 && (
          <p className={css.note}>
            Half of the calls took no longer than p50, the slowest 5 % longer than p95. Time in which somebody was asked
            stands under Waited only.
          </p>
        )}
      </section>
      <Costs
        id="costly-agents"
        title="Most expensive agents"
        head="Agent"
        rows={usageByAgent}
        link={(agent) => `/runs?${new URLSearchParams({ agent, sort: 'cost', ...runsIn(range) })}`}
      />
      <Costs
        id="costly-models"
        title="Most expensive models"
        head="Model"
        rows={usageByModel}
        link={(model) => `/runs?${new URLSearchParams({ model, sort: 'cost', ...runsIn(range) })}`}
      />
      <section className={css.rank} aria-labelledby="errors-by-kind">
        <h2 id="errors-by-kind">Errors by kind</h2>
        {errors.length === 0 ? (
          <p>Nothing failed in this time.</p>
        ) : (
          <table>
            <Heads names={['Error', 'Runs']} />
            <tbody>
              {errors.slice(0, most).map(({ name, count: runs }) => (
                <tr key={name}>
                  <th scope="row">
                    <Share of={runs / errors[0]!.count} color="--error-part" />
                    <Link href={`/runs?${new URLSearchParams({ status: 'failed', ...runsIn(range) })}`}>{name}</Link>
                  </th>
                  <td>{count(runs)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </section>
    </div>
  )
}

interface CostsProps {
  id: string
  title: string
  head: string
  rows: readonly UsageOf[]
  /** Where a name leads. */
  link(name: string): string
}

function Costs({ id, title, head, rows, link }: CostsProps) {
  const tokensOf = ({ inputTokens, outputTokens }: UsageOf) => (inputTokens ?? 0) + (outputTokens ?? 0)
  const costly = rows.toSorted((a, b) => b.knownCost - a.knownCost || tokensOf(b) - tokensOf(a)).slice(0, most)
  const dear = Math.max(...costly.map(({ knownCost }) => knownCost))
  const big = Math.max(1, ...costly.map(tokensOf))
  return (
    <section className={css.rank} aria-labelledby={id}>
      <h2 id={id}>{title}</h2>
      {costly.length === 0 ? (
        <p>No model was called in this time.</p>
      ) : (
        <table>
          <Heads names={[head, 'Calls', 'Tokens', 'Cost']} />
          <tbody>
            {costly.map((each) => (
              <tr key={each.name}>
                <th scope="row">
                  <Share of={dear > 0 ? each.knownCost / dear : tokensOf(each) / big} color="--text-part" />
                  <Link href={link(each.name)}>{each.name}</Link>
                </th>
                <td>{count(each.calls)}</td>
                <td>{count(tokensOf(each))}</td>
                <td title={each.unpriced > 0 ? 'The price of some calls is unknown.' : undefined}>
                  {each.unpriced > 0 && each.knownCost === 0 ? '–' : cost(each.knownCost)}
                  {each.unpriced > 0 && each.knownCost > 0 && ' +'}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  )
}
