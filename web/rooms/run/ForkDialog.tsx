/** A new run that shares the log of this one up to an entry, and goes on by itself from there. */
import { useState, type FormEvent } from 'react'
import { useLocation } from 'wouter'
import type { EntryOf } from '../../../src/part/entry.ts'
import { api } from '../../data/client.ts'
import { useMayEdit } from '../../data/edit-token.ts'
import { useResource } from '../../data/resource.ts'
import { useServer } from '../../data/server.ts'
import { Button } from '../../kit/Button.tsx'
import { Dialog } from '../../kit/Dialog.tsx'
import { forkPoints, lastForkPoint, runsFrom, usualForkPoint } from './fork-points.ts'
import { useEntry } from './data/use-entries.ts'
import type { Room } from './use-room.ts'
import css from './ForkDialog.module.css'

export function ForkDialog({ room, onClose }: { room: Room; onClose: () => void }) {
  const [, navigate] = useLocation()
  const start = useEntry(room.windows, 1) as EntryOf<'run-start'> | undefined
  const mayEdit = useMayEdit(useServer().facts?.edit)
  const tree = room.model.whole
  const { lastSeq, isLive } = room.snapshot
  const [at, setAt] = useState(() => String(usualForkPoint(tree, room.at, lastSeq, isLive)))
  const points = forkPoints(tree)
  const isOver = Number(at) > lastForkPoint(tree, isLive)
  const [input, setInput] = useState('')
  const [agent, setAgent] = useState('')
  const [text, setText] = useState<string>()
  /** Of what was shown: another list is not agreed to. */
  const [trusted, setTrusted] = useState<string>()
  const isForeign = start?.foreign !== undefined
  // Only what runs with its text: not if it goes on as another agent, or with a changed text.
  const own = agent.trim() === '' && (text === undefined || text === start?.pipeline) ? 1 : 0
  const programsPath = `/api/runs/${encodeURIComponent(room.id)}/programs?at=${Number(at)}&own=${own}`
  const programs = useResource(isForeign && mayEdit && Number(at) > 0 ? programsPath : undefined, () =>
    api<{ programs: string[] }>(programsPath),
  ).value?.programs
  const trust = programs !== undefined && trusted === programsPath
  const [error, setError] = useState<string>()
  const [isBusy, setBusy] = useState(false)
  const fork = async () => {
    const pipeline = text === start?.pipeline ? undefined : text
    if (pipeline !== undefined) await check(start?.agent ?? '', pipeline)
    const body = {
      at: Number(at),
      ...(input.trim() !== '' && { input: JSON.parse(input) as unknown }),
      ...(agent.trim() !== '' && { agentId: agent.trim() }),
      ...(pipeline !== undefined && { pipeline }),
      ...(trust && { trust }),
    }
    const path = `/api/runs/${encodeURIComponent(room.id)}/fork`
    const { id } = await api<{ id: string }>(path, { method: 'POST', body })
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
    <Dialog isOpen title="Fork from here" onClose={onClose}>
      <form className={css.form} onSubmit={submit}>
        <p>What is complete at this entry is kept; what was in the middle begins again.</p>
        <label>
          From
          <select
            value={points.some((point) => String(point.at) === at) ? at : ''}
            onChange={(e) => e.target.value !== '' && setAt(e.target.value)}
          >
            {points.map((point) => (
              <option key={point.label} value={point.at}>
                {point.label}
              </option>
            ))}
            <option value="">Another entry</option>
          </select>
        </label>
        <label>
          After entry
          <input type="number" min={1} max={lastSeq} value={at} onChange={(e) => setAt(e.target.value)} />
        </label>
        <p role="status" className={isOver ? css.error : undefined}>
          {isOver ? 'Everything has run by then. Choose an earlier point.' : told(runsFrom(tree, Number(at)), isLive)}
        </p>
        <label>
          Input, as JSON: merged into what the run was given
          <textarea
            rows={3}
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
        {mayEdit && text === undefined && (
          <div>
            <Button disabled={start === undefined} onClick={() => setText(start?.pipeline ?? '')}>
              Change the pipeline
            </Button>
          </div>
        )}
        {text !== undefined && (
          <label>
            Pipeline, as YAML
            <textarea rows={12} spellCheck={false} value={text} onChange={(e) => setText(e.target.value)} />
          </label>
        )}
        {isForeign && (
          <p>
            This run was recorded elsewhere. It goes on if its pipeline is that of an agent here, or as another agent.
          </p>
        )}
        {programs !== undefined && <Programs lines={programs} />}
        {isForeign && mayEdit && (
          <label className={css.check}>
            <input
              type="checkbox"
              disabled={programs === undefined}
              checked={trust}
              onChange={(e) => setTrusted(e.target.checked ? programsPath : undefined)}
            />
            I have read this: it may run on this server
          </label>
        )}
        {error !== undefined && (
          <p role="alert" className={css.error}>
            {error}
          </p>
        )}
        <div className={css.actions}>
          <Button onClick={onClose}>Cancel</Button>
          <Button look="primary" type="submit" disabled={isBusy || isOver}>
            Fork
          </Button>
        </div>
      </form>
    </Dialog>
  )
}

/** What a fork keeps, and what runs behind it. */
function told({ kept, names }: ReturnType<typeof runsFrom>, isLive: boolean): string {
  const keeps = kept === 0 ? '' : ` ${kept === 1 ? '1 step is' : `${kept} steps are`} kept.`
  if (names.length === 0) return `${isLive ? 'What comes next runs.' : 'It runs from the start.'}${keeps}`
  const more = names.length > mostNames ? `, and ${names.length - mostNames} more` : ''
  return `Runs again: ${names.slice(0, mostNames).join(', ')}${more}.${keeps}`
}

const mostNames = 6

/** What the recording would set to work, before somebody agrees. */
function Programs({ lines }: { lines: readonly string[] }) {
  if (lines.length === 0) return <p>Its recording sets nothing to work here but models.</p>
  return (
    <div role="group" aria-label="What its recording sets to work here">
      <p>If it goes on with trust, its recording sets to work here:</p>
      {/* It scrolls. */}
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex */}
      <ul className={css.programs} tabIndex={0}>
        {lines.map((line, i) => (
          // Lines may be the same.
          <li key={i}>{line}</li> // oxlint-disable-line react/no-array-index-key
        ))}
      </ul>
    </div>
  )
}

/** Throws with the places of all faults. */
async function check(id: string, text: string): Promise<void> {
  const { faults } = await api<{ faults: { message: string; line?: number; column?: number }[] }>('/api/agents/check', {
    method: 'POST',
    body: { id, text },
  })
  if (faults.length === 0) return
  const lines = faults.map(({ line, column, message }) =>
    line === undefined ? message : `${line}:${column} ${message}`,
  )
  throw new Error(lines.join('\n'))
}
