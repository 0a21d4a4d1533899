/**
 * What a run asks of a person or a client, and the answer in its place: may a tool run, what does a tool of the client return, which value does a
 * step get. The same in every room, with the same words.
 */
import { useId, useState, type CSSProperties, type ReactNode } from 'react'
import type { ClientAnswer } from '../../src/client/client.ts'
import { messageOf } from '../../src/part/error.ts'
import { signInReason } from '../../src/part/sign-in-request.ts'
import { chainWords } from '../../src/fold/agents-above.ts'
import type { RequestView } from '../../src/fold/run-view.ts'
import type { RequestPart } from '../../src/part/request-part.ts'
import { client } from '../data/client.ts'
import { useNow } from '../data/media.ts'
import { mayAnswer, useSignedIn } from '../data/server.ts'
import { Arguments } from './Arguments.tsx'
import { moment } from './format.ts'
import { useMarkEdited } from './edited-requests.ts'
import { Icon } from './Icon.tsx'
import { ApprovalForm, ResultForm, ValueForm, type AnswerProps } from './AnswerForms.tsx'
import { SignInForm } from './SignInForm.tsx'
import { since, until } from './when.ts'
import css from './OpenRequest.module.css'

interface Props {
  runId: string
  request: RequestView
  /** For whom it is asked. It stands before the times. */
  about?: ReactNode
  /** One of many: what takes more than a line opens when it is asked for. */
  isRow?: boolean
  /** Stands before the question. */
  mark?: ReactNode
  /** What became of it elsewhere. It is answered no more. */
  outcome?: string | undefined
  /** Why it could not be answered elsewhere. */
  fault?: string | undefined
}

export function OpenRequest({ runId, request, about, isRow = false, mark, outcome, fault }: Props) {
  const id = useId()
  const now = useNow(15_000)
  const [sent, setSent] = useState<{ isBusy: boolean; word?: string; fault?: string }>({ isBusy: false })
  const [isEditing, setEditing] = useState(false)
  const isOthers = !mayAnswer(useSignedIn(), request)
  const [style, setStyle] = useState<CSSProperties>()
  const send = (answer: ClientAnswer, from: HTMLElement | null) => {
    // What follows stays where it is when the form goes: nothing moves under the pointer.
    const height = from?.closest<HTMLElement>('[data-request]')?.getBoundingClientRect().height
    if (height !== undefined) setStyle({ minHeight: height })
    setSent({ isBusy: true })
    client()
      .answer(runId, request.requestId, answer)
      .then(() => setSent({ isBusy: false, word: wordOf(answer) }))
      .catch((error: unknown) => setSent({ isBusy: false, fault: messageOf(error) }))
  }
  const { timestamp, deadline } = request
  const word = sent.word ?? outcome
  const told = sent.fault ?? fault
  useMarkEdited(request.requestId, isEditing && word === undefined)
  const props: AnswerProps = { runId, request, isBusy: sent.isBusy, isRow, describedBy: `${id}-facts`, send }
  return (
    <div
      className={css.request}
      data-testid="open-request"
      data-request={request.requestId}
      data-row={isRow || undefined}
      style={style}
    >
      <div className={css.asked}>
        <div className={css.line}>
          <div className={css.question}>
            {mark}
            <Icon name="person" />
            <p>
              <Question request={request} isOthers={isOthers} />
            </p>
          </div>
          {request.kind !== 'input' && (!isEditing || word !== undefined) && <Arguments value={request.input} />}
        </div>
        <p id={`${id}-facts`} className={css.facts}>
          {(about !== undefined || request.agents !== undefined) && (
            <>
              <span className={css.about}>
                {about}
                {about !== undefined && request.agents !== undefined && ' · '}
                {request.agents !== undefined && (
                  <b data-testid="asking-agents" title="The agents that lead to this question, the run's own first">
                    {chainWords(request.agents)}
                  </b>
                )}
              </span>
              <span className={css.apart}>{' · '}</span>
            </>
          )}
          <span className={css.times}>
            <span title={moment(timestamp)}>asked {since(timestamp, now)}</span>
            {word === undefined && (
              <>
                {' · '}
                <span title={moment(deadline)}>expires {until(deadline, now)}</span>
              </>
            )}
          </span>
        </p>
      </div>
      {isOthers && word === undefined ? (
        <p className={css.done}>
          <Icon name="pause" /> {waitsFor(request)}
        </p>
      ) : word !== undefined ? (
        <output className={css.done}>
          <Icon name={/^(?:Denied|Declined|Not)/u.test(word) ? 'close' : 'check'} /> {word}
        </output>
      ) : request.kind === 'approval' ? (
        <ApprovalForm {...props} isEditing={isEditing} onEditing={setEditing} />
      ) : request.kind === 'tool' ? (
        <ResultForm {...props} />
      ) : request.kind === 'input' && request.reason === signInReason ? (
        <SignInForm {...props} />
      ) : (
        <ValueForm {...props} />
      )}
      {told !== undefined && (
        <p className={css.error} role="alert">
          {told}
        </p>
      )}
    </div>
  )
}

function Question({ request, isOthers }: { request: RequestView; isOthers: boolean }): ReactNode {
  if (request.kind === 'input') return request.message ?? request.reason ?? 'The run asks for a value.'
  if (isOthers) {
    return (
      <>
        <b>{request.toolName}</b> needs an approval.
      </>
    )
  }
  return (
    <>
      {request.kind === 'approval' ? 'Allow' : 'Answer'} <b>{request.toolName}</b>?
    </>
  )
}

function wordOf(answer: ClientAnswer): string {
  if ('declined' in answer) return 'Declined'
  if ('cancelled' in answer) return 'Not answered'
  if (!('approved' in answer)) return 'Answered'
  return answer.approved ? 'Allowed' : 'Denied'
}

const people = { user: 'a user', operator: 'an operator', admin: 'an admin' }

/** Who must answer an approval that needs a role. */
function waitsFor({ roles = [] }: Pick<RequestPart, 'roles'>): string {
  return `Waits for ${roles.map((role) => people[role]).join(' or ')}.`
}
