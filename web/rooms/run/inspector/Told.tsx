/** A message that was sent into the run: its words, who sent it, how long it waited. */
import type { EntryOf } from '../../../../src/part/entry.ts'
import { textOf } from '../../../../src/fold/run-view.ts'
import { duration } from '../../../kit/format.ts'
import { sentWords } from '../sent-words.ts'
import css from './Inspector.module.css'

export function Told({ entry }: { entry: EntryOf<'message'> }) {
  const { content, sentAt, timestamp } = entry
  const files =
    typeof content === 'string' ? [] : content.flatMap((part) => ('type' in part && part.type === 'file' ? [part] : []))
  const waited = Math.max(0, timestamp - sentAt)
  return (
    <section className={css.told} data-piece="message">
      <p>{textOf({ role: 'user', content })}</p>
      {files.map(({ filename, mediaType }, i) => (
        // Files may have the same name.
        // oxlint-disable-next-line react/no-array-index-key
        <p key={i} className={css.note}>
          {filename ?? mediaType}
        </p>
      ))}
      <p className={css.note}>
        {sentWords(entry)} · waited {duration(waited)}
      </p>
    </section>
  )
}
