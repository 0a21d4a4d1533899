/** The server wants a key that this tab does not have. Once it has one, what was refused is asked for again. */
import { useEffect, useRef } from 'react'
import { useKeyState } from '../data/key.ts'
import { show } from '../shell/overlay.ts'
import { Button } from './Button.tsx'
import css from './states.module.css'

export function NeedsKey({ onRetry }: { onRetry?: (() => void) | undefined }) {
  const { key } = useKeyState()
  const refused = useRef(key)
  useEffect(() => {
    if (refused.current === key) return
    refused.current = key
    onRetry?.()
  }, [key, onRetry])
  return (
    <div className={css.protected} role="alert">
      <p>This server is protected.</p>
      <Button look="primary" icon="key" onClick={() => show('key')}>
        Enter the key
      </Button>
    </div>
  )
}
