/** A new run that shares the log of this one up to an entry, and goes on by itself from there. */
import { lazy, Suspense, useState, type FormEvent } from 'react'
import { useLocation } from 'wouter'
import type { EntryOf } from '../../../src/part/entry.ts'
import { api } from '../../data/client.ts'
import { useMayEdit } from '../../data/edit-token.ts'
import { useAgents } from '../../data/hooks.ts'
import { useResource } from '../../data/resource.ts'
import { useServer } from '../../data/server.ts'
import { Button } from '../../kit/Button.tsx'
import { Dialog } from '../../kit/Dialog.tsx'
import { Skeleton } from '../../kit/Skeleton.tsx'
import { forkInput, lastMessage, withResumed } from './fork-input.ts'
import { forkPoints, lastForkPoint, runsFrom, usualForkPoint } from './fork-points.ts'
import { useEntry } from './data/use-entries.ts'
import type { Room } from './use-room.ts'
import css from './ForkDialog.module.css'

const YamlOfRun = lazy(() => import('../../kit/yaml/YamlOfRun.tsx'))

export function ForkDialog({ room, onClose }: { room: Room; onClose: () => void }) {
  const [, navigate] = useLocation()
  const start = useGiven(room)
  const mayEdit = useMayEdit(useServer().facts?.edit)
  const agents = useAgents().value?.agents ?? []
  const tree = room.model.whole
  const { lastSeq, isLive } = room.snapshot
  const [at, setAt] = useState(() => String(usualForkPoint(tree, room.at, lastSeq, isLive)))
  const points = forkPoints(tree)
  const isOver = Number(at) > lastForkPoint(tree, isLive)
  const [message, setMessage] = useState('')
  const [input, setInput] = useState('')
  const [agent, setAgent] = useState('')
  const [text, setText] = useState<string>()
  const [faults, setFaults] = useState(0)
  /** Of what was shown: another list is not agreed to. */
  const [trusted, setTrusted] = useState<string>()
  const isForeign = start?.foreign !== undefined
  const said = lastMessage(start?.input)
  // Only what runs with its text: not if it goes on as another agent, or with a changed text.
  const own = agent === '' && (text === undefined || text === start?.pipeline) ? 1 : 0
  const programsPath = `/api/runs/${encodeURIComponent(room.id)}/programs?at=${Number(at)}&own=${own}`
  const programs = useResource(isForeign && mayEdit && Number(at) > 0 ? programsPath : undefined, () =>
    api<{ programs: string[] }>(programsPath),
  ).value?.programs
  const trust = programs !== undefined && trusted === programsPath
  const [error, setError] = useState<string>()
  const [isBusy, setBusy] = useState(false)
  const fork = async () => {
    const pipeline = agent !== '' || text === start?.pipeline ? undefined : text
    if (pipeline !== undefined) await check(start?.agent ?? '', pipeline)
    const given = forkInput(start?.input, input, message)
    const body = {
      at: Number(at),
      ...(given !== undefined && { input: given }),
      ...(agent !== '' && { agentId: agent }),
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
      setError((fault as Error).message)
    })
  }
  const isKnown = points.some((point) => String(point.at) === at)
  return (
    <Dialog isOpen title="Run again from here" onClose={onClose} className={text === undefined ? '' : css.wide!}>
      <form className={css.form} onSubmit={submit}>
        <p>This makes a new run. It keeps what this one had completed by then, and does the rest again.</p>
        <label>
          From
          <select value={isKnown ? at : ''} onChange={(e) => e.target.value !== '' && setAt(e.target.value)}>
            {points.map((point) => (
              <option key={point.label} value={point.at}>
                {point.label}
              </option>
            ))}
            {!isKnown && <option value="">{`Entry ${at} of ${lastSeq}`}</option>}
          </select>
        </label>
        <p role="status" className={isOver ? css.error : undefined}>
          {isOver ? 'Everything has run by then. Choose an earlier point.' : told(runsFrom(tree, Number(at)), isLive)}
        </p>
        {said !== undefined && (
          <label>
            New message
            <textarea
              rows={2}
              placeholder={said.slice(0, 200)}
              value={message}
              onChange={(e) => setMessage(e.target.value)}
            />
          </label>
        )}
        <label>
          Agent
          <select value={agent} onChange={(e) => setAgent(e.target.value)}>
            <option value="">{`${start?.agent ?? 'The same'}, as it was in this run`}</option>
            {agents.map(({ id, name }) => (
              <option key={id} value={id}>
                {id === start?.agent
                  ? `${id}, as its file is now`
                  : name === undefined || name === id
                    ? id
                    : `${name} (${id})`}
              </option>
            ))}
          </select>
        </label>
        {mayEdit && agent === '' && text === undefined && (
          <div>
            <Button disabled={start === undefined} onClick={() => setText(start?.pipeline ?? '')}>
              Edit the agent’s YAML for this run
            </Button>
          </div>
        )}
        {text !== undefined && agent === '' && (
          <div className={css.yaml}>
            <Suspense fallback={<Skeleton rows={8} />}>
              <YamlOfRun
                agent={start?.agent ?? ''}
                original={start?.pipeline ?? ''}
                text={text}
                onText={setText}
                onFaults={setFaults}
              />
            </Suspense>
          </div>
        )}
        {isForeign && (
          <p>This run was recorded elsewhere. It goes on if its YAML is that of an agent here, or as another agent.</p>
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
        <details className={css.advanced}>
          <summary>Advanced</summary>
          <label>
            After entry
            <input type="number" min={1} max={lastSeq} value={at} onChange={(e) => setAt(e.target.value)} />
          </label>
          <label>
            Other input, as JSON: merged into what the run was given
            <textarea
              rows={3}
              spellCheck={false}
              className={css.json}
              placeholder={start === undefined ? '' : JSON.stringify(start.input).slice(0, 200)}
              value={input}
              onChange={(e) => setInput(e.target.value)}
            />
          </label>
        </details>
        {error !== undefined && (
          <p role="alert" className={css.error}>
            {error}
          </p>
        )}
        <div className={css.actions}>
          <Button onClick={onClose}>Cancel</Button>
          <Button
            look="primary"
            type="submit"
            disabled={isBusy || isOver || (text !== undefined && agent === '' && faults > 0)}
          >
            Run again
          </Button>
        </div>
      </form>
    </Dialog>
  )
}

/** What the run was given and runs with. A fork has been given more when it went on. */
function useGiven(room: Room): EntryOf<'run-start'> | undefined {
  const start = useEntry(room.windows, 1) as EntryOf<'run-start'> | undefined
  const shared = start?.forkedFrom?.seq
  const began = shared === undefined ? undefined : room.model.whole.marks.find(isBegin(shared))?.seq
  const resumed = useEntry(room.windows, began)
  if (start === undefined || (began !== undefined && resumed === undefined)) return undefined
  return resumed?.type === 'resume' ? withResumed(start, resumed) : start
}

function isBegin(shared: number) {
  return ({ type, seq }: { type: string; seq: number }) => type === 'resume' && seq > shared
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
  if (lines.length === 0) return <p>Its recording starts nothing here except models.</p>
  return (
    <div role="group" aria-label="What its recording would start here">
      <p>If you allow it, its recording starts here:</p>
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

/** Throws with the places of all faults: the last ones may not have been shown yet. */
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
