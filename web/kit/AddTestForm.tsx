/** Asks what a new test case is called and what it checks; then leads to it. */
import { useId, useState } from 'react'
import { Link } from 'wouter'
import { useResource } from '../data/resource.ts'
import { Button } from './Button.tsx'
import { ErrorNote } from './ErrorNote.tsx'
import { Skeleton } from './Skeleton.tsx'
import { addTest, readDraft, type NewTest, type TestDraft } from '../data/tests.ts'
import css from './AddTest.module.css'

interface Props {
  run: string
  onClose(): void
}

export default function AddTestForm({ run, onClose }: Props) {
  const { value, error, reload } = useResource(`test-draft ${run}`, (signal) => readDraft(run, signal))
  const [added, setAdded] = useState<string>()
  if (added !== undefined) {
    return (
      <div className={css.form}>
        <p role="status">The test is in its file, and is being run.</p>
        <div className={css.answer}>
          <Button onClick={onClose}>Close</Button>
          <Link className={css.link} href={`/tests/${encodeURIComponent(added)}`} data-autofocus>
            Open the test
          </Link>
        </div>
      </div>
    )
  }
  if (value !== undefined) return <Form run={run} draft={value} onAdded={setAdded} />
  return error === undefined ? <Skeleton rows={4} /> : <ErrorNote error={error} onRetry={reload} />
}

type Check = NewTest['answer']['is']

const checks: readonly [Check, string][] = [
  ['equals', 'Is exactly this'],
  ['contains', 'Contains this'],
  ['not', 'Does not contain this'],
  ['any', 'May be anything'],
]

function Form({ run, draft, onAdded }: { run: string; draft: TestDraft; onAdded(id: string): void }) {
  const field = useId()
  const [name, setName] = useState(draft.name)
  const [is, setIs] = useState<Check>('equals')
  const [text, setText] = useState(draft.answer)
  const [hasTools, setTools] = useState(true)
  const [isTrusted, setTrusted] = useState(false)
  const [state, setState] = useState<{ isBusy: boolean; error?: unknown }>({ isBusy: false })
  const { programs, tools } = draft
  const isReady = name.trim() !== '' && (is === 'any' || draft.answer === '' || text.trim() !== '')
  const add = async () => {
    if (!isReady || state.isBusy) return
    setState({ isBusy: true })
    const answer = { is, ...(is !== 'any' && text.trim() !== '' && { text }) }
    try {
      const { id } = await addTest({
        run,
        name: name.trim(),
        answer,
        tools: hasTools,
        ...(programs !== undefined && { trust: isTrusted }),
      })
      onAdded(id)
    } catch (error) {
      setState({ isBusy: false, error })
    }
  }
  return (
    <form
      className={css.form}
      onSubmit={(event) => {
        event.preventDefault()
        void add()
      }}
    >
      <label htmlFor={`${field}-name`}>Name</label>
      <input
        id={`${field}-name`}
        type="text"
        value={name}
        maxLength={200}
        autoComplete="off"
        onChange={(event) => setName(event.target.value)}
      />
      {draft.turns > 1 && (
        <p className={css.soft}>The {draft.turns - 1} runs of the conversation before it become its first turns.</p>
      )}
      {draft.answer !== '' && (
        <>
          <label htmlFor={`${field}-is`}>The answer</label>
          <select id={`${field}-is`} value={is} onChange={(event) => setIs(event.target.value as Check)}>
            {checks.map(([value, words]) => (
              <option key={value} value={value}>
                {words}
              </option>
            ))}
          </select>
          {is !== 'any' && (
            <textarea
              aria-label="Text"
              rows={5}
              value={text}
              maxLength={100_000}
              onChange={(event) => setText(event.target.value)}
            />
          )}
        </>
      )}
      {draft.hasOutput && (
        <label className={css.check}>
          <input type="checkbox" checked={is !== 'any'} onChange={() => setIs(is === 'any' ? 'equals' : 'any')} />
          The output must be the same
        </label>
      )}
      {draft.outcome !== 'completed' && <p className={css.soft}>The run must end as it did: {draft.outcome}.</p>}
      {tools.length > 0 && (
        <label className={css.check}>
          <input type="checkbox" checked={hasTools} onChange={() => setTools(!hasTools)} />
          <span>
            The same calls of tools: <code>{[...new Set(tools)].join(', ')}</code>
          </span>
        </label>
      )}
      {draft.ownPipeline === true && (
        <p className={css.soft}>
          This run had settings of its own. The test plays the agent’s file: save them there if they are to be tested.
        </p>
      )}
      {programs !== undefined && (
        <div className={css.programs}>
          <p>
            This run was recorded elsewhere, by another agent than the one here. A test plays the agent here with what
            the recording says, and starts nothing that the recording names.
          </p>
          {programs.length > 0 && (
            <ul>
              {programs.map((line) => (
                <li key={line}>
                  <code>{line}</code>
                </li>
              ))}
            </ul>
          )}
          <label className={css.check}>
            <input type="checkbox" checked={isTrusted} onChange={() => setTrusted(!isTrusted)} />
            Add it
          </label>
        </div>
      )}
      <p className={css.soft}>
        Its file: <code>{draft.file}</code>
      </p>
      {state.error !== undefined && <ErrorNote error={state.error} />}
      <div className={css.answer}>
        <Button
          look="primary"
          type="submit"
          disabled={!isReady || state.isBusy || (programs !== undefined && !isTrusted)}
        >
          Add
        </Button>
      </div>
    </form>
  )
}
