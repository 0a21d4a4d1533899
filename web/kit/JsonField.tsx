/** A field for JSON, in the font of code. */
import { useId } from 'react'
import css from './OpenRequest.module.css'

interface JsonFieldProps {
  label: string
  text: string
  fault?: string | undefined
  onChange: (text: string) => void
}

export function JsonField({ label, text, fault, onChange }: JsonFieldProps) {
  const id = useId()
  return (
    <div className={css.json}>
      <label htmlFor={id}>{label}</label>
      <textarea
        id={id}
        aria-describedby={fault === undefined ? undefined : `${id}-fault`}
        value={text}
        rows={3}
        spellCheck={false}
        data-first
        aria-invalid={fault !== undefined}
        onChange={(event) => onChange(event.target.value)}
      />
      {fault !== undefined && (
        <p id={`${id}-fault`} className={css.error} role="alert">
          {fault}
        </p>
      )}
    </div>
  )
}

export function readJson(text: string): { value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) as unknown }
  } catch {
    return undefined
  }
}
