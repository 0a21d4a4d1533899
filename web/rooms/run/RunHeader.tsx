/** What a run came to, in a line, and what can be done with it. */
import { useState, type ReactNode } from 'react'
import { Link, useLocation } from 'wouter'
import type { EntryOf } from '../../../src/part/entry.ts'
import type { RunFacts } from './layout/facts.ts'
import { errorsInWords } from './layout/errors-in-words.ts'
import { client, fetchApi } from '../../data/client.ts'
import { useSeesOthers, useThreadName } from '../../data/server.ts'
import { Button } from '../../kit/Button.tsx'
import { Copy } from '../../kit/Copy.tsx'
import { ErrorNote } from '../../kit/ErrorNote.tsx'
import { cost, duration, moment, shortId, tokens, tokenSides } from '../../kit/format.ts'
import { Menu } from '../../kit/Menu.tsx'
import { Owner } from '../../kit/Owner.tsx'
import { Status } from '../../kit/Status.tsx'
import { Verdict } from '../../kit/Verdict.tsx'
import { comparison, marked, markForCompare } from '../../data/compare-mark.ts'
import { useNarrow } from '../../data/media.ts'
import { useAddTest } from '../../kit/AddTest.tsx'
import { useEntry } from './data/use-entries.ts'
import type { Room } from './use-room.ts'
import css from './RunHeader.module.css'

export function RunHeader({ room, onFork }: { room: Room; onFork: () => void }) {
  const { id, row, status, lastStatus, model, snapshot } = room
  const [error, setError] = useState<unknown>()
  const [isStopping, setStopping] = useState(false)
  const { facts } = model
  const isPhone = useNarrow()
  const isForOthers = useSeesOthers()
  const nameOf = useThreadName()
  const hasFacts = snapshot.items.length > 0
  const first = model.whole.marks[0]
  const agent = row?.agent ?? first?.note
  const start = useEntry(room.windows, 1) as EntryOf<'run-start'> | undefined
  const origin = start?.forkedFrom?.runId
  const stop = () => {
    setStopping(true)
    client()
      .stop(id)
      .catch(setError)
      .finally(() => setStopping(false))
  }
  const addTest = useAddTest(id)
  const others = (
    <>
      <Button icon="fork" title="Run again from here" onClick={onFork} disabled={!snapshot.isLoaded}>
        Fork
      </Button>
      <Compare id={id} origin={origin} />
      {!snapshot.isLive && hasFacts && addTest.open && <Button onClick={addTest.open}>Add as test</Button>}
      <Button onClick={() => void exportRun(id).catch(setError)}>Export</Button>
    </>
  )
  return (
    <header className={css.header}>
      <div className={css.line}>
        <h1 className={css.title} data-testid="run-status" data-status={status}>
          {lastStatus ? <Status status={lastStatus} /> : <span className={css.unknown}>…</span>}
          {room.at === undefined && status === 'completed' && row?.errors !== undefined && (
            <span className={css.errors} title="Errors and failed calls of tools inside">
              {errorsInWords(row.errors, model.whole)}
            </span>
          )}
          {room.at !== undefined && <span className={css.rewound}>(rewound)</span>}
          <span className={css.id} title={agent}>
            {agent === undefined ? '' : <Link href={`/agents/${encodeURIComponent(agent)}`}>{agent}</Link>}
          </span>
        </h1>
        {hasFacts && <Facts facts={facts} now={model.now} isAt={room.at !== undefined} />}
        <div className={css.actions}>
          {snapshot.isLive && (
            <Button icon="stop" onClick={stop} disabled={isStopping}>
              Stop
            </Button>
          )}
          {isPhone ? <Menu label="More">{others}</Menu> : others}
          {addTest.dialog}
        </div>
      </div>
      <div className={css.about}>
        {!snapshot.isLive && <Verdict run={id} />}
        <span className={css.run}>
          run <code>{shortId(id)}</code>
          <Copy text={id} label="Copy the id of the run" />
        </span>
        {row && (
          <span>
            thread{' '}
            <Link href={`/threads/${encodeURIComponent(row.threadId)}`}>{shortId(nameOf(row.threadId).name)}</Link>
          </span>
        )}
        {isForOthers && row?.owner !== undefined && (
          <span className={css.owner}>
            user{' '}
            <Link href={`/runs?user=${encodeURIComponent(row.owner)}`} title="All runs of this user">
              <Owner owner={row.owner} tenant={row.tenant} />
            </Link>
          </span>
        )}
        {origin !== undefined && (
          <span>
            forked from <Link href={`/runs/${encodeURIComponent(origin)}`}>{shortId(origin)}</Link>
          </span>
        )}
        {row?.parentRunId !== undefined && (
          <span>
            part of <Link href={`/runs/${encodeURIComponent(row.parentRunId)}`}>{shortId(row.parentRunId)}</Link>
          </span>
        )}
        {row && <span>{row.protocol === 'page' ? 'from the page' : `by ${row.protocol}`}</span>}
        {row?.foreign !== undefined && (
          <span title={`Its first ${row.foreign} entries were recorded on another server`}>recorded elsewhere</span>
        )}
        {hasFacts && <time dateTime={new Date(facts.startedAt).toISOString()}>{moment(facts.startedAt)}</time>}
        {row?.title !== undefined && <span className={css.words}>{row.title}</span>}
      </div>
      {error !== undefined && <ErrorNote error={error} />}
    </header>
  )
}

function Facts({ facts, now, isAt }: { facts: RunFacts; now: number; isAt: boolean }) {
  const { durationMs, suspendedMs, waitsSince, takenOverMs, firstTokenMs, tokensPerSecond, usage, queueMs } = facts
  const waited = suspendedMs > 0 ? `Without ${duration(suspendedMs)} of waiting for answers` : undefined
  return (
    <dl className={css.facts} data-at={isAt || undefined}>
      <Fact name="time" value={duration(durationMs)} title={waited}>
        {takenOverMs !== undefined && takenOverMs > 0 && (
          <small className={css.taken} title="The time of the run it was forked from, up to the fork">
            +{duration(takenOverMs)} taken over
          </small>
        )}
      </Fact>
      {waitsSince !== undefined && !isAt && <Fact name="waiting" value={duration(now - waitsSince)} />}
      {firstTokenMs !== undefined && (
        <Fact
          name="first token"
          value={duration(firstTokenMs)}
          title={queueMs === undefined ? undefined : `${duration(queueMs)} until its first step`}
        />
      )}
      {usage && <Fact name="tokens" value={tokens(usage)} title={tokenSides(usage)} />}
      {tokensPerSecond !== undefined && <Fact name="speed" value={`${Math.round(tokensPerSecond)} tok/s`} />}
      {facts.cost !== undefined && <Fact name="cost" value={cost(facts.cost)} />}
      {facts.retries > 0 && <Fact name="retries" value={String(facts.retries)} />}
    </dl>
  )
}

interface FactProps {
  name: string
  value: string
  title?: string | undefined
  children?: ReactNode
}

function Fact({ name, value, title, children }: FactProps) {
  return (
    <div title={title}>
      <dt>{name}</dt>
      <dd className="num">
        {value} {children}
      </dd>
    </div>
  )
}

/** A fork is compared with its origin, unless another run is marked. */
function Compare({ id, origin }: { id: string; origin: string | undefined }) {
  const [, navigate] = useLocation()
  const [mark, setMark] = useState(marked)
  if (origin !== undefined && (mark === undefined || mark === origin)) {
    return (
      <Button title="With the run that it is a fork of" onClick={() => navigate(comparison(origin, id))}>
        Compare
      </Button>
    )
  }
  const label = mark === undefined ? 'Compare' : mark === id ? 'Marked' : 'Compare with the marked run'
  return (
    <Button
      aria-pressed={mark === id}
      title="Mark it, open another run, and compare the two (x)"
      onClick={() => setMark(markForCompare(id))}
    >
      {mark !== undefined && mark !== id ? 'Compare…' : label}
    </Button>
  )
}

async function exportRun(id: string): Promise<void> {
  const response = await fetchApi(`/api/runs/${encodeURIComponent(id)}/export`)
  const url = URL.createObjectURL(await response.blob())
  const link = document.createElement('a')
  link.href = url
  link.download = `${id}.ndjson`
  link.click()
  setTimeout(() => URL.revokeObjectURL(url), 10_000)
}
