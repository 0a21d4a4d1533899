/** Where the message to all columns is written. */
import { useEffect, useImperativeHandle, useRef, useState, type Ref } from 'react'
import type { Message } from '../../../../src/part/message.ts'
import { useQuery } from '../../../data/query.ts'
import type { FormFields } from '../../../kit/SchemaForm.tsx'
import { Composer } from '../Composer.tsx'
import { toDraft, toMessage, type Attachment } from '../send.ts'
import { useBodyLimit } from '../use-body-limit.ts'
import { useDraft } from '../use-draft.ts'
import type { SharedForm } from './shared-form.ts'
import css from './beside.module.css'

export interface ComposerHandle {
  /** Messages come back from a column; what others have given back already stands there once. */
  give(messages: readonly Message[]): void
}

interface Props {
  columns: number
  form: SharedForm
  /** Why nothing can be sent. */
  fault: string | undefined
  isRunning: boolean
  steers: boolean
  onSend(messages: readonly Message[], values: Record<string, unknown>): void
  onStop(): void
  ref?: Ref<ComposerHandle>
}

export function BesideComposer({ columns, form, fault, isRunning, steers, onSend, onStop, ref }: Props) {
  const query = useQuery()
  const limit = useBodyLimit()
  const [draft, setDraft] = useDraft('beside', query.get('draft') ?? '')
  const [files, setFiles] = useState<readonly Attachment[]>([])
  const [fields, setFields] = useState<FormFields>({})
  const input = useRef<HTMLTextAreaElement>(null)
  const current = useRef(draft)
  useEffect(() => {
    current.current = draft
  })
  useImperativeHandle(ref, () => ({
    give(messages) {
      const back = toDraft(messages)
      const parts = current.current.split('\n\n').filter((each) => each.trim() !== '')
      if (!current.current.includes(back.text)) parts.unshift(back.text)
      current.current = parts.join('\n\n')
      setDraft(current.current)
      setFiles((before) => [...before, ...back.files.filter(({ url }) => before.every((each) => each.url !== url))])
      input.current?.focus({ preventScroll: true })
    },
  }))
  // Not on phones: the keyboard would cover what is there to read.
  useEffect(() => {
    if (!matchMedia('(pointer: coarse)').matches) input.current?.focus({ preventScroll: true })
  }, [])

  function send(text: string, attached: readonly Attachment[], values: Record<string, unknown>): void {
    const message = toMessage(text, attached)
    onSend(message === undefined ? [] : [message], values)
    setDraft('')
    if (query.get('draft') !== undefined) query.set({ draft: undefined }, { replace: true })
    input.current?.focus({ preventScroll: true })
  }

  if (fault !== undefined) {
    return (
      <p role="status" className={css.fault}>
        {fault}
      </p>
    )
  }
  return (
    <Composer
      agentName={columns === 2 ? 'both' : `all ${columns}`}
      schema={form.schema}
      isMessageRequired={form.isMessageRequired}
      draft={draft}
      onDraft={setDraft}
      files={files}
      onFiles={setFiles}
      fields={fields}
      onFields={setFields}
      limit={limit}
      isRunning={isRunning}
      steers={steers}
      onSend={send}
      onStop={onStop}
      input={input}
    />
  )
}
