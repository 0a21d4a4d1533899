/** What each of the two came to, and the difference. */
import { useNarrow } from '../../data/media.ts'
import { cost, count, duration } from '../../kit/format.ts'
import { statusInFull } from '../../kit/status-words.ts'
import type { Compared, RunDigest } from './compared.ts'
import css from './Compare.module.css'

interface Measure {
  name: string
  of(run: RunDigest): number | undefined
  write(value: number): string
  /** What stands beside the value. */
  beside?(run: RunDigest): string
}

const measures: readonly Measure[] = [
  {
    name: 'Duration',
    of: (run) => run.duration,
    write: duration,
    beside: ({ takenOver }) => (!takenOver ? '' : ` (+${duration(takenOver)} taken over)`),
  },
  { name: 'Tokens in', of: ({ usage }) => usage?.inputTokens, write: count },
  { name: 'Tokens out', of: ({ usage }) => usage?.outputTokens, write: count },
  { name: 'Cost', of: (run) => run.cost, write: cost },
  { name: 'Model calls', of: (run) => run.modelCalls, write: count },
  { name: 'Tool calls', of: ({ tools }) => tools.length, write: count },
  { name: 'Entries', of: (run) => run.entries, write: count },
]

interface SummaryRow {
  name: string
  a: string
  b: string
  change: string
}

export function Summary({ a, b }: Pick<Compared, 'a' | 'b'>) {
  const isNarrow = useNarrow()
  const rows: SummaryRow[] = [
    {
      name: 'Status',
      a: statusInFull(a.outcome),
      b: statusInFull(b.outcome),
      change: a.outcome === b.outcome ? '=' : '≠',
    },
    ...measures.map(({ name, of, write, beside = () => '' }): SummaryRow => {
      const [x, y] = [of(a), of(b)]
      const change = x === undefined || y === undefined ? '–' : signed(x, y, write, !isNarrow)
      const told = (value: number | undefined, run: RunDigest) =>
        value === undefined ? '–' : `${write(value)}${beside(run)}`
      return { name, a: told(x, a), b: told(y, b), change }
    }),
  ]
  return isNarrow ? <Tall rows={rows} /> : <Flat rows={rows} />
}

const sides = [
  ['a', 'A'],
  ['b', 'B'],
  ['change', 'Difference'],
] as const

function Flat({ rows }: { rows: readonly SummaryRow[] }) {
  return (
    <table className={css.summary}>
      <thead>
        <tr>
          <th scope="col">
            <span className="visually-hidden">Run</span>
          </th>
          {rows.map(({ name }) => (
            <th key={name} scope="col">
              {name}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {sides.map(([side, label]) => (
          <tr key={side}>
            <th scope="row" data-side={label}>
              {label}
            </th>
            {rows.map((row) => (
              <td key={row.name}>{row[side]}</td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  )
}

function Tall({ rows }: { rows: readonly SummaryRow[] }) {
  return (
    <table className={css.summary}>
      <thead>
        <tr>
          <th scope="col">
            <span className="visually-hidden">Measure</span>
          </th>
          {sides.map(([side, label]) => (
            <th key={side} scope="col" data-side={label}>
              {label}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={row.name}>
            <th scope="row">{row.name}</th>
            {sides.map(([side]) => (
              <td key={side}>{row[side]}</td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  )
}

/** `+1.2 s (+40 %)`; `=` */
export function signed(a: number, b: number, write: (value: number) => string, withShare = true): string {
  if (a === b) return '='
  const sign = b > a ? '+' : '−'
  const share = a === 0 || !withShare ? '' : ` (${sign}${Math.round((Math.abs(b - a) / a) * 100)} %)`
  const by = write(Math.abs(b - a))
  // Too little for digits: `<$0.0001`.
  return by.startsWith('<') ? `${by} ${b > a ? 'more' : 'less'}${share}` : `${sign}${by}${share}`
}
