/** Answers a question of a run in place: an approval, a tool of the client, a value that a step asks for. */
import { useId, useState, type FormEvent } from 'react'
import type { EntryOf } from '../../../src/part/entry.ts'
import type { ClientAnswer } from '../../../src/client/client.ts'
import { client } from '../../data/client.ts'
import { Button } from '../../kit/Button.tsx'
import { readFields, SchemaForm, type FormFields, type Schema } from '../../kit/SchemaForm.tsx'
import css from './Tool.module.css'

type Request = EntryOf<'request'>

export function AskForm({ request, runId }: { request: Request; runId: string }) {
  const [state, setState] = useState<{ isSending: boolean; error?: string }>({ isSending: false })
  async function answer(given: ClientAnswer): Promise<void> {
    setState({ isSending: true })
    try {
      await client().answer(runId, request.requestId, given)
      // The card changes when the answer is in the log.
    } catch (error) {
      setState({ isSending: false, error: (error as Error).message })
    }
  }
  const props: FormProps = {
    request,
    isSending: state.isSending,
    answer,
    fail: (error) => setState({ isSending: false, error }),
  }
  return (
    <div className={css.ask}>
      {request.kind === 'approval' ? (
        <Approval {...props} />
      ) : request.kind === 'tool' ? (
        <ClientTool {...props} />
      ) : (
        <Question {...props} />
      )}
      {state.error !== undefined && (
        <p role="alert" className={css.fault}>
          {state.error}
        </p>
      )}
    </div>
  )
}

interface FormProps {
  request: Request
  isSending: boolean
  answer(given: ClientAnswer): Promise<void>
  fail(message: string): void
}

function Approval({ request, isSending, answer, fail }: FormProps) {
  const id = useId()
  const [reason, setReason] = useState('')
  const [edited, setEdited] = useState<string>()
  function approve(event: FormEvent): void {
    event.preventDefault()
    if (edited === undefined) return void answer({ approved: true })
    const input = readJson(edited)
    if (input === undefined) return fail('The arguments must be JSON.')
    void answer({ approved: true, input: input.value })
  }
  return (
    <form onSubmit={approve}>
      <p>
        <strong>{request.toolName}</strong> wants a yes before it runs.
      </p>
      {edited !== undefined && (
        <div className={css.field}>
          <label htmlFor={`${id}-input`}>Arguments</label>
          <textarea id={`${id}-input`} rows={4} value={edited} onChange={(event) => setEdited(event.target.value)} />
        </div>
      )}
      <div className={css.actions}>
        <label htmlFor={id} className="visually-hidden">
          Reason for a no
        </label>
        <input
          id={id}
          className={css.reason}
          placeholder="Reason for a no (optional)"
          value={reason}
          onChange={(event) => setReason(event.target.value)}
        />
        <span className={css.buttons}>
          {edited === undefined && (
            <Button look="quiet" onClick={() => setEdited(JSON.stringify(request.input, undefined, 2))}>
              Edit arguments
            </Button>
          )}
          <Button
            look="danger"
            disabled={isSending}
            onClick={() => void answer({ approved: false, ...(reason.trim() !== '' && { reason }) })}
          >
            Deny
          </Button>
          <Button look="primary" type="submit" disabled={isSending}>
            Approve
          </Button>
        </span>
      </div>
    </form>
  )
}

function ClientTool({ request, isSending, answer }: FormProps) {
  const [text, setText] = useState('')
  const send = (isError: boolean) => {
    // What is not JSON is sent as a text.
    const output = text.trim() === '' ? null : (readJson(text) ?? { value: text }).value
    void answer({ output, ...(isError && { isError }) })
  }
  const isText = text.trim() !== '' && readJson(text) === undefined
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        send(false)
      }}
    >
      <label className={css.field}>
        <span>
          <strong>{request.toolName}</strong> runs in the client. You are the client: what does it return?
        </span>
        <textarea
          rows={2}
          placeholder='JSON, such as {"city": "Berlin"}, or words'
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
      </label>
      <div className={css.actions}>
        <span className={css.hint}>{isText ? 'Not JSON: sent as text.' : ''}</span>
        <span className={css.buttons}>
          <Button look="danger" disabled={isSending} onClick={() => send(true)}>
            Send as error
          </Button>
          <Button look="primary" type="submit" disabled={isSending}>
            Send result
          </Button>
        </span>
      </div>
    </form>
  )
}

function Question({ request, isSending, answer, fail }: FormProps) {
  const schema = ('schema' in request ? request.schema : undefined) as Schema | undefined
  const isObject = schema?.properties !== undefined
  const [fields, setFields] = useState<FormFields>({})
  // A value that is no object is a form with one field.
  const shown: Schema = isObject ? schema : { properties: { answer: { ...schema } }, required: ['answer'] }
  function send(event: FormEvent): void {
    event.preventDefault()
    const { values, faults } = readFields(shown, fields)
    if (faults.length > 0) return fail(faults.join(' '))
    void answer({ value: isObject ? values : values['answer'] })
  }
  return (
    <form onSubmit={send}>
      <p>{('message' in request ? request.message : undefined) ?? 'The run asks for a value.'}</p>
      <SchemaForm schema={shown} fields={fields} onChange={setFields} />
      <div className={css.actions}>
        <span className={css.buttons}>
          <Button look="danger" disabled={isSending} onClick={() => void answer({ cancelled: true })}>
            Cancel
          </Button>
          <Button look="primary" type="submit" disabled={isSending}>
            Answer
          </Button>
        </span>
      </div>
    </form>
  )
}

function readJson(text: string): { value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) as unknown }
  } catch {
    return undefined
  }
}
