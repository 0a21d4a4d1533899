/** Where the next message is written: words, files, declared input. Enter sends, Shift+Enter begins a line. */
import {
  useEffect,
  useRef,
  useState,
  type ClipboardEvent,
  type DragEvent,
  type KeyboardEvent,
  type RefObject,
} from 'react'
import { Button } from '../../kit/Button.tsx'
import { Icon } from '../../kit/Icon.tsx'
import { readFields, SchemaForm, type FormFields, type Schema } from '../../kit/SchemaForm.tsx'
import { readFiles } from './attachments.ts'
import type { Attachment } from './send.ts'
import css from './Composer.module.css'

interface Props {
  agentName: string
  /** What the agent declares as its input. */
  schema: Schema | undefined
  isMessageRequired: boolean
  draft: string
  onDraft(text: string): void
  files: readonly Attachment[]
  onFiles(change: (before: readonly Attachment[]) => readonly Attachment[]): void
  fields: FormFields
  onFields(fields: FormFields): void
  /** Bytes of a request. */
  limit: number
  isRunning: boolean
  /** What is sent now goes into the answer that is being written. */
  steers: boolean
  onSend(text: string, files: readonly Attachment[], values: Record<string, unknown>): void
  onStop(): void
  input: RefObject<HTMLTextAreaElement | null>
}

export function Composer(props: Props) {
  const { agentName, schema, isMessageRequired, draft, onDraft, files, onFiles, fields, onFields, limit } = props
  const { isRunning, steers, onSend, onStop, input } = props
  const [faults, setFaults] = useState<readonly string[]>([])
  const [isOver, setOver] = useState(false)
  const chooser = useRef<HTMLInputElement>(null)
  useGrowing(input, draft)
  const hasForm = schema !== undefined
  const isEmpty = draft.trim() === '' && files.length === 0

  function send(): void {
    const read = hasForm ? readFields(schema, fields) : { values: {}, faults: [] }
    const isMissing = hasForm && isMessageRequired && isEmpty
    const all = isMissing ? [...read.faults, 'The message is missing.'] : read.faults
    setFaults(all)
    if (isMissing && read.faults.length === 0) input.current?.focus()
    if (all.length > 0 || (isEmpty && !hasForm)) return
    onSend(draft, files, read.values)
    onFiles(() => [])
  }

  function press(event: KeyboardEvent): void {
    // Input methods end a word with Enter. On phones Enter begins a line: the button sends.
    if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing) return
    if (matchMedia('(pointer: coarse)').matches && !event.metaKey && !event.ctrlKey) return
    event.preventDefault()
    send()
  }

  async function add(list: readonly File[]): Promise<void> {
    if (list.length === 0) return
    const read = await readFiles(list, files, limit)
    onFiles((before) => [...before, ...read.attachments])
    setFaults(read.faults)
    input.current?.focus()
  }

  function paste(event: ClipboardEvent): void {
    const pasted = [...event.clipboardData.files]
    if (pasted.length === 0) return
    event.preventDefault()
    void add(pasted)
  }

  const drag = {
    onDragOver(event: DragEvent) {
      if (!event.dataTransfer.types.includes('Files')) return
      event.preventDefault()
      setOver(true)
    },
    onDragLeave: () => setOver(false),
    onDrop(event: DragEvent) {
      event.preventDefault()
      setOver(false)
      void add([...event.dataTransfer.files])
    },
  }

  return (
    <form
      className={css.composer}
      data-over={isOver || undefined}
      {...drag}
      onSubmit={(event) => {
        event.preventDefault()
        send()
      }}
    >
      {hasForm && <SchemaForm schema={schema} fields={fields} onChange={onFields} />}
      {files.length > 0 && (
        <ul className={css.files} aria-label="Attached files">
          {files.map((file, i) => (
            <li key={i}>
              <Icon name="file" />
              <span>{file.name}</span>
              <Button
                look="quiet"
                icon="close"
                aria-label={`Remove ${file.name}`}
                onClick={() => onFiles((before) => before.filter((each) => each !== file))}
              />
            </li>
          ))}
        </ul>
      )}
      {faults.length > 0 && (
        <p role="alert" className={css.faults}>
          {faults.join(' ')}
        </p>
      )}
      <div className={css.box}>
        <input
          ref={chooser}
          type="file"
          multiple
          hidden
          data-testid="file-input"
          accept="image/*,text/*,application/pdf,application/json"
          onChange={(event) => {
            void add([...(event.target.files ?? [])])
            event.target.value = ''
          }}
        />
        <Button look="quiet" icon="plus" aria-label="Attach files" onClick={() => chooser.current?.click()} />
        <textarea
          ref={input}
          data-testid="chat-input"
          aria-label={`Message to ${agentName}`}
          placeholder={
            steers
              ? `Tell ${agentName} while it works…`
              : !hasForm
                ? `Ask ${agentName}…`
                : isMessageRequired
                  ? 'Message (required)'
                  : 'Message (optional)'
          }
          aria-required={hasForm && isMessageRequired}
          rows={1}
          value={draft}
          onChange={(event) => onDraft(event.target.value)}
          onKeyDown={press}
          onPaste={paste}
        />
        {isRunning && (
          <Button icon="stop" aria-label="Stop" data-testid="stop-button" onClick={onStop}>
            <span className={css.word}>Stop</span>
          </Button>
        )}
        <Button
          look="primary"
          icon="send"
          type="submit"
          aria-label="Send"
          data-testid="send-button"
          disabled={isEmpty && !hasForm}
        >
          <span className={css.word}>Send</span>
        </Button>
      </div>
    </form>
  )
}

/** As high as its words, where the browser does not do that itself (`field-sizing`). */
function useGrowing(field: RefObject<HTMLTextAreaElement | null>, text: string): void {
  useEffect(() => {
    const element = field.current
    if (element === null || CSS.supports('field-sizing', 'content')) return
    element.style.setProperty('height', 'auto')
    element.style.setProperty('height', `${element.scrollHeight + 2}px`)
  }, [field, text])
}
