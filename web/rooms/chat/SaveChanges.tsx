/** The changes of a chat as changes of the agent's file: shown first, then written. */
import { useMemo, useState } from 'react'
import type { ChangedText, StepChange } from '../../../src/part/agent-settings.ts'
import { api } from '../../data/client.ts'
import { useResource } from '../../data/resource.ts'
import { Button } from '../../kit/Button.tsx'
import { Dialog } from '../../kit/Dialog.tsx'
import { ErrorNote } from '../../kit/ErrorNote.tsx'
import { notice } from '../../kit/notice.ts'
import { Skeleton } from '../../kit/Skeleton.tsx'
import { diffLines } from '../../kit/diff/line-diff.ts'
import { changedText } from './override.ts'
import css from './Agent.module.css'

interface Props {
  agentId: string
  changes: readonly StepChange[]
  onClose(): void
  onSaved(): void
}

interface File {
  text?: string
  etag?: string
  file?: string
}

export function SaveChanges({ agentId, changes, onClose, onSaved }: Props) {
  const path = `/api/agents/${encodeURIComponent(agentId)}`
  const [isBusy, setBusy] = useState(false)
  const [error, setError] = useState<unknown>()
  const [hasMoved, setMoved] = useState(false)
  // The file as it is now, which may be newer than the agent that answers.
  const proposed = useResource(`save ${agentId}`, async (signal) => {
    const file = await api<File>(path, { signal })
    return { file, next: await changedText(agentId, changes, { text: file.text ?? '', signal }) }
  })
  const { value } = proposed

  async function save(): Promise<void> {
    setBusy(true)
    setError(undefined)
    try {
      await api(path, { method: 'POST', body: { text: value!.next.text, etag: value!.file.etag } })
      notice('Saved')
      onSaved()
      onClose()
    } catch (reason) {
      setBusy(false)
      // The same changes of what is there now.
      if ((reason as { status?: number }).status !== 409) return setError(reason)
      setMoved(true)
      proposed.reload()
    }
  }

  return (
    <Dialog isOpen title="Save to the agent’s file" onClose={onClose} className={css.dialog}>
      <div className={css.saving}>
        {proposed.error !== undefined && <ErrorNote error={proposed.error} onRetry={proposed.reload} isFlush />}
        {hasMoved && (
          <p role="alert" className={css.moved}>
            The file has changed meanwhile. These are your changes to what it is now.
          </p>
        )}
        {value !== undefined && <Proposed before={value.file} next={value.next} />}
        {value === undefined && proposed.error === undefined && <Skeleton rows={4} />}
        {error !== undefined && <ErrorNote error={error} isFlush />}
        <div className={css.actions}>
          <Button onClick={onClose}>Cancel</Button>
          <Button
            look="primary"
            data-autofocus
            disabled={isBusy || proposed.isLoading || value === undefined || value.next.faults.length > 0}
            onClick={() => void save()}
          >
            {isBusy ? 'Saving' : 'Save'}
          </Button>
        </div>
      </div>
    </Dialog>
  )
}

function Proposed({ before, next }: { before: File; next: ChangedText }) {
  const { text = '', file } = before
  const lines = useMemo(() => diffLines(text, next.text), [text, next.text])
  if (lines.length === 0) return <p>The file says so already.</p>
  return (
    <>
      {file !== undefined && (
        <p>
          <code>{file}</code>, for every chat from then on:
        </p>
      )}
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex */}
      <pre className={css.diff} aria-label="Changes of the file" tabIndex={0}>
        {lines.map(({ kind, text: line }, i) => {
          const Mark = kind === 'out' ? 'del' : kind === 'in' ? 'ins' : 'span'
          return (
            <Mark key={i} data-kind={kind}>
              {kind === 'out' ? '- ' : kind === 'in' ? '+ ' : '  '}
              {line}
              {'\n'}
            </Mark>
          )
        })}
      </pre>
      {next.faults.map(({ message, line }) => (
        <p key={message} className={css.fault} role="alert">
          Line {line}: {message}
        </p>
      ))}
    </>
  )
}
