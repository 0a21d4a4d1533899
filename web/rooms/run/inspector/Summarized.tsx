/** A summary: what it stands for, and what the model is told in its place. */
import type { EntryOf } from '../../../../src/part/entry.ts'
import { summaryWords } from '../../../../src/fold/summary-words.ts'
import { LongText } from './LongText.tsx'
import css from './Inspector.module.css'

export function Summarized({ entry }: { entry: EntryOf<'summarized'> }) {
  return (
    <section className={css.told} data-piece="summary">
      <p className={css.note}>{summaryWords(entry)}</p>
      {entry.text !== undefined && <LongText text={entry.text} />}
    </section>
  )
}
