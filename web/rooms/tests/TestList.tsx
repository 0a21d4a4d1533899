/** All cases with their last results, by agent; they are run from here. */
import { useRef, useState } from 'react'
import { Link } from 'wouter'
import { useNarrow, useNow } from '../../data/media.ts'
import { useQuery } from '../../data/query.ts'
import { useResource } from '../../data/resource.ts'
import { useServer } from '../../data/server.ts'
import { Button } from '../../kit/Button.tsx'
import { Empty } from '../../kit/Empty.tsx'
import { ErrorNote } from '../../kit/ErrorNote.tsx'
import { SearchField } from '../../kit/SearchField.tsx'
import { Skeleton } from '../../kit/Skeleton.tsx'
import { NoTests } from './NoTests.tsx'
import { Progress } from './Progress.tsx'
import { RunOptions, toStart, useRunOptions } from './RunOptions.tsx'
import { readTests, type TestRow } from '../../data/tests.ts'
import { TestLine } from './TestLine.tsx'
import {
  filterTests,
  groupTests,
  isMarked,
  stateOf,
  testStates,
  type TestGroup,
  type TestMarked,
} from './tests-view.ts'
import { useMayTest } from '../../kit/use-may-test.ts'
import { useRowKeys } from '../../kit/use-row-keys.ts'
import { useTests } from './use-tests.ts'
import css from './Tests.module.css'

export function TestList() {
  const { facts } = useServer()
  const isCode = facts?.features?.tests === false
  const { value, error, reload } = useResource(facts === undefined || isCode ? undefined : 'tests', readTests)
  const progress = useTests(value?.run, reload)
  const query = useQuery()
  const now = useNow(10_000)
  const isNarrow = useNarrow()
  const mayRun = useMayTest()
  const [options, setOptions] = useRunOptions()
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set())
  const search = useRef<HTMLInputElement>(null)
  const toFirst = useRowKeys({ what: 'test', search })
  if (isCode) {
    return (
      <Empty title="There are no tests here.">
        Tests are kept in a folder beside the agents, but the agents of this program are in its code.
      </Empty>
    )
  }
  if (value === undefined)
    return error === undefined ? <Skeleton rows={8} /> : <ErrorNote error={error} onRetry={reload} />
  const { cases, faults } = value
  const state = testStates.find((each) => each === query.get('status'))
  const agent = query.get('agent')
  const shown = filterTests(cases, { q: query.get('q') ?? '', agent, state })
  const selected = shown.filter(({ id }) => chosen.has(id))
  const what = selected.length > 0 ? selected : shown
  const isAll = selected.length === 0 && shown.length === cases.length
  const { isRunning } = progress
  const run = (rows: readonly TestRow[]) =>
    progress.start({ ...toStart(options), ...(rows.length < cases.length && { ids: rows.map(({ id }) => id) }) })
  const toggle = (id: string) => {
    const next = new Set(chosen)
    if (!next.delete(id)) next.add(id)
    setChosen(next)
  }
  return (
    <div className={css.room}>
      <h1 className="visually-hidden">Tests</h1>
      {cases.length > 0 && (
        <search className={css.bar} aria-label="Tests">
          <SearchField
            value={query.get('q') ?? ''}
            label="Find in tests"
            onChange={(q) => query.set({ q }, { replace: true })}
            onDown={toFirst}
            ref={search}
          />
          <States cases={cases} state={state} onChange={(status) => query.set({ status })} />
          <Agents cases={cases} agent={agent} onChange={(next) => query.set({ agent: next })} />
          {mayRun && (
            <span className={css.run}>
              <RunOptions options={options} isDisabled={isRunning} onChange={setOptions} />
              <Button look="primary" icon="play" disabled={isRunning || what.length === 0} onClick={() => run(what)}>
                {selected.length > 0 ? `Run ${selected.length} chosen` : isAll ? 'Run all' : `Run these ${what.length}`}
              </Button>
            </span>
          )}
        </search>
      )}
      <Progress progress={progress} mayRun={mayRun} />
      {error !== undefined && <ErrorNote error={error} onRetry={reload} />}
      <div className={css.list}>
        {faults.length > 0 && <Faults faults={faults} />}
        {cases.length === 0 && faults.length === 0 && <NoTests mayAdd={mayRun} />}
        {cases.length > 0 && shown.length === 0 && (
          <Empty title="No test fits this filter.">
            <Button onClick={() => query.set({ q: undefined, agent: undefined, status: undefined })}>
              Show all tests
            </Button>
          </Empty>
        )}
        {groupTests(shown).map((group) => (
          <section key={group.agent} aria-label={`Tests of ${group.agent}`}>
            <GroupHead group={group}>
              {mayRun && !isNarrow && (
                <Button
                  disabled={isRunning}
                  aria-label={`Run the tests of ${group.agent}`}
                  onClick={() => run(group.rows)}
                >
                  Run
                </Button>
              )}
            </GroupHead>
            <ul>
              {group.rows.map((row) => (
                <TestLine
                  key={row.id}
                  row={row}
                  state={stateOf(row, progress.run)}
                  now={now}
                  isChosen={chosen.has(row.id)}
                  onChoose={mayRun ? () => toggle(row.id) : undefined}
                  onRun={mayRun && !isRunning ? () => run([row]) : undefined}
                />
              ))}
            </ul>
          </section>
        ))}
      </div>
    </div>
  )
}

function GroupHead({ group: { agent, passed, failed }, children }: { group: TestGroup; children: React.ReactNode }) {
  return (
    <div className={css.group}>
      <h2>
        <Link href={`/agents/${encodeURIComponent(agent)}`}>{agent}</Link>
      </h2>
      <span className={css.soft}>
        {passed} passed{failed > 0 && <b className={css.bad}>, {failed} failed</b>}
      </span>
      {children}
    </div>
  )
}

interface StatesProps {
  cases: readonly TestRow[]
  state: TestMarked | undefined
  onChange(state: TestMarked | undefined): void
}

function States({ cases, state, onChange }: StatesProps) {
  const count = (each: TestMarked) => cases.filter((row) => isMarked(row, each)).length
  // Few have one.
  const shown = testStates.filter((each) => each !== 'new answer' || each === state || count(each) > 0)
  return (
    <fieldset className={css.chips} aria-label="Status">
      {shown.map((each) => (
        <Button key={each} aria-pressed={state === each} onClick={() => onChange(state === each ? undefined : each)}>
          {each[0]!.toUpperCase() + each.slice(1)} <span className="num">{count(each)}</span>
        </Button>
      ))}
    </fieldset>
  )
}

interface AgentsProps {
  cases: readonly TestRow[]
  agent: string | undefined
  onChange(agent: string): void
}

function Agents({ cases, agent, onChange }: AgentsProps) {
  const names = [...new Set([...cases.map((row) => row.agent), ...(agent === undefined ? [] : [agent])])].toSorted()
  if (names.length < 2) return null
  return (
    <select
      aria-label="Agent"
      className={css.select}
      value={agent ?? ''}
      onChange={(event) => onChange(event.target.value)}
    >
      <option value="">All agents</option>
      {names.map((name) => (
        <option key={name}>{name}</option>
      ))}
    </select>
  )
}

function Faults({ faults }: { faults: readonly { file: string; message: string }[] }) {
  return (
    <section className={css.faults} aria-label="Files with mistakes">
      <h2>
        {faults.length} {faults.length === 1 ? 'file has mistakes' : 'files have mistakes'}
      </h2>
      <ul>
        {faults.map(({ file, message }) => (
          <li key={file}>
            <pre>{message}</pre>
          </li>
        ))}
      </ul>
    </section>
  )
}
