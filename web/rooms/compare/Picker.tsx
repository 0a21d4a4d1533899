import { useEffect, useId, useState } from 'react'
import { Link } from 'wouter'
import { ago } from '../../kit/format.ts'
import { Status } from '../../kit/Status.tsx'
import { useRecentRows, useRow } from './compared.ts'
import css from './Compare.module.css'

interface Props {
  side: 'A' | 'B'
  id: string | undefined
  onPick(id: string | undefined): void
}

/** Chooses a run: one of the recent ones, or a pasted id. */
export function Picker({ side, id, onPick }: Props) {
  const rows = useRecentRows()
  const row = useRow(id)
  const list = useId()
  const [text, setText] = useState(id ?? '')
  useEffect(() => setText(id ?? ''), [id])
  const take = (next: string) => {
    setText(next)
    const wanted = next.trim()
    if (rows.some((each) => each.id === wanted)) onPick(wanted)
  }
  return (
    <form
      className={css.picker}
      onSubmit={(event) => {
        event.preventDefault()
        onPick(text.trim() || undefined)
      }}
    >
      <span className={css.side} data-side={side} aria-hidden="true">
        {side}
      </span>
      <input
        className={css.id}
        aria-label={`Run ${side}`}
        placeholder="Choose a run, or paste its id"
        list={list}
        value={text}
        spellCheck={false}
        onChange={(event) => take(event.target.value)}
        onBlur={() => text.trim() !== (id ?? '') && onPick(text.trim() || undefined)}
      />
      <datalist id={list}>
        {rows.map((each) => (
          <option key={each.id} value={each.id}>
            {`${each.title ?? ''} · ${each.agent} · ${ago(each.startedAt)}`}
          </option>
        ))}
      </datalist>
      {row !== undefined && (
        <span className={css.chosen}>
          <Status status={row.status} compact />
          <Link href={`/runs/${encodeURIComponent(row.id)}`}>{row.title ?? row.id}</Link>
          <span>{row.agent}</span>
        </span>
      )}
    </form>
  )
}
