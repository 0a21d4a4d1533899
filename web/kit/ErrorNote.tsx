import { Button } from './Button.tsx'
import { NeedsKey } from './NeedsKey.tsx'
import css from './states.module.css'

/** An error in its place: message, code, and a way to try again. */
export function ErrorNote({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  const { message = String(error), code } = (error ?? {}) as { message?: string; code?: string }
  if (code === 'unauthorized') return <NeedsKey onRetry={onRetry} />
  return (
    <div className={css.error} role="alert">
      <p>{message}</p>
      {code !== undefined && <code>{code}</code>}
      {onRetry && (
        <Button icon="retry" onClick={onRetry}>
          Retry
        </Button>
      )}
    </div>
  )
}
