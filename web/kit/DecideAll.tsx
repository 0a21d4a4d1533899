/** Several calls of one run wait for a yes: all of them at once. Each can still be decided for itself. */
import { useState } from 'react'
import { messageOf } from '../../src/part/error.ts'
import type { RequestView } from '../../src/fold/run-view.ts'
import { client } from '../data/client.ts'
import { mayAnswer, useSignedIn } from '../data/server.ts'
import { Button } from './Button.tsx'
import { useEdited } from './edited-requests.ts'
import css from './OpenRequest.module.css'

export function DecideAll({ runId, requests }: { runId: string; requests: readonly RequestView[] }) {
  const user = useSignedIn()
  const [isBusy, setBusy] = useState(false)
  const [fault, setFault] = useState<string>()
  const open = requests.filter((request) => request.kind === 'approval' && mayAnswer(user, request))
  const edited = useEdited()
  // What is being changed is decided for itself.
  const isEdited = open.some(({ requestId }) => edited.has(requestId))
  if (open.length < 2 || isEdited) return null
  const decide = (approved: boolean) => {
    setBusy(true)
    setFault(undefined)
    Promise.all(open.map(({ requestId }) => client().answer(runId, requestId, { approved })))
      .catch((error: unknown) => setFault(messageOf(error)))
      .finally(() => setBusy(false))
  }
  return (
    <div className={css.all} role="group" aria-label="All calls that wait">
      <span>{open.length} calls wait</span>
      <Button look="danger" disabled={isBusy} onClick={() => decide(false)}>
        Deny all
      </Button>
      <Button disabled={isBusy} onClick={() => decide(true)}>
        Allow all
      </Button>
      {fault !== undefined && (
        <p className={css.error} role="alert">
          {fault}
        </p>
      )}
    </div>
  )
}
