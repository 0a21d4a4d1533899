/** Above the message: that this chat has settings of its own, and the way back. */
import { Button } from '../../kit/Button.tsx'
import { changedWords } from './override.ts'
import type { Changes } from './use-changes.ts'
import css from './chat.module.css'

export function ChangedLine({ changed: { changes, reset } }: { changed: Changes }) {
  if (changes.length === 0) return null
  return (
    <p className={css.changed} data-testid="changed-line">
      <span className={css.mark} />
      <span>Changed for this chat: {changedWords(changes)}</span>
      <Button look="quiet" onClick={reset}>
        Reset
      </Button>
    </p>
  )
}
