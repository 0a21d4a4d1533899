/** Thumbs for an answer, and a note. */
import { useId, useState } from 'react'
import type { Verdict as Word } from '../../src/part/feedback.ts'
import { useFeedback, type RunFeedback } from '../data/feedback.tsx'
import { Button } from './Button.tsx'
import { Dialog } from './Dialog.tsx'
import { ErrorNote } from './ErrorNote.tsx'
import { notice } from './notice.ts'
import css from './Verdict.module.css'

export function Verdict({ run }: { run: string }) {
  const feedback = useFeedback(run)
  const [isWriting, setWriting] = useState(false)
  const [error, setError] = useState<unknown>()
  if (feedback === undefined) return null
  const { own, others, say } = feedback
  const choose = (verdict: Word) => {
    setError(undefined)
    // The same once more takes it back; a note stays.
    say(own?.verdict === verdict ? undefined : verdict, own?.note ?? '').catch(setError)
  }
  const count = (verdict: Word) => others.filter((row) => row.verdict === verdict).length
  const thumb = (verdict: Word, label: string) => (
    <Button
      look="quiet"
      icon={verdict === 'up' ? 'thumbUp' : 'thumbDown'}
      aria-label={count(verdict) === 0 ? label : `${label} (${count(verdict)} more)`}
      aria-pressed={own?.verdict === verdict}
      onClick={() => choose(verdict)}
    />
  )
  return (
    <span className={css.verdict}>
      {thumb('up', 'Good answer')}
      {thumb('down', 'Bad answer')}
      <Button
        look="quiet"
        icon="edit"
        aria-label={own?.note === undefined ? 'Add a note' : 'Your note'}
        title={own?.note ?? 'Add a note'}
        aria-pressed={own?.note !== undefined}
        onClick={() => setWriting(true)}
      />
      <Dialog isOpen={isWriting} title="Note on this answer" onClose={() => setWriting(false)}>
        <Note feedback={feedback} onDone={() => setWriting(false)} />
      </Dialog>
      {error !== undefined && <ErrorNote error={error} />}
    </span>
  )
}

function Note({ feedback: { own, others, say }, onDone }: { feedback: RunFeedback; onDone(): void }) {
  const field = useId()
  const [text, setText] = useState(own?.note ?? '')
  const [error, setError] = useState<unknown>()
  const save = () => {
    say(own?.verdict, text).then(() => {
      notice('Note saved')
      onDone()
    }, setError)
  }
  return (
    <form
      className={css.note}
      onSubmit={(event) => {
        event.preventDefault()
        save()
      }}
    >
      <label htmlFor={field}>What was good or bad about it?</label>
      <textarea
        id={field}
        value={text}
        maxLength={4000}
        rows={3}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === 'Enter' && (event.metaKey || event.ctrlKey)) save()
        }}
      />
      {others.some(({ note }) => note !== undefined) && (
        <ul className={css.others} aria-label="Notes of others">
          {others.map(({ n, user, note }) => note !== undefined && <li key={n}>{`${user || 'Somebody'}: ${note}`}</li>)}
        </ul>
      )}
      {error !== undefined && <ErrorNote error={error} />}
      <Button look="primary" type="submit" disabled={text.trim() === (own?.note ?? '')}>
        Save
      </Button>
    </form>
  )
}
