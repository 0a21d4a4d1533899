/** The slowest tools and the most expensive agents. */
import { Link } from 'wouter'
import type { ToolStats } from '../../../src/part/window-stats.ts'
import { cost, count, duration } from '../../kit/format.ts'
import { Heads, Share } from './RankTable.tsx'
import css from './Overview.module.css'

export interface AgentUsage {
  name: string
  calls: number
  inputTokens: number | null
  outputTokens: number | null
  knownCost: number
  unpriced: number
}

const most = 10
/** It counts in no other column. */
const waitedTitle = 'Half of the calls that asked a person or a client waited no longer for the reply'

export function Ranks({ tools, agents, span }: { tools: ToolStats[]; agents: AgentUsage[]; span: string }) {
  const slowest = tools.slice(0, most)
  const tokensOf = ({ inputTokens, outputTokens }: AgentUsage) => (inputTokens ?? 0) + (outputTokens ?? 0)
  const costly = agents.toSorted((a, b) => b.knownCost - a.knownCost || tokensOf(b) - tokensOf(a)).slice(0, most)
  const slow = Math.max(1, ...slowest.map(({ p95 }) => p95 ?? 0))
  const dear = Math.max(...costly.map(({ knownCost }) => knownCost))
  const big = Math.max(1, ...costly.map(tokensOf))
  return (
    <div className={css.ranks}>
      <section className={css.rank} aria-labelledby="slowest-tools">
        <h2 id="slowest-tools">Slowest tools</h2>
        {slowest.length === 0 ? (
          <p>No tool was called in this time.</p>
        ) : (
          <table>
            <Heads names={['Tool', 'Calls', 'Errors', 'p50', 'p95', 'Waited']} />
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
      </section>
      <section className={css.rank} aria-labelledby="costly-agents">
        <h2 id="costly-agents">Most expensive agents</h2>
        {costly.length === 0 ? (
          <p>No model was called in this time.</p>
        ) : (
          <table>
            <Heads names={['Agent', 'Calls', 'Tokens', 'Cost']} />
            <tbody>
              {costly.map((agent) => (
                <tr key={agent.name}>
                  <th scope="row">
                    <Share of={dear > 0 ? agent.knownCost / dear : tokensOf(agent) / big} color="--text-part" />
                    <Link href={`/runs?${new URLSearchParams({ agent: agent.name, since: span })}`}>{agent.name}</Link>
                  </th>
                  <td>{count(agent.calls)}</td>
                  <td>{count(tokensOf(agent))}</td>
                  <td title={agent.unpriced > 0 ? 'The price of some calls is unknown.' : undefined}>
                    {agent.unpriced > 0 && agent.knownCost === 0 ? '–' : cost(agent.knownCost)}
                    {agent.unpriced > 0 && agent.knownCost > 0 && ' +'}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </section>
    </div>
  )
}
