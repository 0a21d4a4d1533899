import type { ThreadStatus } from '../../src/part/thread.ts'
import { Status } from './Status.tsx'
import css from './Status.module.css'

/** A conversation in which nothing goes on has no word. `closed`: nobody waits for a request in it any more. */
export function ThreadState({ status, compact = false }: { status: ThreadStatus; compact?: boolean }) {
  if (status === 'active') return <Status status="running" compact={compact} />
  if (status === 'waiting') return <Status status="suspended" compact={compact} />
  if (status === 'idle') return null
  return (
    <span className={css.still} title={compact ? status : undefined}>
      <span aria-hidden="true">■</span>
      <span className={compact ? 'visually-hidden' : undefined}>{status}</span>
    </span>
  )
}
