/** What users have used in the shown time, and how much of their quotas is left. Only on a server that asks who calls. */
import { Link } from 'wouter'
import type { QuotaUse } from '../../../src/part/quota.ts'
import type { UsageReport, UsageReportRow } from '../../../src/part/usage-report.ts'
import { api } from '../../data/client.ts'
import { useResource } from '../../data/resource.ts'
import { useSeesOthers, useSignedIn } from '../../data/server.ts'
import { ErrorNote } from '../../kit/ErrorNote.tsx'
import { cost, count } from '../../kit/format.ts'
import { Heads, Share } from './RankTable.tsx'
import { boundsOf, runsIn, type TimeRange } from './range.ts'
import css from './Overview.module.css'

const most = 10

interface Report extends UsageReport {
  quotas: QuotaUse[]
}

export function Usage({ range }: { range: TimeRange }) {
  return useSignedIn() === undefined ? null : <SignedInUsage range={range} />
}

function SignedInUsage({ range }: { range: TimeRange }) {
  const seesOthers = useSeesOthers()
  const { value, error, reload } = useResource(`usage ${JSON.stringify(range)}`, (signal) => {
    const { since, until } = boundsOf(range, Date.now())
    return api<Report>(`/api/usage?by=user&since=${since}${range.kind === 'own' ? `&until=${until}` : ''}`, { signal })
  })
  if (error !== undefined) return <ErrorNote error={error} onRetry={reload} />
  if (value === undefined) return null
  return (
    <div className={css.ranks}>
      {seesOthers && <Users rows={value.rows} range={range} />}
      {value.quotas.length > 0 && <Quotas quotas={value.quotas} />}
    </div>
  )
}

function Users({ rows, range }: { rows: readonly UsageReportRow[]; range: TimeRange }) {
  const shown = rows.slice(0, most)
  const big = Math.max(1, ...shown.map(({ totalTokens }) => totalTokens))
  return (
    <section className={css.rank} aria-labelledby="usage-of-users">
      <h2 id="usage-of-users">Users with the most tokens</h2>
      {shown.length === 0 ? (
        <p>Nobody has started a run in this time.</p>
      ) : (
        <table>
          <Heads names={['User', 'Runs', 'Tokens', 'Cost']} />
          <tbody>
            {shown.map((row) => (
              <tr key={`${row.tenant ?? ''}/${row.name}`}>
                <th scope="row">
                  <Share of={row.totalTokens / big} color="--text-part" />
                  {row.name === '' ? (
                    'No one'
                  ) : (
                    <Link href={`/runs?${new URLSearchParams({ user: row.name, ...runsIn(range) })}`}>{row.name}</Link>
                  )}
                  {row.tenant && ` of ${row.tenant}`}
                </th>
                <td>{count(row.runs)}</td>
                <td>{count(row.totalTokens)}</td>
                <td title={row.unpriced > 0 ? 'The price of some calls is unknown.' : undefined}>
                  {row.unpriced > 0 && row.cost === 0 ? '–' : cost(row.cost)}
                  {row.unpriced > 0 && row.cost > 0 && ' +'}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  )
}

const words: Record<string, string> = {
  runsPerMinute: 'runs a minute',
  streams: 'open streams',
  tokensPerMinute: 'tokens a minute',
  tokensPerDay: 'tokens a day',
  tokensPerMonth: 'tokens a month',
  usdPerMinute: 'USD a minute',
  usdPerDay: 'USD a day',
  usdPerMonth: 'USD a month',
}
const holders: Record<string, string> = { perUser: 'Your', perTenant: 'Your tenant’s', perKey: 'Your key’s' }

function Quotas({ quotas }: { quotas: readonly QuotaUse[] }) {
  return (
    <section className={css.rank} aria-labelledby="quotas">
      <h2 id="quotas">Your quotas</h2>
      <table>
        <Heads names={['Quota', 'Used', 'Limit', 'Resets']} />
        <tbody>
          {quotas.map(({ which, limit, used, resetsAt }) => {
            const [holder = '', name = ''] = which.split('.')
            const amount = (value: number) => (name.startsWith('usd') ? cost(value) : count(value))
            const isUsedUp = used !== undefined && used >= limit
            return (
              <tr key={which}>
                <th scope="row">
                  <Share of={Math.min(1, (used ?? 0) / limit)} color={isUsedUp ? '--error-ink' : '--text-part'} />
                  {holders[holder] ?? holder} {words[name] ?? name}
                </th>
                <td data-bad={isUsedUp || undefined}>{used === undefined ? '–' : amount(used)}</td>
                <td>{amount(limit)}</td>
                <td>{resetsAt === undefined ? '–' : <time>{new Date(resetsAt).toLocaleString()}</time>}</td>
              </tr>
            )
          })}
        </tbody>
      </table>
    </section>
  )
}
