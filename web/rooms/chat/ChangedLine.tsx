/** Above the message: that this chat has settings of its own, and the way back. */
import { Button } from '../../kit/Button.tsx'
import { changedWords } from './override.ts'
import type { Changes } from './use-changes.ts'
import css from './chat.module.css'

interface Props {
  changed: Changes
  /** The last run of the conversation had YAML of its own, and the next one will have it, too. */
  goesOn: boolean
}

export function ChangedLine({ changed: { changes, yaml, reset }, goesOn }: Props) {
  const words = changedWords(changes, yaml)
  if (words === '' && (yaml === null || !goesOn)) return null
  return (
    <p className={css.changed} data-testid="changed-line">
      <span className={css.mark} />
      <span>{words === '' ? 'This chat goes on with YAML of its own' : `Changed for this chat: ${words}`}</span>
      <Button look="quiet" onClick={reset}>
        Reset
      </Button>
    </p>
  )
}
