/** What runs ask people, answered in place. */
import { useState } from 'react'
import { Link } from 'wouter'
import { messageOf } from '../../../src/part/error.ts'
import { client } from '../../data/client.ts'
import { Button } from '../../kit/Button.tsx'
import { Icon } from '../../kit/Icon.tsx'
import { OpenRequest } from '../../kit/OpenRequest.tsx'
import type { UsedWaiting, WaitingRun } from './useWaiting.ts'
import css from './WaitsForYou.module.css'

export function WaitsForYou({ waiting, tidy }: UsedWaiting) {
  if (waiting.length === 0) return null
  const open = waiting.filter(({ isDone }) => !isDone).length
  return (
    <section className={css.box} aria-label="Waits for you">
      <h2 className={css.title}>
        <span>Waits for you</span> <span className="num">{open}</span>
        {open < waiting.length && (
          <Button look="quiet" onClick={tidy}>
            Clear answered
          </Button>
        )}
      </h2>
      <ul>
        {waiting.map((each) => (
          <Item key={`${each.run.id} ${each.request.requestId}`} {...each} />
        ))}
      </ul>
    </section>
  )
}

function Item({ run, request, isDone }: WaitingRun) {
  const [sent, setSent] = useState<'Approved' | 'Denied' | 'Answered'>()
  const [isOpen, setOpen] = useState(false)
  const [fault, setFault] = useState<string>()
  const answer = (approved: boolean) => {
    setSent(approved ? 'Approved' : 'Denied')
    setFault(undefined)
    client()
      .answer(run.id, request.requestId, { approved })
      .catch((error: unknown) => {
        setSent(undefined)
        setFault(messageOf(error))
      })
  }
  const name = request.toolName ?? run.agent
  const isOver = isDone || sent !== undefined
  return (
    <li data-question data-done={isOver || undefined}>
      <div className={css.item}>
        <span className={css.agent}>{run.agent}</span>
        <Link href={`/runs/${encodeURIComponent(run.id)}`} className={css.question}>
          <b>{request.kind === 'input' ? (request.message ?? 'asks for a value') : request.toolName}</b>{' '}
          {request.kind !== 'input' && <code>{JSON.stringify(request.input)?.slice(0, 200)}</code>}
        </Link>
        {fault !== undefined && (
          <span role="alert" className={css.fault}>
            {fault}
          </span>
        )}
        <span className={css.actions}>
          {isOver ? (
            <output className={css.done}>
              <Icon name={sent === 'Denied' ? 'close' : 'check'} /> {sent ?? 'Answered'}
            </output>
          ) : (
            <>
              <Button
                look="quiet"
                icon={isOpen ? 'down' : 'right'}
                aria-expanded={isOpen}
                aria-label={`More on ${name}`}
                onClick={() => setOpen(!isOpen)}
              />
              {request.kind === 'approval' && !isOpen && (
                <>
                  <Button look="danger" aria-label={`Deny ${name}`} onClick={() => answer(false)}>
                    Deny
                  </Button>
                  <Button look="primary" aria-label={`Approve ${name}`} onClick={() => answer(true)}>
                    Approve
                  </Button>
                </>
              )}
              {request.kind !== 'approval' && !isOpen && (
                <Button look="primary" aria-label={`Answer ${name}`} onClick={() => setOpen(true)}>
                  Answer
                </Button>
              )}
            </>
          )}
        </span>
      </div>
      {isOpen && <OpenRequest runId={run.id} request={request} onAnswered={() => setSent('Answered')} />}
    </li>
  )
}
