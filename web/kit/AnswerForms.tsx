/** The three kinds of answers to a run: yes or no, the result of a tool, a value. */
import { useEffect, useRef, useState, type FormEvent, type RefObject } from 'react'
import type { ClientAnswer } from '../../src/client/client.ts'
import type { RequestView } from '../../src/fold/run-view.ts'
import { equal } from '../../src/part/equal.ts'
import { safeUrl } from '../../src/react/safe-url.ts'
import { toolSchema } from '../data/tool-schema.ts'
import { ArgumentsField, editedArguments, readEdited, type EditedArguments } from './ArgumentsField.tsx'
import { Button } from './Button.tsx'
import { JsonField, readJson } from './JsonField.tsx'
import { readFields, SchemaForm, type FormFields, type Schema } from './SchemaForm.tsx'
import css from './OpenRequest.module.css'

export interface AnswerProps {
  runId: string
  request: RequestView
  isBusy: boolean
  isRow: boolean
  /** The element that says for whom and since when: there may be several requests with the same words. */
  describedBy: string
  /** `from`: where it was decided. */
  send(answer: ClientAnswer, from: HTMLElement | null): void
}

interface EditProps {
  isEditing: boolean
  onEditing(on: boolean): void
}

export function ApprovalForm({
  runId,
  request,
  isBusy,
  isRow,
  describedBy,
  send,
  isEditing,
  onEditing,
}: AnswerProps & EditProps) {
  const form = useRef<HTMLFormElement>(null)
  const [edited, setEdited] = useState<EditedArguments>()
  const [isOpening, setOpening] = useState(false)
  const [reason, setReason] = useState('')
  const name = request.toolName ?? 'it'
  useFocusAfter(form, isEditing)
  const allow = (event: FormEvent) => {
    event.preventDefault()
    if (!isEditing || edited === undefined) return send({ approved: true }, form.current)
    const read = readEdited(edited, request.input)
    if ('fault' in read) return setEdited({ ...edited, fault: read.fault })
    // What was not changed is allowed as it was asked.
    send({ approved: true, ...(!equal(read.value, request.input) && { input: read.value }) }, form.current)
  }
  const edit = async () => {
    setOpening(true)
    const schema = (await toolSchema(runId, name)) as Schema | undefined
    setEdited(editedArguments(request.input, schema))
    setOpening(false)
    onEditing(true)
  }
  return (
    <form ref={form} className={css.form} data-wide={isEditing || undefined} onSubmit={allow}>
      {isEditing && edited !== undefined && (
        <ArgumentsField edited={edited} input={request.input} onChange={setEdited} />
      )}
      <div className={css.actions}>
        {(!isRow || isEditing) && (
          <input
            className={css.field}
            value={reason}
            placeholder="Reason, if you deny it"
            aria-label="Reason, if you deny it"
            onChange={(event) => setReason(event.target.value)}
          />
        )}
        <Button
          disabled={isBusy || isOpening}
          data-first
          aria-label={isEditing ? 'Cancel editing' : `Edit the arguments of ${name}`}
          aria-describedby={describedBy}
          onClick={() => (isEditing ? onEditing(false) : void edit())}
        >
          {isEditing ? 'Cancel' : 'Edit'}
        </Button>
        <Button
          look="danger"
          disabled={isBusy}
          aria-label={`Deny ${name}`}
          aria-describedby={describedBy}
          onClick={() => send({ approved: false, ...(reason.trim() !== '' && { reason }) }, form.current)}
        >
          Deny
        </Button>
        <Button
          look="primary"
          type="submit"
          disabled={isBusy}
          aria-label={`Allow ${name}`}
          aria-describedby={describedBy}
        >
          Allow
        </Button>
      </div>
    </form>
  )
}

/** Into the field when it opens, and back to the button that opened it. */
function useFocusAfter(form: RefObject<HTMLFormElement | null>, isEditing: boolean): void {
  const before = useRef(isEditing)
  useEffect(() => {
    if (before.current === isEditing) return
    before.current = isEditing
    const found = isEditing ? ['textarea, select, input', 'a[href]', 'button'] : ['[data-first]']
    const first = found.map((each) => form.current?.querySelector<HTMLElement>(each)).find(Boolean)
    first?.focus()
  }, [form, isEditing])
}

export function ResultForm({ request, isBusy, isRow, describedBy, send }: AnswerProps) {
  const form = useRef<HTMLFormElement>(null)
  const [isOpen, setOpen] = useState(!isRow)
  const [text, setText] = useState('')
  useFocusAfter(form, isOpen)
  const answer = (isError: boolean) => {
    // What is not JSON is sent as a text.
    const output = text.trim() === '' ? null : (readJson(text) ?? { value: text }).value
    send({ output, ...(isError && { isError }) }, form.current)
  }
  const isText = text.trim() !== '' && readJson(text) === undefined
  return (
    <form
      ref={form}
      className={css.form}
      data-wide={isOpen || undefined}
      onSubmit={(event) => (event.preventDefault(), answer(false))}
    >
      {isOpen && (
        <JsonField
          label="Your app would answer this call. What should it return? (JSON or text)"
          text={text}
          onChange={setText}
        />
      )}
      <div className={css.actions}>
        {isOpen ? (
          <>
            <span className={css.hint}>{isText ? 'Not JSON: sent as text.' : ''}</span>
            {isRow && <Button onClick={() => setOpen(false)}>Cancel</Button>}
            <Button look="danger" disabled={isBusy} onClick={() => answer(true)}>
              Send as error
            </Button>
            <Button look="primary" type="submit" disabled={isBusy}>
              Send result
            </Button>
          </>
        ) : (
          <OpenForm name={request.toolName} describedBy={describedBy} onOpen={() => setOpen(true)} />
        )}
      </div>
    </form>
  )
}

export function ValueForm({ request, isBusy, isRow, describedBy, send }: AnswerProps) {
  const form = useRef<HTMLFormElement>(null)
  const schema = ('schema' in request ? request.schema : undefined) as Schema | undefined
  const isChoice = schema?.type === 'boolean'
  const server = serverOf(request)
  const isObject = schema?.properties !== undefined
  const [isOpen, setOpen] = useState(!isRow || isChoice)
  const [fields, setFields] = useState<FormFields>({})
  const [faults, setFaults] = useState<readonly string[]>([])
  useFocusAfter(form, isOpen)
  // A value that is no object is a form with one field.
  const shown: Schema = isObject
    ? schema
    : { properties: { answer: { title: 'Answer', ...schema } }, required: ['answer'] }
  const answer = (event: FormEvent) => {
    event.preventDefault()
    const read = readFields(shown, fields)
    setFaults(read.faults)
    if (read.faults.length > 0) return
    send({ value: isObject ? read.values : read.values['answer'] }, form.current)
  }
  return (
    <form ref={form} className={css.form} data-wide={(isOpen && !isChoice) || undefined} onSubmit={answer}>
      {isOpen && !isChoice && server?.url === undefined && (
        <SchemaForm schema={shown} fields={fields} onChange={setFields} />
      )}
      {faults.length > 0 && (
        <p className={css.error} role="alert">
          {faults.join(' ')}
        </p>
      )}
      <div className={css.actions}>
        {isOpen ? (
          <>
            {isRow && !isChoice && <Button onClick={() => setOpen(false)}>Cancel</Button>}
            <Button
              look="danger"
              disabled={isBusy}
              aria-describedby={describedBy}
              onClick={() => send(server === undefined ? { cancelled: true } : { declined: true }, form.current)}
            >
              {server === undefined ? 'Give no answer' : 'Decline'}
            </Button>
            {server?.url !== undefined ? (
              <>
                <a href={server.url} target="_blank" rel="noopener noreferrer nofollow">
                  Open {new URL(server.url).host}
                </a>
                <Button look="primary" disabled={isBusy} onClick={() => send({ value: true }, form.current)}>
                  Continue
                </Button>
              </>
            ) : isChoice ? (
              <>
                <Button data-first disabled={isBusy} onClick={() => send({ value: false }, form.current)}>
                  No
                </Button>
                <Button look="primary" disabled={isBusy} onClick={() => send({ value: true }, form.current)}>
                  Yes
                </Button>
              </>
            ) : (
              <Button look="primary" type="submit" disabled={isBusy}>
                Answer
              </Button>
            )}
          </>
        ) : (
          <OpenForm
            name={'message' in request ? request.message : undefined}
            describedBy={describedBy}
            onOpen={() => setOpen(true)}
          />
        )}
      </div>
    </form>
  )
}

/** Of a question of an MCP server: it may ask for something at an address. */
function serverOf(request: RequestView): { url?: string | undefined } | undefined {
  if (request.kind !== 'input' || request.reason !== 'mcp-elicitation') return undefined
  const url = request.metadata?.['mode'] === 'url' ? request.metadata['url'] : undefined
  return { url: typeof url === 'string' ? safeUrl(url) : undefined }
}

interface OpenFormProps {
  name: string | undefined
  describedBy: string
  onOpen(): void
}

function OpenForm({ name, describedBy, onOpen }: OpenFormProps) {
  return (
    <Button
      look="primary"
      data-first
      aria-label={name === undefined ? 'Answer' : `Answer ${name}`}
      aria-describedby={describedBy}
      onClick={onOpen}
    >
      Answer
    </Button>
  )
}
