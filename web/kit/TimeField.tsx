/** A moment in the reader's time zone, as the platform's own field takes it. */
import { useId } from 'react'
import { moment } from './format.ts'
import css from './TimeField.module.css'

interface Props {
  label: string
  /** Epoch ms. */
  value: number | undefined
  onChange(value: number | undefined): void
}

export function TimeField({ label, value, onChange }: Props) {
  const id = useId()
  return (
    <div className={css.field}>
      <label htmlFor={id}>{label}</label>
      <input
        id={id}
        type="datetime-local"
        value={value === undefined ? '' : moment(value).slice(0, 16).replace(' ', 'T')}
        onChange={({ target }) => {
          // Without a zone it is the reader's.
          const time = Date.parse(target.value)
          onChange(Number.isNaN(time) ? undefined : time)
        }}
      />
    </div>
  )
}
