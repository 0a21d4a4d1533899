import { memo } from 'react'
import type { LogRow } from '../../../../src/fold/log-rows.ts'
import { LogCells } from '../../../../src/react/run-log.tsx'
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
  const { seq, type, failed } = row
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
      <LogCells row={row} offset={offset} text={text} classes={css} />
    </div>
  )
})
