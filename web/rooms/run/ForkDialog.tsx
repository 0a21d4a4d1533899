/** A new run that shares the log of this one up to an entry, and goes on by itself from there. */
import { useEffect, useRef, useState, type FormEvent } from 'react'
import { useLocation } from 'wouter'
import type { EntryOf } from '../../../src/part/entry.ts'
import { fetchApi } from '../../data/client.ts'
import { Button } from '../../kit/Button.tsx'
import { useEntry } from './data/use-entries.ts'
import type { Room } from './use-room.ts'
import css from './ForkDialog.module.css'

export function ForkDialog({ room, onClose }: { room: Room; onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null)
  const [, navigate] = useLocation()
  const start = useEntry(room.windows, 1) as EntryOf<'run-start'> | undefined
  const [at, setAt] = useState(String(room.seq))
  const [input, setInput] = useState('')
  const [agent, setAgent] = useState('')
  const [error, setError] = useState<string>()
  const [isBusy, setBusy] = useState(false)
  useEffect(() => dialog.current?.showModal(), [])
  const fork = async () => {
    const body = {
      at: Number(at),
      ...(input.trim() !== '' && { input: JSON.parse(input) as unknown }),
      ...(agent.trim() !== '' && { agentId: agent.trim() }),
    }
    const response = await fetchApi(`/api/runs/${encodeURIComponent(room.id)}/fork`, { method: 'POST', body })
    const { id } = (await response.json()) as { id: string }
    navigate(`/runs/${encodeURIComponent(id)}`)
  }
  const submit = (event: FormEvent) => {
    event.preventDefault()
    setBusy(true)
    setError(undefined)
    fork().catch((fault: unknown) => {
      setBusy(false)
      setError(fault instanceof SyntaxError ? `The input is not JSON: ${fault.message}` : (fault as Error).message)
    })
  }
  return (
    <dialog ref={dialog} className={css.dialog} aria-labelledby="fork-title" onClose={onClose}>
      <form onSubmit={submit}>
        <h2 id="fork-title">Fork from here</h2>
        <p>What is complete at this entry is kept; what was in the middle begins again.</p>
        <label>
          After entry
          <input type="number" min={1} max={room.snapshot.lastSeq} value={at} onChange={(e) => setAt(e.target.value)} />
        </label>
        <label>
          Input, as JSON: merged into what the run was given
          <textarea
            rows={4}
            spellCheck={false}
            placeholder={start === undefined ? '' : JSON.stringify(start.input).slice(0, 200)}
            value={input}
            onChange={(e) => setInput(e.target.value)}
          />
        </label>
        <label>
          As another agent, which has the steps that have started
          <input value={agent} placeholder={start?.agent ?? ''} onChange={(e) => setAgent(e.target.value)} />
        </label>
        {error !== undefined && (
          <p role="alert" className={css.error}>
            {error}
          </p>
        )}
        <div className={css.actions}>
          <Button onClick={() => dialog.current?.close()}>Cancel</Button>
          <Button look="primary" type="submit" disabled={isBusy}>
            Fork
          </Button>
        </div>
      </form>
    </dialog>
  )
}
