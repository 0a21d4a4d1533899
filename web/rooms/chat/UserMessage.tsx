/** What was asked: words and files, with ways to copy it and to ask it otherwise. */
import { memo, useRef, useState, type KeyboardEvent } from 'react'
import { textOf } from '../../../src/fold/run-view.ts'
import type { FileContent, Message } from '../../../src/part/message.ts'
import { Button } from '../../kit/Button.tsx'
import { Copy } from '../../kit/Copy.tsx'
import { FileView } from './FileView.tsx'
import css from './chat.module.css'

interface Props {
  asked: readonly Message[]
  /** The other keys of the input. */
  values?: Readonly<Record<string, unknown>>
  /** Absent: it cannot be asked again. */
  onEdit?: ((asked: readonly Message[]) => void) | undefined
}

export const UserMessage = memo(function UserMessage({ asked, values = {}, onEdit }: Props) {
  const [isEdited, setEdited] = useState(false)
  const text = asked.map(textOf).join('\n\n')
  const files = filesOf(asked)
  const given = Object.entries(values).filter(([key]) => key !== 'tools')
  if (isEdited && onEdit !== undefined) return <Edited asked={asked} onEdit={onEdit} onClose={() => setEdited(false)} />
  return (
    <div className={css.user} data-testid="user-message">
      <div className={css.bubble}>
        {text !== '' && <p>{text}</p>}
        {files.map((file, i) => (
          <FileView key={i} data={file.data} mediaType={file.mediaType} name={file.filename} />
        ))}
        {given.length > 0 && (
          <dl className={css.values}>
            {given.map(([key, value]) => (
              <div key={key}>
                <dt>{key}</dt>
                <dd>{typeof value === 'string' ? value : JSON.stringify(value)}</dd>
              </div>
            ))}
          </dl>
        )}
      </div>
      <div className={css.tools}>
        {onEdit !== undefined && asked.length > 0 && (
          <Button look="quiet" icon="edit" aria-label="Edit and send again" onClick={() => setEdited(true)} />
        )}
        {text !== '' && <Copy text={text} label="Copy message" />}
      </div>
    </div>
  )
})

interface EditedProps {
  asked: readonly Message[]
  onEdit(asked: readonly Message[]): void
  onClose(): void
}

/** The message as it is being changed: its words, and its files, each of which can be left out. */
function Edited({ asked, onEdit, onClose }: EditedProps) {
  const before = asked.map(textOf).join('\n\n')
  const all = filesOf(asked)
  const [text, setText] = useState(before)
  const [files, setFiles] = useState<readonly FileContent[]>(all)
  const input = useRef<HTMLTextAreaElement>(null)
  const send = () => {
    if (text.trim() === '' && files.length === 0) return
    onClose()
    onEdit(text === before && files.length === all.length ? asked : [messageOf(text, files)])
  }
  const press = (event: KeyboardEvent) => {
    if (event.key === 'Escape') onClose()
    if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing) return
    event.preventDefault()
    send()
  }
  return (
    <div className={css.editing}>
      {files.length > 0 && (
        <ul className={css.editedFiles} aria-label="Files of your message">
          {files.map((file, i) => (
            <li key={i}>
              <FileView data={file.data} mediaType={file.mediaType} name={file.filename} />
              <Button
                look="quiet"
                icon="close"
                aria-label={`Remove ${file.filename ?? file.mediaType}`}
                onClick={() => {
                  setFiles(files.filter((each) => each !== file))
                  input.current?.focus()
                }}
              />
            </li>
          ))}
        </ul>
      )}
      <textarea
        ref={input}
        aria-label="Your message"
        // The reader has just asked to write here.
        // oxlint-disable-next-line jsx-a11y/no-autofocus
        autoFocus
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={press}
      />
      <div className={css.buttons}>
        <Button look="quiet" onClick={onClose}>
          Cancel
        </Button>
        <Button look="primary" onClick={send}>
          Send
        </Button>
      </div>
    </div>
  )
}

function filesOf(asked: readonly Message[]): FileContent[] {
  return asked.flatMap(({ content }) =>
    typeof content === 'string'
      ? []
      : content.flatMap((part) => ('type' in part && part.type === 'file' ? [part] : [])),
  )
}

function messageOf(text: string, files: readonly FileContent[]): Message {
  if (files.length === 0) return { role: 'user', content: text }
  return { role: 'user', content: [...(text.trim() === '' ? [] : [{ type: 'text' as const, text }]), ...files] }
}
