import { useEffect, useRef, useState, type ReactNode } from 'react'
import { Link } from 'wouter'
import { useSecondsUntil } from '../data/countdown.ts'
import { useKeyState } from '../data/key.ts'
import { showSignIn } from '../shell/overlay.ts'
import { Button } from './Button.tsx'
import { explain } from './error-words.ts'
import css from './states.module.css'

interface Props {
  error: unknown
  /** Another try, where one may help. */
  onRetry?: (() => void) | undefined
  /** When it happened, epoch ms. Default: now. */
  at?: number | undefined
  /** Without a margin: it stands in a column of text. */
  isFlush?: boolean
}

/** An error in its place: what happened, what to do, its code, and a way to try again if that may help. */
export function ErrorNote({ error, onRetry, at, isFlush = false }: Props) {
  if ((error as { code?: string } | undefined)?.code === 'unauthorized') return <NotSignedIn onRetry={onRetry} />
  const { title, detail, code, canRetry, retryAfter, link } = explain(error)
  return (
    <ErrorCard title={title} detail={detail} code={code} isFlush={isFlush}>
      {link !== undefined && <Link href={link.href}>{link.label}</Link>}
      {onRetry && canRetry && <TryAgain onRetry={onRetry} at={at} retryAfter={retryAfter} />}
    </ErrorCard>
  )
}

/** The server lets this tab in no more, or not yet. When it does, what was refused is asked for again. */
function NotSignedIn({ onRetry }: { onRetry: (() => void) | undefined }) {
  const { changes } = useKeyState()
  const refused = useRef(changes)
  useEffect(() => {
    if (refused.current === changes) return
    refused.current = changes
    onRetry?.()
  }, [changes, onRetry])
  return (
    <div className={css.protected} role="alert">
      <p>This server is protected.</p>
      <Button look="primary" icon="person" onClick={showSignIn}>
        Sign in
      </Button>
    </div>
  )
}

interface CardProps {
  title?: string | undefined
  detail?: string | undefined
  code?: string | undefined
  isFlush?: boolean
  /** What can be done. */
  children?: ReactNode
}

/** The words are an alert; the buttons are not, because one of them may count. */
export function ErrorCard({ title, detail, code, isFlush = false, children }: CardProps) {
  return (
    <div className={css.error} data-flush={isFlush || undefined}>
      <div role="alert">
        {title !== undefined && <p className={css.title}>{title}</p>}
        {detail !== undefined && <p>{detail}</p>}
      </div>
      <div className={css.actions}>
        {children}
        {code !== undefined && <code>{code}</code>}
      </div>
    </div>
  )
}

/** `Try again (20)`: the seconds that whoever refused has asked for. It may be pressed before. */
function TryAgain({
  onRetry,
  at,
  retryAfter,
}: {
  onRetry(): void
  at: number | undefined
  retryAfter: number | undefined
}) {
  const [seen] = useState(Date.now)
  const left = useSecondsUntil(retryAfter === undefined ? undefined : (at ?? seen) + retryAfter * 1000)
  return (
    <Button icon="retry" onClick={onRetry}>
      Try again
      {left > 0 && <span className="num"> ({left})</span>}
    </Button>
  )
}
