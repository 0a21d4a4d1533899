/** A run needs an MCP server to which its person must sign in: in a tab of its own, or not at all. */
import { useState } from 'react'
import { messageOf } from '../../src/part/error.ts'
import { connectPath } from '../../src/part/sign-in-request.ts'
import { api } from '../data/client.ts'
import type { AnswerProps } from './AnswerForms.tsx'
import { Button } from './Button.tsx'
import css from './OpenRequest.module.css'

export function SignInForm({ request, isBusy, describedBy, send }: AnswerProps) {
  const [isOpening, setOpening] = useState(false)
  const [fault, setFault] = useState<string>()
  const open = async () => {
    setOpening(true)
    setFault(undefined)
    // Now, in the click: browsers refuse a tab that opens later.
    const tab = window.open('about:blank', '_blank')
    // The other page must not reach this one.
    if (tab !== null) tab.opener = null
    try {
      // Asked for with the key of this page, which a link would not send.
      const { url } = await api<{ url?: string }>(connectPath(request.requestId), { method: 'POST' })
      if (url === undefined) tab?.close()
      else if (tab === null) window.location.assign(url)
      else tab.location.replace(url)
    } catch (error) {
      tab?.close()
      setFault(messageOf(error))
    }
    setOpening(false)
  }
  return (
    <div className={css.form}>
      {fault !== undefined && (
        <p className={css.error} role="alert">
          {fault}
        </p>
      )}
      <div className={css.actions}>
        <Button
          look="danger"
          disabled={isBusy}
          aria-describedby={describedBy}
          onClick={(event) => send({ cancelled: true }, event.currentTarget)}
        >
          Decline
        </Button>
        <Button
          look="primary"
          disabled={isBusy || isOpening}
          aria-describedby={describedBy}
          onClick={() => void open()}
        >
          Sign in
        </Button>
      </div>
    </div>
  )
}
