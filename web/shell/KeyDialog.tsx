/** Asks for the server's key, once. It is kept in this tab's session storage and goes nowhere but into a header. */
import { useId, useState, type FormEvent } from 'react'
import { checkKey } from '../../src/part/check-key.ts'
import { messageOf } from '../../src/part/error.ts'
import { request } from '../../src/client/request.ts'
import { setKey, useKeyState } from '../data/key.ts'
import { Button } from '../kit/Button.tsx'
import { Dialog } from '../kit/Dialog.tsx'
import css from './KeyDialog.module.css'

export function KeyDialog({ isOpen, onClose }: { isOpen: boolean; onClose(): void }) {
  return (
    <Dialog isOpen={isOpen} title="This server asks for a key" onClose={onClose}>
      <KeyForm onDone={onClose} />
    </Dialog>
  )
}

function KeyForm({ onDone }: { onDone(): void }) {
  const id = useId()
  const { key } = useKeyState()
  const [typed, setTyped] = useState('')
  const [fault, setFault] = useState(key === undefined ? undefined : 'The server refuses the key that this tab has.')
  const [isTrying, setTrying] = useState(false)

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
        It is the server's <code>MILLRACE_API_KEY</code>. This tab keeps it until it is closed.
      </p>
      <Button type="submit" look="primary" disabled={typed.trim() === '' || isTrying}>
        {isTrying ? 'Trying' : 'Enter'}
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
