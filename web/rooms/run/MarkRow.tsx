/** What stands between the steps: a message that was sent into the run, who sent it and how long it waited; a summary. */
import { memo } from 'react'
import type { OutlineMark } from '../../../src/fold/outline-item.ts'
import { duration } from '../../kit/format.ts'
import { Icon } from '../../kit/Icon.tsx'
import { placeSegments } from './layout/bars.ts'
import type { Scale, View } from './layout/scale.ts'
import { sentWords } from './sent-words.ts'
import css from './StepRow.module.css'

interface Props {
  mark: OutlineMark
  depth: number
  index: number
  top: number
  height: number
  isSelected: boolean
  scale: Scale
  view: View
  /** The width of the lane. */
  px: number
  onSelect: (name: string) => void
}

export const MarkRow = memo(function MarkRow(props: Props) {
  const { mark, depth, index, top, height, isSelected, scale, view, px, onSelect } = props
  const { seq, type, at, sent, note = '' } = mark
  const waited = sent && Math.max(0, at - sent.at)
  const segment = { phase: 'sent' as const, from: at - (waited ?? 0), to: at }
  return (
    // Keys are those of the tree, which holds the focus.
    // oxlint-disable-next-line jsx-a11y/click-events-have-key-events
    <div
      id={`step-${seq}`}
      role="row"
      aria-level={depth + 1}
      aria-rowindex={index}
      aria-selected={isSelected}
      className={css.row}
      data-testid={sent === undefined ? 'summary-row' : 'message-row'}
      data-seq={seq}
      style={{ height, transform: `translateY(${top}px)` }}
      onClick={() => onSelect(String(seq))}
    >
      <div role="gridcell" className={css.name} style={{ paddingLeft: 27 + Math.min(depth, 8) * 14 }}>
        <span className={css.kind} data-kind={type}>
          <Icon name={sent === undefined ? 'menu' : 'chat'} size={14} />
        </span>
        <span className={css.label}>{sent === undefined ? 'summarized' : sentWords(sent)}</span>{' '}
        <span className={css.detail} title={note}>
          {note}
        </span>
      </div>
      <div role="gridcell" className={css.lane}>
        {placeSegments([segment], scale, view, px).map(({ left, width }) => (
          <i
            key={seq}
            className={css.segment}
            data-phase="sent"
            title={waited === undefined ? note : `waited ${duration(waited)}`}
            style={{ left: `${left}%`, width: `${width}%` }}
          />
        ))}
      </div>
      <div role="gridcell" aria-label="No tokens" className={css.side} />
      <div role="gridcell" aria-label="No cost" className={css.side} />
      <div
        role="gridcell"
        className={`${css.time} num`}
        data-column="time"
        title={waited === undefined ? undefined : 'How long it waited'}
      >
        {waited === undefined ? '' : duration(waited)}
      </div>
    </div>
  )
})
