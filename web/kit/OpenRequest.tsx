/** A question of a run to a person or a client, answered in its place: yes or no, a tool's result, a value. */
import { useState, type FormEvent, type ReactNode } from 'react'
import type { ClientAnswer } from '../../src/client/client.ts'
import type { EntryOf } from '../../src/part/entry.ts'
import { client } from '../data/client.ts'
import { Button } from './Button.tsx'
import { Icon } from './Icon.tsx'
import { JsonTree } from './JsonTree.tsx'
import css from './OpenRequest.module.css'

interface Props {
  runId: string
  request: EntryOf<'request'>
  /** After the server has taken the answer. */
  onAnswered?: () => void
}

interface Answering {
  isBusy: boolean
  send(answer: ClientAnswer): void
}

export function OpenRequest({ runId, request, onAnswered }: Props) {
  const [isBusy, setBusy] = useState(false)
  const [isDone, setDone] = useState(false)
  const [error, setError] = useState<unknown>()
  const send = (answer: ClientAnswer) => {
    setBusy(true)
    setError(undefined)
    client()
      .answer(runId, request.requestId, answer)
      .then(() => {
        setDone(true)
        onAnswered?.()
      })
      .catch((fault: unknown) => {
        setBusy(false)
        setError(fault)
      })
  }
  const answering = { isBusy, send }
  return (
    <div className={css.request} data-testid="open-request" data-request={request.requestId}>
      <div className={css.question}>
        <Icon name="person" />
        <span>
          <Question request={request} />
        </span>
        {isDone && <em>answered</em>}
      </div>
      {request.kind !== 'input' && (
        <div className={css.input}>
          <JsonTree value={request.input} name="arguments" />
        </div>
      )}
      {!isDone && request.kind === 'approval' && <Approval {...answering} input={request.input} />}
      {!isDone && request.kind === 'tool' && <ToolResult {...answering} />}
      {!isDone && request.kind === 'input' && <Value {...answering} schema={request.schema ?? {}} />}
      {error !== undefined && (
        <p className={css.error} role="alert">
          {String((error as Error).message)}
        </p>
      )}
    </div>
  )
}

function Question({ request }: { request: EntryOf<'request'> }): ReactNode {
  if (request.kind === 'input') return request.message ?? request.reason ?? 'The run asks for a value.'
  if (request.kind === 'approval')
    return (
      <>
        May <b>{request.toolName}</b> run?
      </>
    )
  return (
    <>
      The run waits for the result of <b>{request.toolName}</b>, a tool of the client.
    </>
  )
}

function Approval({ isBusy, send, input }: Answering & { input: unknown }) {
  const [edited, setEdited] = useState<string>()
  const [reason, setReason] = useState('')
  const [fault, setFault] = useState<string>()
  const approve = () => {
    if (edited === undefined) return send({ approved: true })
    const read = readJson(edited)
    if ('fault' in read) return setFault(read.fault)
    send({ approved: true, input: read.value })
  }
  return (
    <div className={css.form}>
      {edited !== undefined && <JsonField label="Other arguments" text={edited} fault={fault} onChange={setEdited} />}
      <div className={css.actions}>
        <input
          className={css.field}
          value={reason}
          placeholder="Reason, if you deny it"
          aria-label="Reason, if you deny it"
          onChange={(event) => setReason(event.target.value)}
        />
        <Button disabled={isBusy} onClick={() => setEdited(edited === undefined ? toJson(input) : undefined)}>
          {edited === undefined ? 'Edit' : 'As asked'}
        </Button>
        <Button
          look="danger"
          disabled={isBusy}
          onClick={() => send({ approved: false, ...(reason !== '' && { reason }) })}
        >
          Deny
        </Button>
        <Button look="primary" disabled={isBusy} onClick={approve}>
          Approve
        </Button>
      </div>
    </div>
  )
}

function ToolResult({ isBusy, send }: Answering) {
  const [text, setText] = useState('')
  const [fault, setFault] = useState<string>()
  const answer = (isError: boolean) => {
    const read = readJson(text)
    if ('fault' in read) return setFault(read.fault)
    send({ output: read.value, ...(isError && { isError }) })
  }
  return (
    <form className={css.form} onSubmit={(event) => (event.preventDefault(), answer(false))}>
      <JsonField label="Result, as JSON" text={text} fault={fault} onChange={setText} />
      <div className={css.actions}>
        <Button disabled={isBusy} onClick={() => answer(true)}>
          Send as an error
        </Button>
        <Button look="primary" disabled={isBusy} type="submit">
          Send the result
        </Button>
      </div>
    </form>
  )
}

function Value({ isBusy, send, schema }: Answering & { schema: Record<string, unknown> }) {
  const choices = Array.isArray(schema['enum']) ? schema['enum'].map(String) : undefined
  const isText = schema['type'] === 'string' || schema['type'] === undefined
  const [text, setText] = useState(choices?.[0] ?? '')
  const [fault, setFault] = useState<string>()
  const answer = (event: FormEvent) => {
    event.preventDefault()
    if (isText || choices !== undefined) return send({ value: text })
    const read = readJson(text)
    if ('fault' in read) return setFault(read.fault)
    send({ value: read.value })
  }
  if (schema['type'] === 'boolean') {
    return (
      <div className={css.actions}>
        <Cancel isBusy={isBusy} send={send} />
        <Button disabled={isBusy} onClick={() => send({ value: false })}>
          No
        </Button>
        <Button look="primary" disabled={isBusy} onClick={() => send({ value: true })}>
          Yes
        </Button>
      </div>
    )
  }
  return (
    <form className={css.form} onSubmit={answer}>
      {choices !== undefined ? (
        <select className={css.field} aria-label="Value" value={text} onChange={(event) => setText(event.target.value)}>
          {choices.map((choice) => (
            <option key={choice}>{choice}</option>
          ))}
        </select>
      ) : isText ? (
        <input
          className={css.field}
          aria-label="Value"
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
      ) : (
        <JsonField label="Value, as JSON" text={text} fault={fault} onChange={setText} />
      )}
      <div className={css.actions}>
        <Cancel isBusy={isBusy} send={send} />
        <Button look="primary" disabled={isBusy} type="submit">
          Send
        </Button>
      </div>
    </form>
  )
}

function Cancel({ isBusy, send }: Answering) {
  return (
    <Button disabled={isBusy} onClick={() => send({ cancelled: true })}>
      Give none
    </Button>
  )
}

interface JsonFieldProps {
  label: string
  text: string
  fault: string | undefined
  onChange: (text: string) => void
}

function JsonField({ label, text, fault, onChange }: JsonFieldProps) {
  return (
    <label className={css.json}>
      {label}
      <textarea
        value={text}
        rows={3}
        spellCheck={false}
        aria-invalid={fault !== undefined}
        onChange={(event) => onChange(event.target.value)}
      />
      {fault !== undefined && <span className={css.error}>{fault}</span>}
    </label>
  )
}

function readJson(text: string): { value: unknown } | { fault: string } {
  try {
    return { value: JSON.parse(text) as unknown }
  } catch (error) {
    return { fault: `This is not JSON: ${(error as Error).message}. A text stands in "quotes".` }
  }
}

function toJson(value: unknown): string {
  return JSON.stringify(value, undefined, 2) ?? ''
}
