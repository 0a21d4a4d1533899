/** The connection to the server: a dot and a word in the header, and a line above the room while there is none. */
import { useSecondsUntil } from '../data/countdown.ts'
import { useConnection } from '../data/hooks.ts'
import { retryConnection } from '../data/live.ts'
import { Button } from '../kit/Button.tsx'
import css from './Header.module.css'

export function ConnectionState() {
  const connection = useConnection()
  const seconds = useSecondsUntil(connection.state === 'offline' ? connection.retryAt : undefined)
  const word = {
    // As wide as what follows it: nothing beside it moves when a page has loaded.
    connecting: '…',
    open: 'live',
    unauthorized: 'not signed in',
    offline: seconds > 0 ? `retry in ${seconds} s` : 'trying',
  }[connection.state]
  return (
    <span
      className={css.connection}
      data-state={connection.state}
      title={connection.state === 'connecting' ? 'connecting' : word}
    >
      <span className={css.dot} aria-hidden="true" />
      <span className={css.word}>{word}</span>
    </span>
  )
}

export function OfflineBanner() {
  const connection = useConnection()
  const seconds = useSecondsUntil(connection.state === 'offline' ? connection.retryAt : undefined)
  if (connection.state !== 'offline') return null
  return (
    <div className={css.offline}>
      <strong role="alert">The server cannot be reached.</strong>{' '}
      <span>{seconds > 0 ? `Retry in ${seconds} s.` : 'Connecting.'} What is shown stays.</span>
      <Button onClick={retryConnection}>Retry now</Button>
    </div>
  )
}
