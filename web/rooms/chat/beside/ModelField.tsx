/** Which model answers in a column: one of the server's, or any that is written. */
import { useEffect, useId, useState } from 'react'
import css from './beside.module.css'

interface Props {
  /** From 1: of the column. */
  n: number
  /** Absent: the agent's own. */
  model: string | null | undefined
  own: string | undefined
  models: readonly string[]
  /** Why none can be chosen. */
  reason: string | undefined
  onModel(model: string | undefined): void
}

export function ModelField({ n, model, own, models, reason, onModel }: Props) {
  const list = useId()
  const [text, setText] = useState(model ?? '')
  useEffect(() => setText(model ?? ''), [model])
  const take = (next: string) => {
    const wanted = next.trim() === '' || next.trim() === own ? undefined : next.trim()
    setText(wanted ?? '')
    if (wanted !== (model ?? undefined)) onModel(wanted)
  }
  return (
    <form
      className={css.model}
      onSubmit={(event) => {
        event.preventDefault()
        take(text)
      }}
    >
      <input
        aria-label={`Model of column ${n}`}
        placeholder={own ?? 'The model of the agent'}
        title={reason ?? text}
        disabled={reason !== undefined}
        list={list}
        value={text}
        spellCheck={false}
        maxLength={200}
        onChange={(event) => {
          const { value } = event.target
          setText(value)
          if (models.includes(value.trim())) take(value)
        }}
        onKeyDown={(event) => event.key === 'Escape' && setText(model ?? '')}
        onBlur={() => take(text)}
      />
      <datalist id={list}>
        {models.map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </datalist>
    </form>
  )
}
