/** Asks before many runs are stopped, deleted or exported; says how far it is, and what could not be done. */
import { useEffect, useRef, useState } from 'react'
import type { RunRow } from '../../../src/part/log.ts'
import { api, fetchApi } from '../../data/client.ts'
import { useMayDelete } from '../../data/server.ts'
import { Button } from '../../kit/Button.tsx'
import { Dialog } from '../../kit/Dialog.tsx'
import { downloadBlob, downloadText } from '../../kit/download.ts'
import { forEach, isKept, splitFor, type BulkAction, type BulkResult } from './bulk.ts'
import { csvOf } from './csv.ts'
import type { Marks } from './useMarks.ts'
import { zipOf, type ZipEntry } from './zip.ts'
import css from './BulkDialog.module.css'

interface Props {
  action: BulkAction
  marks: Marks
  onClose(): void
  /** These were deleted. */
  onGone(ids: readonly string[]): void
}

const verbs = { stop: 'Stop', delete: 'Delete', export: 'Export' }
const done = { stop: 'stopped', delete: 'deleted', export: 'exported' }
/** Logs that are packed in the page. */
const mostText = 200_000_000

const runs = (n: number) => `${n.toLocaleString('en-US')} ${n === 1 ? 'run' : 'runs'}`

export default function BulkDialog({ action, marks, onClose, onGone }: Props) {
  // What is marked when it is asked: rows change while the question stands there.
  const [{ given, wanted, left }] = useState({ given: marks, ...splitFor(action, marks, useMayDelete()) })
  const [progress, setProgress] = useState<number>()
  const [result, setResult] = useState<BulkResult>()
  const leave = useRef(new AbortController())
  useEffect(() => {
    const { current } = leave
    return () => current.abort()
  }, [])

  const run = async (work: (id: string) => Promise<unknown>, finish?: () => unknown) => {
    setProgress(0)
    const { signal } = leave.current
    const found = await forEach(wanted, work, { onProgress: setProgress, signal, isRetried: isKept })
    await finish?.()
    if (action === 'delete') onGone(found.done)
    setResult(found)
  }
  const stop = () => run((id) => fetchApi(`/api/runs/${encodeURIComponent(id)}/stop`, { method: 'POST' }))
  const remove = () => run((id) => fetchApi(`/api/runs/${encodeURIComponent(id)}`, { method: 'DELETE' }))
  const exportLogs = () => {
    const logs: ZipEntry[] = []
    let size = 0
    return run(
      async (id) => {
        if (size > mostText) throw new Error('The file is full. Export fewer runs at once.')
        const text = await (await fetchApi(`/api/runs/${encodeURIComponent(id)}/export`)).text()
        size += text.length
        logs.push({ name: `${fileName(id)}.ndjson`, text })
      },
      async () => logs.length > 0 && downloadBlob('runs.zip', await zipOf(logs, new Date())),
    )
  }
  const exportRows = () => {
    const rows: RunRow[] = []
    return run(
      async (id) => rows.push(given.get(id) ?? (await api<RunRow>(`/api/runs/${encodeURIComponent(id)}`))),
      () => downloadText('runs.csv', csvOf(rows)),
    )
  }
  const isBusy = progress !== undefined && result === undefined
  return (
    <Dialog isOpen title={`${verbs[action]} ${runs(wanted.length)}${action === 'export' ? '' : '?'}`} onClose={onClose}>
      <div className={css.body}>
        {progress === undefined && <p>{question(action, wanted.length, left)}</p>}
        {isBusy && (
          <>
            <p role="status">{`${progress} of ${wanted.length}`}</p>
            <progress value={progress} max={wanted.length} aria-label={`${verbs[action]} runs`} />
          </>
        )}
        {result !== undefined && <Told action={action} result={result} total={wanted.length} given={given} />}
        <div className={css.answer}>
          {progress === undefined && <Button onClick={onClose}>{action === 'delete' ? 'Keep them' : 'Cancel'}</Button>}
          {progress === undefined && action === 'export' && (
            <>
              <Button onClick={() => void exportRows()}>Table (CSV)</Button>
              <Button look="primary" onClick={() => void exportLogs()}>
                Logs (ZIP)
              </Button>
            </>
          )}
          {progress === undefined && action !== 'export' && (
            <Button
              look="danger"
              disabled={wanted.length === 0}
              onClick={() => void (action === 'stop' ? stop() : remove())}
            >
              {`${verbs[action]} ${runs(wanted.length)}`}
            </Button>
          )}
          {isBusy && <Button onClick={() => leave.current.abort()}>End here</Button>}
          {result !== undefined && (
            <Button look="primary" data-autofocus onClick={onClose}>
              Close
            </Button>
          )}
        </div>
      </div>
    </Dialog>
  )
}

function question(action: BulkAction, count: number, left: number): string {
  if (action === 'export')
    return 'The logs are one file for each run, which millrace import takes. The table has what the list has.'
  if (action === 'stop') {
    const others = left === 0 ? '' : ` ${runs(left)} of those that are marked ${left === 1 ? 'is' : 'are'} over.`
    if (count === 0) return `None of them runs or waits.${others}`
    return `${count === 1 ? 'It ends' : 'They end'} where ${count === 1 ? 'it is' : 'they are'}. This cannot be undone.${others}`
  }
  const others =
    left === 0 ? '' : ` ${runs(left)} of those that are marked stay${left === 1 ? 's' : ''}: not over, or not yours.`
  if (count === 0) return `None of them can be deleted.${others}`
  const what = count === 1 ? 'Its log and what people said of it' : 'Their logs and what people said of them'
  return `${what} will be gone for good. This cannot be undone.${others}`
}

function Told({
  action,
  result,
  total,
  given,
}: {
  action: BulkAction
  result: BulkResult
  total: number
  given: Marks
}) {
  const { done: well, failed } = result
  const rest = total - well.length - failed.length
  return (
    <>
      <p role="status">
        {`${runs(well.length)} ${done[action]}.`}
        {failed.length > 0 && ` ${runs(failed.length)} could not be.`}
        {rest > 0 && ` ${runs(rest)} left as ${rest === 1 ? 'it was' : 'they were'}.`}
      </p>
      {failed.length > 0 && (
        <ul className={css.failed} aria-label="What could not be done">
          {failed.map(({ id, message }) => (
            <li key={id}>
              <b>{given.get(id)?.title ?? id}</b> {message}
            </li>
          ))}
        </ul>
      )}
    </>
  )
}

/** Ids may have any characters. */
function fileName(id: string): string {
  return id.replaceAll(/[^\w.-]/gu, '_').slice(0, 200)
}
