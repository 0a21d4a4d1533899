/** Who is signed in, and the way out. Nothing on a server that does not ask who calls. */
import { useId, useRef, useState } from 'react'
import { messageOf } from '../../src/part/error.ts'
import { useKeyState } from '../data/key.ts'
import { useSignedIn } from '../data/server.ts'
import { signOut } from '../data/sign-in.ts'
import { Button } from '../kit/Button.tsx'
import { personOf } from './person-of.ts'
import { showSignIn } from './overlay.ts'
import css from './Person.module.css'

export function Person() {
  const id = useId()
  const menu = useRef<HTMLDivElement>(null)
  const user = useSignedIn()
  const { isRefused } = useKeyState()
  const [isOpen, setOpen] = useState(false)
  const [fault, setFault] = useState<string>()
  if (isRefused) {
    return (
      <Button icon="person" onClick={showSignIn}>
        Sign in
      </Button>
    )
  }
  if (user === undefined) return null
  const { name, about, isGuest } = personOf(user)
  return (
    <>
      <Button
        look="quiet"
        icon="person"
        className={css.person!}
        popoverTarget={id}
        aria-expanded={isOpen}
        aria-label={`Signed in: ${name}`}
        title={name}
      >
        <span className={css.name}>{name}</span>
      </Button>
      <div
        ref={menu}
        id={id}
        popover="auto"
        role="group"
        aria-label="Who is signed in"
        className={css.menu}
        onToggle={({ newState }) => {
          setOpen(newState === 'open')
          if (newState === 'open') menu.current?.querySelector('button')?.focus()
        }}
      >
        <p>
          <strong>{name}</strong>
          {about.map((line) => (
            <span key={line}>{line}</span>
          ))}
        </p>
        {isGuest ? (
          <Button
            onClick={() => {
              menu.current?.hidePopover()
              showSignIn()
            }}
          >
            Sign in
          </Button>
        ) : (
          <Button onClick={() => void signOut().catch((error: unknown) => setFault(messageOf(error)))}>Sign out</Button>
        )}
        {fault !== undefined && <p role="alert">{fault}</p>}
      </div>
    </>
  )
}
