/** One case: what came of it last and what differed, what it checks, and its history. */
import { useState } from 'react'
import { Link } from 'wouter'
import { useNow } from '../../data/media.ts'
import { useResource } from '../../data/resource.ts'
import { Button } from '../../kit/Button.tsx'
import { Dialog } from '../../kit/Dialog.tsx'
import { ErrorNote } from '../../kit/ErrorNote.tsx'
import { cost, duration, moment } from '../../kit/format.ts'
import { Skeleton } from '../../kit/Skeleton.tsx'
import { since } from '../../kit/when.ts'
import { useTitle } from '../../shell/title.ts'
import { Difference } from './Difference.tsx'
import { History } from './History.tsx'
import { linesOf } from './expectations.ts'
import { Progress } from './Progress.tsx'
import { RunOptions, toStart, useRunOptions } from './RunOptions.tsx'
import { DeleteTest } from './DeleteTest.tsx'
import { RenameTest } from './RenameTest.tsx'
import { NewAnswers } from './NewAnswers.tsx'
import { readTest, type WholeTest } from '../../data/tests.ts'
import { TestMark } from './TestMark.tsx'
import { stateOf } from './tests-view.ts'
import { useMayTest } from '../../kit/use-may-test.ts'
import { useTests } from './use-tests.ts'
import css from './Tests.module.css'

export function TestPage({ id }: { id: string }) {
  const { value, error, reload } = useResource(`test ${id}`, (signal) => readTest(id, signal))
  const progress = useTests(value?.run, reload)
  const mayRun = useMayTest()
  const [options, setOptions] = useRunOptions()
  const [asked, setAsked] = useState<'rename' | 'delete'>()
  useTitle(value?.name)
  if (value === undefined)
    return error === undefined ? <Skeleton rows={8} /> : <ErrorNote error={error} onRetry={reload} />
  const { name, agent, file, line } = value
  const { isRunning } = progress
  return (
    <div className={css.room}>
      <header className={css.head}>
        <div className={css.title}>
          <h1>{name}</h1>
          <p>
            <Link href={`/agents/${encodeURIComponent(agent)}`}>{agent}</Link>{' '}
            <code>
              {file}:{line}
            </code>
          </p>
        </div>
        {mayRun && (
          <span className={css.run}>
            <RunOptions options={options} isDisabled={isRunning} onChange={setOptions} />
            <Button
              look="primary"
              icon="play"
              disabled={isRunning}
              onClick={() => progress.start({ ...toStart(options), ids: [id] })}
            >
              Run
            </Button>
            <Button disabled={isRunning} onClick={() => setAsked('rename')}>
              Rename
            </Button>
            <Button look="danger" disabled={isRunning} onClick={() => setAsked('delete')}>
              Delete
            </Button>
          </span>
        )}
      </header>
      {/* What came of it stands below. */}
      {(isRunning || progress.error !== undefined) && <Progress progress={progress} mayRun={mayRun} />}
      {error !== undefined && <ErrorNote error={error} onRetry={reload} />}
      <div className={css.body}>
        <Last test={value} isRunning={progress.run?.running.includes(id) === true}>
          {mayRun && (
            <NewAnswers
              test={value}
              isDisabled={isRunning}
              onAnswer={() => progress.start({ ids: [id] })}
              onChanged={reload}
            />
          )}
        </Last>
        <Checks test={value} />
        <History results={value.results} />
        <section aria-labelledby="test-file">
          <h2 id="test-file">Its text in {file}</h2>
          <pre className={css.yaml}>{value.text}</pre>
        </section>
      </div>
      <Dialog isOpen={asked === 'rename'} title="Rename this test" onClose={() => setAsked(undefined)}>
        <RenameTest test={value} onClose={() => setAsked(undefined)} onFailed={reload} />
      </Dialog>
      <Dialog isOpen={asked === 'delete'} title="Delete this test?" onClose={() => setAsked(undefined)}>
        <DeleteTest test={value} onClose={() => setAsked(undefined)} onFailed={reload} />
      </Dialog>
    </div>
  )
}

function Last({ test, isRunning, children }: { test: WholeTest; isRunning: boolean; children: React.ReactNode }) {
  const now = useNow(10_000)
  const { results, recordedRun, isRecorded } = test
  const [last] = results
  const state = stateOf(test, isRunning ? { running: [test.id] } : undefined)
  const tokens =
    last === undefined || last.tokens === 0 ? '' : `${last.tokens} tokens${last.isLive ? '' : ' (recorded)'}`
  const facts =
    last === undefined ? [] : [duration(last.duration), tokens, last.cost ? cost(last.cost) : '', last.model ?? '']
  return (
    <section aria-labelledby="test-last">
      <h2 id="test-last">Last result</h2>
      <p className={css.last} data-testid="last-result" data-state={state}>
        <TestMark state={state} />
        {last !== undefined && (
          <span className={css.soft}>
            <time dateTime={new Date(last.time).toISOString()} title={moment(last.time)}>
              {since(last.time, now)}
            </time>
            {facts.filter(Boolean).map((fact) => ` · ${fact}`)}
          </span>
        )}
        {last?.run !== undefined && last.isLive && <Link href={`/runs/${encodeURIComponent(last.run)}`}>Open run</Link>}
        {recordedRun !== undefined && (last?.isLive !== true || last.run !== recordedRun) && (
          <Link href={`/runs/${encodeURIComponent(recordedRun)}`}>Open the recorded run</Link>
        )}
      </p>
      {!isRecorded && <p className={css.warn}>There is no recording: ask the models once.</p>}
      {last !== undefined && last.warnings.length > 0 && (
        <ul className={css.warnings}>
          {last.warnings.map((warning) => (
            <li key={warning}>{warning}</li>
          ))}
        </ul>
      )}
      {last !== undefined && last.failures.length > 0 && (
        <ul className={css.failures}>
          {last.failures.map((failure, i) => (
            <Difference key={i} failure={failure} />
          ))}
        </ul>
      )}
      {children}
    </section>
  )
}

/** What the case says and expects, turn by turn. */
function Checks({ test: { cases, strict, tools } }: { test: WholeTest }) {
  return (
    <section aria-labelledby="test-checks">
      <h2 id="test-checks">What it checks</h2>
      <ol className={css.turns}>
        {cases.map(({ input, expect }, i) => (
          <li key={i}>
            <p className={css.asked}>{messageIn(input)}</p>
            <ul>
              {linesOf(expect).map(({ what, text }, at) => (
                <li key={at}>
                  {what} {text !== undefined && <code>{text}</code>}
                </li>
              ))}
            </ul>
          </li>
        ))}
      </ol>
      {strict && <p className={css.soft}>A changed prompt is a failure.</p>}
      {tools === 'live' && <p className={css.soft}>Its tools run; only the models are recorded.</p>}
    </section>
  )
}

function messageIn(input: Record<string, unknown>): string {
  const { messages, ...rest } = input
  const last: unknown = Array.isArray(messages) ? messages.at(-1) : undefined
  const content = (last as { content?: unknown } | undefined)?.content
  const words = typeof content === 'string' ? content : content === undefined ? '' : JSON.stringify(content)
  return [words, Object.keys(rest).length === 0 ? '' : JSON.stringify(rest)].filter(Boolean).join(' ')
}
