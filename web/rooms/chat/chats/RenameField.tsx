/** A field in the place of a title. Enter and leaving it keep what is written, Esc does not. */
import { useEffect, useRef, useState } from 'react'
import { messageOf } from '../../../../src/part/error.ts'
import type { ThreadRow } from '../../../../src/part/thread.ts'
import { longestTitle } from '../../../../src/part/thread-title.ts'
import { fetchApi } from '../../../data/client.ts'
import { notice } from '../../../kit/notice.ts'
import css from './Chats.module.css'

interface Props {
  thread: Pick<ThreadRow, 'id' | 'title'>
  onDone(): void
}

export function RenameField({ thread: { id, title = '' }, onDone }: Props) {
  const [text, setText] = useState(title)
  const field = useRef<HTMLInputElement>(null)
  const isDone = useRef(false)
  useEffect(() => field.current!.select(), [])
  const finish = async (isKept: boolean) => {
    if (isDone.current) return
    isDone.current = true
    if (isKept && text.trim() !== title) {
      // The list hears of it with all other pages.
      await fetchApi(`/api/threads/${encodeURIComponent(id)}/title`, { method: 'POST', body: { title: text } }).catch(
        (fault: unknown) => notice(`Not renamed: ${messageOf(fault)}`),
      )
    }
    onDone()
  }
  return (
    <input
      ref={field}
      className={css.rename}
      value={text}
      aria-label={`Name of ${title}`}
      placeholder="Its first words"
      maxLength={longestTitle}
      autoComplete="off"
      onChange={(event) => setText(event.target.value)}
      onBlur={() => void finish(true)}
      onKeyDown={(event) => {
        if (event.key !== 'Enter' && event.key !== 'Escape') return
        event.preventDefault()
        event.stopPropagation()
        void finish(event.key === 'Enter')
      }}
    />
  )
}
