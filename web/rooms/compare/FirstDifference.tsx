import { Link } from 'wouter'
import type { Entry } from '../../../src/part/entry.ts'
import type { Compared } from './compared.ts'
import css from './Compare.module.css'

/** Where the two part: the entry of each, and what differs in it. */
export function FirstDifference({ same, divergence, a, b }: Compared) {
  if (same || divergence === undefined) {
    return (
      <p className={css.first} data-same>
        <b>They say the same.</b> Ids and times are not compared.
      </p>
    )
  }
  const { fields } = divergence
  // Then every field differs, and none of them says why.
  const hasOtherType = fields.includes('type')
  const step = divergence.a?.step ?? divergence.b?.step ?? ''
  return (
    <section className={css.first} aria-label="First difference">
      <p>
        <b>First difference:</b> <code>{step || 'the run'}</code>
        {hasOtherType ? ', another kind of entry' : fields.length > 0 && ' in '}
        {!hasOtherType && fields.length > 0 && <code>{fields.join(', ')}</code>}
      </p>
      <div className={css.pair}>
        <Side side="A" run={a.id} entry={divergence.a} fields={fields} />
        <Side side="B" run={b.id} entry={divergence.b} fields={fields} />
      </div>
    </section>
  )
}

function Side({
  side,
  run,
  entry,
  fields,
}: {
  side: 'A' | 'B'
  run: string
  entry: Entry | undefined
  fields: string[]
}) {
  if (entry === undefined) {
    return (
      <div className={css.cell} data-side={side}>
        The run has ended here.
      </div>
    )
  }
  const { seq, type } = entry
  const values = Object.entries(entry).filter(([name]) => fields.length === 0 || fields.includes(name))
  return (
    <div className={css.cell} data-side={side}>
      <Link href={`/runs/${encodeURIComponent(run)}?at=${seq}`}>
        <span className="num">{seq}</span> {type}
      </Link>
      {values.slice(0, 6).map(([name, value]) => (
        <div key={name} className={css.field}>
          <code>{name}</code> <code className={css.value}>{short(value)}</code>
        </div>
      ))}
    </div>
  )
}

function short(value: unknown): string {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? 'absent')
  return text.length > 300 ? `${text.slice(0, 299)}…` : text
}
