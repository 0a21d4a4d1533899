/**
 * Sign-in: with an OpenID provider where the server has one, or with a key. A key is asked for once; it is kept in this tab's session storage and
 * goes nowhere but into a header.
 */
import { useEffect, useId, useRef, useState, type FormEvent } from 'react'
import { checkKey } from '../../src/part/check-key.ts'
import { messageOf } from '../../src/part/error.ts'
import { request } from '../../src/client/request.ts'
import { setKey, useKeyState } from '../data/key.ts'
import { useSignedIn } from '../data/server.ts'
import { loginPath, readWays } from '../data/sign-in.ts'
import { Button } from '../kit/Button.tsx'
import { Dialog } from '../kit/Dialog.tsx'
import css from './SignInDialog.module.css'

export function SignInDialog({ isOpen, onClose }: { isOpen: boolean; onClose(): void }) {
  return (
    <Dialog isOpen={isOpen} title="Sign in" onClose={onClose}>
      <SignIn onDone={onClose} />
    </Dialog>
  )
}

function SignIn({ onDone }: { onDone(): void }) {
  const { key, login } = readWays()
  const { key: ownKey, isRefused } = useKeyState()
  const user = useSignedIn()
  const [isKeyWanted, setKeyWanted] = useState(!login)
  const isSessionOver = isRefused && ownKey === undefined && user !== undefined
  return (
    <div className={css.ways}>
      {isSessionOver && <p role="alert">Your session has ended. Sign in again to go on here.</p>}
      {login && (
        <>
          <p className={css.told}>This leads to another page for signing in, and back here.</p>
          <Button look="primary" data-autofocus onClick={() => location.assign(loginPath())}>
            Sign in
          </Button>
        </>
      )}
      {key && login && !isKeyWanted && (
        <Button look="quiet" icon="key" onClick={() => setKeyWanted(true)}>
          Use a key
        </Button>
      )}
      {key && isKeyWanted && <KeyForm onDone={onDone} isAlone={!login} />}
      {!key && !login && (
        <>
          <p>Sign in to the application that this page belongs to, then load the page again.</p>
          <Button look="primary" data-autofocus onClick={() => location.reload()}>
            Load again
          </Button>
        </>
      )}
    </div>
  )
}

/** `isAlone`: there is no other way to sign in. */
function KeyForm({ onDone, isAlone }: { onDone(): void; isAlone: boolean }) {
  const id = useId()
  const { key, isRefused } = useKeyState()
  const field = useRef<HTMLInputElement>(null)
  const [typed, setTyped] = useState('')
  const [fault, setFault] = useState(
    key === undefined || !isRefused ? undefined : 'The server refuses the key that this tab has.',
  )
  const [isTrying, setTrying] = useState(false)
  // Whoever has asked for the field types into it.
  useEffect(() => {
    if (!isAlone) field.current?.focus()
  }, [isAlone])

  const enter = async (event: FormEvent) => {
    event.preventDefault()
    setTrying(true)
    const wrong = await faultOf(typed.trim())
    setTrying(false)
    setFault(wrong)
    if (wrong !== undefined) return
    setKey(typed.trim())
    onDone()
  }
  return (
    <form className={css.form} onSubmit={(event) => void enter(event)}>
      <label htmlFor={id}>Key</label>
      {/* Without a name, no form sends it. */}
      <input
        ref={field}
        id={id}
        type="password"
        autoComplete="off"
        spellCheck={false}
        value={typed}
        aria-invalid={fault !== undefined}
        aria-describedby={`${id}-told`}
        onChange={(event) => setTyped(event.target.value)}
      />
      <p id={`${id}-told`} className={css.told}>
        {fault !== undefined && (
          <strong role="alert" className={css.fault}>
            {fault}{' '}
          </strong>
        )}
        A key that you were given, or the server's <code>MILLRACE_API_KEY</code>. This tab keeps it until it is closed.
      </p>
      <Button type="submit" look={isAlone ? 'primary' : undefined} disabled={typed.trim() === '' || isTrying}>
        {isTrying ? 'Signing in' : 'Enter'}
      </Button>
    </form>
  )
}

/** Why the server does not take this key. */
async function faultOf(apiKey: string): Promise<string | undefined> {
  try {
    checkKey(apiKey, 'The key')
  } catch (error) {
    return messageOf(error)
  }
  try {
    const headers = { authorization: `Bearer ${apiKey}` }
    await request({ url: '', headers, fetch: globalThis.fetch.bind(globalThis) }, '/api/agents')
  } catch (error) {
    return (error as { code?: unknown }).code === 'unauthorized' ? 'The server refuses this key.' : messageOf(error)
  }
  return undefined
}
