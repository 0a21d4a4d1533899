/** What runs ask people, answered in place. */
import { useState } from 'react'
import { Link } from 'wouter'
import { messageOf } from '../../../src/part/error.ts'
import { client } from '../../data/client.ts'
import { Button } from '../../kit/Button.tsx'
import { Icon } from '../../kit/Icon.tsx'
import type { UsedWaiting, Waiting } from './useWaiting.ts'
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

function Item({ run, request, isDone }: Waiting) {
  const [sent, setSent] = useState<'Approved' | 'Denied'>()
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
  const href = `/runs/${encodeURIComponent(run.id)}`
  const name = request.toolName ?? run.agent
  return (
    <li className={css.item} data-question data-done={isDone || undefined}>
      <span className={css.agent}>{run.agent}</span>
      <Link href={href} className={css.question}>
        <b>{request.kind === 'input' ? (request.message ?? 'asks for a value') : request.toolName}</b>{' '}
        {request.kind !== 'input' && <code>{JSON.stringify(request.input)?.slice(0, 200)}</code>}
      </Link>
      {fault !== undefined && (
        <span role="alert" className={css.fault}>
          {fault}
        </span>
      )}
      <span className={css.actions}>
        {isDone || sent !== undefined ? (
          <output className={css.done}>
            <Icon name={sent === 'Denied' ? 'close' : 'check'} /> {sent ?? 'Answered'}
          </output>
        ) : request.kind === 'approval' ? (
          <>
            <Button look="danger" aria-label={`Deny ${name}`} onClick={() => answer(false)}>
              Deny
            </Button>
            <Button look="primary" aria-label={`Approve ${name}`} onClick={() => answer(true)}>
              Approve
            </Button>
          </>
        ) : (
          <Link href={href} className={css.go}>
            {request.kind === 'input' ? 'Answer' : 'Waits for a client'}
          </Link>
        )}
      </span>
    </li>
  )
}
