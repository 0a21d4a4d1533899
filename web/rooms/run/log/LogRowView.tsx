import { memo } from 'react'
import type { LogRow } from '../layout/log-rows.ts'
import css from './Log.module.css'

interface Props {
  row: LogRow
  top: number
  height: number
  /** ms since the start of the run. */
  offset: number
  isSelected: boolean
  text: string | undefined
  onSelect: (name: string) => void
}

export const LogRowView = memo(function LogRowView({ row, top, height, offset, isSelected, text, onSelect }: Props) {
  const { seq, to, type, step, note, failed } = row
  return (
    // Keys are those of the list, which holds the focus.
    // oxlint-disable-next-line jsx-a11y/click-events-have-key-events, jsx-a11y/interactive-supports-focus
    <div
      id={`entry-${seq}`}
      role="option"
      aria-selected={isSelected}
      className={css.row}
      data-testid="log-row"
      data-seq={seq}
      data-type={type}
      data-failed={failed || undefined}
      style={{ height, transform: `translateY(${top}px)` }}
      onClick={() => onSelect(String(seq))}
    >
      <span
        className={css.seq}
        title={to > seq && to < Number.MAX_SAFE_INTEGER ? `entries ${seq} to ${to}` : undefined}
      >
        {seq}
      </span>
      <span className={css.offset}>{offsetText(offset)}</span>
      <span className={css.type} data-family={familyOf(type)}>
        {type}
      </span>
      <span className={css.step} title={step}>
        {step.replace(/^main\//u, '')}
      </span>
      <span className={css.text}>{(text ?? note ?? '').slice(0, 400)}</span>
    </div>
  )
})

/** `+1.204` in seconds. */
function offsetText(ms: number): string {
  return `+${(Math.max(0, ms) / 1000).toFixed(3)}`
}

function familyOf(type: string): string {
  if (type === 'error' || type === 'warning' || type === 'retry') return 'error'
  if (type === 'request' || type === 'response' || type === 'suspend' || type === 'resume') return 'request'
  return /^(?:text|reasoning|tool)/u.exec(type)?.[0] ?? 'other'
}
