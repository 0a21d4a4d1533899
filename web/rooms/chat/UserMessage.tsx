/** What was asked: words and files, with ways to copy it and to ask it in other words. */
import { memo, useState, type KeyboardEvent } from 'react'
import { textOf } from '../../../src/fold/run-view.ts'
import type { Message } from '../../../src/part/message.ts'
import { Button } from '../../kit/Button.tsx'
import { Copy } from '../../kit/Copy.tsx'
import { FileView } from './FileView.tsx'
import css from './chat.module.css'

interface Props {
  asked: readonly Message[]
  /** The other keys of the input. */
  values?: Readonly<Record<string, unknown>>
  /** Absent: it cannot be asked again in other words. */
  onEdit?: ((text: string) => void) | undefined
}

export const UserMessage = memo(function UserMessage({ asked, values = {}, onEdit }: Props) {
  const [edited, setEdited] = useState<string>()
  const text = asked.map(textOf).join('\n\n')
  const files = asked.flatMap(({ content }) =>
    typeof content === 'string'
      ? []
      : content.flatMap((part) => ('type' in part && part.type === 'file' ? [part] : [])),
  )
  const given = Object.entries(values).filter(([key]) => key !== 'tools')
  if (edited !== undefined) {
    const send = () => {
      if (edited.trim() === '') return
      setEdited(undefined)
      onEdit?.(edited)
    }
    const press = (event: KeyboardEvent) => {
      if (event.key === 'Escape') setEdited(undefined)
      if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing) return
      event.preventDefault()
      send()
    }
    return (
      <div className={css.editing}>
        <textarea
          aria-label="Your message"
          // The reader has just asked to write here.
          // oxlint-disable-next-line jsx-a11y/no-autofocus
          autoFocus
          value={edited}
          onChange={(event) => setEdited(event.target.value)}
          onKeyDown={press}
        />
        <div className={css.buttons}>
          <Button look="quiet" onClick={() => setEdited(undefined)}>
            Cancel
          </Button>
          <Button look="primary" onClick={send}>
            Send
          </Button>
        </div>
      </div>
    )
  }
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
        {onEdit !== undefined && text !== '' && (
          <Button look="quiet" icon="edit" aria-label="Edit and send again" onClick={() => setEdited(text)} />
        )}
        {text !== '' && <Copy text={text} label="Copy message" />}
      </div>
    </div>
  )
})
