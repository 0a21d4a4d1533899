import { useState } from 'react'
import type { ThreadRow } from '../../src/part/thread.ts'
import { fetchApi } from '../data/client.ts'
import { useThreadName } from '../data/server.ts'
import { Button } from './Button.tsx'
import { Dialog } from './Dialog.tsx'
import { ErrorNote } from './ErrorNote.tsx'
import css from './DeleteThread.module.css'

interface Props {
  /** Which one; none: the question is not asked. */
  thread: Pick<ThreadRow, 'id' | 'title' | 'runCount'> | undefined
  onClose(): void
  onDeleted(id: string): void
}

/** Asks before a conversation is deleted. */
export function DeleteThread({ thread, onClose, onDeleted }: Props) {
  const nameOf = useThreadName()
  const [isBusy, setBusy] = useState(false)
  const [error, setError] = useState<unknown>()
  const close = () => {
    setError(undefined)
    onClose()
  }
  const remove = async (id: string) => {
    setBusy(true)
    setError(undefined)
    try {
      await fetchApi(`/api/threads/${encodeURIComponent(id)}`, { method: 'DELETE' })
      onDeleted(id)
    } catch (fault) {
      setError(fault)
    } finally {
      setBusy(false)
    }
  }
  return (
    <Dialog isOpen={thread !== undefined} title="Delete this thread?" onClose={close}>
      {thread !== undefined && (
        <>
          <p className={css.doomed}>
            “{thread.title ?? nameOf(thread.id).name}” and its{' '}
            {thread.runCount === 1 ? 'run' : `${thread.runCount} runs`} will be gone for good.
          </p>
          {error !== undefined && <ErrorNote error={error} />}
          <div className={css.answer}>
            <Button onClick={close}>Keep it</Button>
            <Button look="danger" disabled={isBusy} onClick={() => void remove(thread.id)}>
              Delete
            </Button>
          </div>
        </>
      )}
    </Dialog>
  )
}
