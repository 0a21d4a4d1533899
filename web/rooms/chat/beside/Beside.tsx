/** The columns, and what is below them: one message for all. */
import { useCallback, useEffect, useMemo, useRef, useState } from 'react'
import { useLocation, useSearch } from 'wouter'
import type { Message } from '../../../../src/part/message.ts'
import type { AgentFacts } from '../../../data/hooks.ts'
import { Button } from '../../../kit/Button.tsx'
import { marksOf, sameRound, type Mark, type Marks } from './answer-facts.ts'
import { BesideComposer, type ComposerHandle } from './BesideComposer.tsx'
import { Column } from './Column.tsx'
import type { ColumnHandle, ColumnState } from './ColumnChat.tsx'
import { ColumnTabs } from './ColumnTabs.tsx'
import {
  besidePath,
  columnsIn,
  fewestColumns,
  longestAddress,
  mostColumns,
  nextColumn,
  type ColumnSpec,
} from './columns.ts'
import { CompareRuns } from './CompareRuns.tsx'
import { sharedForm } from './shared-form.ts'
import { useColumnIds } from './use-column-ids.ts'
import css from './beside.module.css'

const nothing: ColumnState = { answers: [], isBusy: false, isActive: false, fault: undefined, steers: false }

interface Props {
  agents: readonly AgentFacts[]
  /** Why models cannot be chosen. */
  reason: string | undefined
}

export function Beside({ agents, reason }: Props) {
  const search = useSearch()
  const [, navigate] = useLocation()
  const columns = useMemo(() => columnsIn(search), [search])
  const { ids, remove } = useColumnIds(columns.length)
  const [states, setStates] = useState<ReadonlyMap<number, ColumnState>>(new Map())
  const handles = useHandles()
  const composer = useRef<ComposerHandle>(null)
  const box = useRef<HTMLDivElement>(null)
  const latest = useRef({ ids, states })
  useEffect(() => {
    latest.current = { ids, states }
  })

  const shown = ids.map((id, i) => {
    const spec = columns[i]!
    const agent = agents.find((each) => each.id === spec.agent)
    const name = [agent?.name ?? spec.agent, spec.model].filter(Boolean).join(' · ')
    // A column whose agent is gone has nothing to show.
    const state = (agent && states.get(id)) ?? nothing
    return { id, spec, agent, name, label: `${i + 1} ${name}`, state }
  })
  const marks = useSame(marksOf(shown.map(({ state }) => state)))
  const form = sharedForm(shown.flatMap(({ agent }) => agent ?? []))
  const faulty = shown.find(({ agent, state }) => agent !== undefined && state.fault !== undefined)
  const fault = form.fault ?? (faulty && `${faulty.label}: ${faulty.state.fault}`)

  const write = useCallback(
    (change: (columns: ColumnSpec[]) => ColumnSpec[], { replace = false, isBounded = false } = {}) => {
      const path = besidePath(change(columnsIn(location.search)), location.search)
      if (isBounded && path.length > longestAddress) return false
      navigate(path, { replace })
      return true
    },
    [navigate],
  )
  const onSpec = useCallback(
    (id: number, change: Partial<ColumnSpec>) => {
      const at = latest.current.ids.indexOf(id)
      // One step of the history for all that begin together.
      const isNext =
        change.thread !== undefined && columnsIn(location.search).some(({ thread }) => thread !== undefined)
      const options = { replace: isNext, isBounded: change.system !== undefined }
      return write((all) => all.map((spec, i) => (i === at ? { ...spec, ...change } : spec)), options)
    },
    [write],
  )
  const onState = useCallback((id: number, state: ColumnState) => {
    setStates((before) => new Map(before).set(id, state))
  }, [])
  const onStop = useCallback((id: number) => handles.get(id)?.stop(), [handles])
  const onRemove = useCallback(
    (id: number) => {
      const at = latest.current.ids.indexOf(id)
      remove(id)
      write((all) => all.filter((_, i) => i !== at))
    },
    [remove, write],
  )
  const onReturned = useCallback((messages: readonly Message[]) => composer.current?.give(messages), [])
  const onEdited = useCallback(
    (from: number, runId: string, asked: readonly Message[]) => {
      const { ids: all, states: known } = latest.current
      const answers = known.get(from)?.answers ?? []
      for (const id of all) {
        const same = id === from ? runId : sameRound(answers, runId, known.get(id)?.answers ?? [])
        if (same !== undefined) handles.get(id)?.again(same, asked)
      }
    },
    [handles],
  )

  function add(): void {
    write((all) => [...all, nextColumn(all, { agents: agents.map(({ id }) => id), canChange: reason === undefined })])
    requestAnimationFrame(() => box.current?.lastElementChild?.scrollIntoView({ inline: 'start', block: 'nearest' }))
  }

  const runs = shown.flatMap(({ label, state }) => {
    const last = state.answers.at(-1)
    return last === undefined ? [] : [{ name: label, runId: last.runId }]
  })
  return (
    <div className={css.room}>
      <h1 className="visually-hidden">Side by side</h1>
      <div className={css.bar}>
        <ColumnTabs
          box={box}
          columns={shown.map(({ name, state }) => ({ name, status: state.answers.at(-1)?.status }))}
        />
        <p className={css.hint}>{reason ?? 'One message for all. Each column keeps its own conversation.'}</p>
        <CompareRuns runs={runs} />
        <Button icon="columns" aria-label="Add a column" disabled={columns.length >= mostColumns} onClick={add}>
          <span className={css.wide}>Add a column</span>
        </Button>
        <Button
          icon="plus"
          aria-label="New"
          title="Clear all columns"
          disabled={columns.every(({ thread }) => thread === undefined)}
          onClick={() => write((all) => all.map((spec) => ({ ...spec, thread: undefined, run: undefined })))}
        >
          <span className={css.wide}>New</span>
        </Button>
      </div>
      <div ref={box} className={css.columns}>
        {shown.map(({ id, spec, label, state }, i) => (
          <Column
            key={id}
            id={id}
            n={i + 1}
            label={label}
            spec={spec}
            agents={agents}
            isActive={state.isActive}
            marks={marks}
            reason={reason}
            onSpec={onSpec}
            onState={onState}
            onStop={onStop}
            onRemove={columns.length > fewestColumns ? onRemove : undefined}
            onReturned={onReturned}
            onEdited={onEdited}
            handle={handles.refOf(id)}
          />
        ))}
      </div>
      <BesideComposer
        ref={composer}
        columns={columns.length}
        form={form}
        fault={fault}
        isRunning={shown.some(({ state }) => state.isActive)}
        steers={shown.some(({ state }) => state.steers)}
        onSend={(messages, values) => handles.all().forEach((handle) => handle.say(messages, values))}
        onStop={() => handles.all().forEach((handle) => handle.stop())}
      />
    </div>
  )
}

/** The same object while the same is in it, so that columns are not drawn anew. */
function useSame(marks: Marks): Marks {
  const text = JSON.stringify([...marks])
  return useMemo(() => new Map(JSON.parse(text) as [string, Mark[]][]), [text])
}

interface Handles {
  get(id: number): ColumnHandle | undefined
  all(): ColumnHandle[]
  /** The same function for the same column. */
  refOf(id: number): (handle: ColumnHandle | null) => void
}

function useHandles(): Handles {
  const [handles] = useState((): Handles => {
    const known = new Map<number, ColumnHandle>()
    const refs = new Map<number, (handle: ColumnHandle | null) => void>()
    return {
      get: (id) => known.get(id),
      all: () => [...known.values()],
      refOf(id) {
        const ref = refs.get(id) ?? ((handle) => void (handle === null ? known.delete(id) : known.set(id, handle)))
        refs.set(id, ref)
        return ref
      },
    }
  })
  return handles
}
