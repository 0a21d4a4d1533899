/** The columns, and what is below them: one message for all. */
import { useCallback, useEffect, useMemo, useRef, useState } from 'react'
import { useLocation, useSearch } from 'wouter'
import type { Message } from '../../../src/part/message.ts'
import type { AgentFacts } from '../../data/hooks.ts'
import { Button } from '../../kit/Button.tsx'
import { Empty } from '../../kit/Empty.tsx'
import { marksOf, sameRound } from './answer-facts.ts'
import { BesideComposer, type ComposerHandle } from './BesideComposer.tsx'
import { Column, type ColumnHandle, type ColumnState } from './Column.tsx'
import { ColumnHead } from './ColumnHead.tsx'
import { ColumnTabs } from './ColumnTabs.tsx'
import { besidePath, columnsIn, fewestColumns, mostColumns, nextColumn, type ColumnSpec } from './columns.ts'
import { CompareRuns } from './CompareRuns.tsx'
import { sharedForm } from './shared-form.ts'
import { useColumnIds } from './use-column-ids.ts'
import css from './beside.module.css'

const nothing: ColumnState = { answers: [], isBusy: false, isActive: false, steers: false }

export function Beside({ agents, canChange }: { agents: readonly AgentFacts[]; canChange: boolean }) {
  const search = useSearch()
  const [, navigate] = useLocation()
  const columns = useMemo(() => columnsIn(search), [search])
  const { ids, remove } = useColumnIds(columns.length)
  const [states, setStates] = useState<ReadonlyMap<number, ColumnState>>(new Map())
  const handles = useRef(new Map<number, ColumnHandle>())
  const composer = useRef<ComposerHandle>(null)
  const box = useRef<HTMLDivElement>(null)
  const latest = useRef({ ids, states })
  useEffect(() => {
    latest.current = { ids, states }
  })

  const marks = useMemo(() => marksOf(ids.map((id) => states.get(id) ?? nothing)), [ids, states])
  const shown = ids.map((id, i) => {
    const spec = columns[i]!
    const agent = agents.find((each) => each.id === spec.agent)
    const { name = spec.agent } = agent ?? {}
    return { id, spec, agent, name, label: `${i + 1} ${name}`, state: states.get(id) ?? nothing }
  })
  const form = sharedForm(shown.flatMap(({ agent }) => agent ?? []))

  const write = useCallback(
    (change: (columns: ColumnSpec[]) => ColumnSpec[], replace = false) =>
      navigate(besidePath(change(columnsIn(location.search)), location.search), { replace }),
    [navigate],
  )
  const onSpec = useCallback(
    (id: number, change: Partial<ColumnSpec>) => {
      const at = latest.current.ids.indexOf(id)
      // One step of the history for all that begin together.
      const isNext =
        change.thread !== undefined && columnsIn(location.search).some(({ thread }) => thread !== undefined)
      write((all) => all.map((spec, i) => (i === at ? { ...spec, ...change } : spec)), isNext)
    },
    [write],
  )
  const onState = useCallback((id: number, state: ColumnState) => {
    setStates((before) => new Map(before).set(id, state))
  }, [])
  const onReturned = useCallback((messages: readonly Message[]) => composer.current?.give(messages), [])
  const onEdited = useCallback((from: number, runId: string, asked: readonly Message[]) => {
    const { ids: all, states: known } = latest.current
    const answers = known.get(from)?.answers ?? []
    for (const id of all) {
      const same = id === from ? runId : sameRound(answers, runId, known.get(id)?.answers ?? [])
      if (same !== undefined) handles.current.get(id)?.again(same, asked)
    }
  }, [])

  function add(): void {
    write((all) => [...all, nextColumn(all, { agents: agents.map(({ id }) => id), canChange })])
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
        <span className={css.space} />
        <CompareRuns runs={runs} />
        <Button icon="columns" aria-label="Add a column" disabled={columns.length >= mostColumns} onClick={add}>
          <span className={css.wide}>Add a column</span>
        </Button>
        <Button
          icon="plus"
          aria-label="New"
          title="Empty all columns"
          disabled={columns.every(({ thread }) => thread === undefined)}
          onClick={() => write((all) => all.map((spec) => ({ ...spec, thread: undefined, run: undefined })))}
        >
          <span className={css.wide}>New</span>
        </Button>
      </div>
      <div ref={box} className={css.columns}>
        {shown.map(({ id, spec, agent, name, label, state }, i) => (
          <section key={id} className={css.column} aria-label={label} data-testid="column">
            <ColumnHead
              n={i + 1}
              spec={spec}
              agents={agents}
              isActive={state.isActive}
              onSpec={(change) => onSpec(id, change)}
              onStop={() => handles.current.get(id)?.stop()}
              onRemove={
                columns.length > fewestColumns
                  ? () => {
                      remove(i)
                      write((all) => all.filter((_, at) => at !== i))
                    }
                  : undefined
              }
            />
            {agent === undefined ? (
              <Empty title={`There is no agent ${name}.`}>Choose another one.</Empty>
            ) : (
              <Column
                key={agent.id}
                ref={(handle) => void (handle === null ? handles.current.delete(id) : handles.current.set(id, handle))}
                id={id}
                label={label}
                spec={spec}
                agent={agent}
                marks={marks}
                onSpec={onSpec}
                onState={onState}
                onReturned={onReturned}
                onEdited={onEdited}
              />
            )}
          </section>
        ))}
      </div>
      <BesideComposer
        ref={composer}
        columns={columns.length}
        form={form}
        isRunning={shown.some(({ state }) => state.isActive)}
        steers={shown.some(({ state }) => state.steers)}
        onSend={(messages, values) => {
          for (const handle of handles.current.values()) handle.say(messages, values)
        }}
        onStop={() => {
          for (const handle of handles.current.values()) handle.stop()
        }}
      />
    </div>
  )
}
