/** A new answer of the models: what would change, and the choice to accept it. */
import { useMemo, useState } from 'react'
import { Link } from 'wouter'
import { changeTest, type Said, type TestChange, type WholeTest } from '../../data/tests.ts'
import { Button } from '../../kit/Button.tsx'
import { Dialog } from '../../kit/Dialog.tsx'
import { DiffText } from '../../kit/diff/DiffText.tsx'
import { diffWords } from '../../kit/diff/words.ts'
import { ErrorNote } from '../../kit/ErrorNote.tsx'
import { notice } from '../../kit/notice.ts'
import { labelOf, linesOfTools } from './new-answer.ts'
import css from './Tests.module.css'

interface Props {
  test: WholeTest
  isDisabled: boolean
  /** Another answer counts now. */
  onAnswer(): void
  /** The case is another one now, or what was asked could not be done. */
  onChanged(): void
}

export function NewAnswers({ test, isDisabled, onAnswer, onChanged }: Props) {
  const [open, setOpen] = useState<string>()
  const [fault, setFault] = useState<unknown>()
  const [isBusy, setBusy] = useState(false)
  const { id, etag, changes, canUndo } = test
  const change = async (how: 'accept' | 'discard' | 'undo', model?: string) => {
    setBusy(true)
    setFault(undefined)
    try {
      await changeTest(id, how, { etag, ...(model !== undefined && { model }) })
      notice(done[how])
      setOpen(undefined)
      if (how !== 'discard') onAnswer()
      onChanged()
    } catch (error) {
      setFault(error)
      onChanged()
    } finally {
      setBusy(false)
    }
  }
  const shown = changes.find((each) => keyOf(each) === open)
  return (
    <>
      {changes.map((each) => (
        <p key={keyOf(each)} className={css.accept}>
          <span>
            {each.isNew === true
              ? `${each.model ?? 'The models'} gave a new answer. The old one counts until you accept it.`
              : 'The recording has another answer than the case expects.'}
          </span>
          <Button disabled={isDisabled} onClick={() => setOpen(keyOf(each))}>
            See what changes
          </Button>
        </p>
      ))}
      {canUndo && (
        <p className={css.accept}>
          <span>A new answer was accepted.</span>
          <Button disabled={isDisabled || isBusy} onClick={() => void change('undo')}>
            Undo
          </Button>
        </p>
      )}
      {open === undefined && fault !== undefined && <ErrorNote error={fault} isFlush />}
      <Dialog
        isOpen={shown !== undefined}
        title="Accept the new answer?"
        className={css.wide!}
        onClose={() => setOpen(undefined)}
      >
        {shown !== undefined && (
          <div className={css.form}>
            <Changes change={shown} turns={test.turns} />
            {fault !== undefined && <ErrorNote error={fault} isFlush />}
            <div className={css.answer}>
              {shown.isNew === true && (
                <Button look="danger" disabled={isBusy} onClick={() => void change('discard', shown.model)}>
                  Discard it
                </Button>
              )}
              <Button look="primary" icon="check" disabled={isBusy} onClick={() => void change('accept', shown.model)}>
                Accept
              </Button>
            </div>
          </div>
        )}
      </Dialog>
    </>
  )
}

const done = { accept: 'Accepted', discard: 'Discarded', undo: 'The old answer is back' } as const

const keyOf = ({ model }: TestChange) => `model ${model ?? ''}`

function Changes({ change: { runs, run, expects, isNew }, turns }: { change: TestChange; turns: number }) {
  return (
    <>
      {runs.map((each) => (
        <section key={labelOf(each, 2)}>
          {labelOf(each, turns) !== '' && <h3>{labelOf(each, turns)}</h3>}
          <SideBySide before={each.before?.answer} after={each.after.answer} titles={['Answer so far', 'New answer']} />
          <Tools before={each.before} after={each.after} />
        </section>
      ))}
      <p className={css.soft}>
        {[
          isNew === true ? 'The new recording answers for the models from now on.' : '',
          expects === undefined ? '' : 'The case expects exactly the new answer.',
          'You can undo it once.',
        ].join(' ')}{' '}
        {run !== undefined && <Link href={`/runs/${encodeURIComponent(run)}`}>Open run</Link>}
      </p>
    </>
  )
}

function Tools({ before, after }: { before: Said | undefined; after: Said }) {
  const [a, b] = [linesOfTools(before), linesOfTools(after)]
  if (a === b) return a === '' ? null : <p className={css.soft}>The calls of tools are the same.</p>
  return <SideBySide before={a} after={b} titles={['Tools so far', 'New tools']} />
}

function SideBySide({
  before = '',
  after,
  titles,
}: {
  before?: string | undefined
  after: string
  titles: [string, string]
}) {
  const pieces = useMemo(() => diffWords(before, after), [before, after])
  if (before === after) return <p className={css.soft}>The answer is the same.</p>
  return (
    <div className={css.pair}>
      {(['a', 'b'] as const).map((own, i) => (
        <section key={own} className={css.side} aria-label={titles[i]}>
          <h3>{titles[i]}</h3>
          <div className={css.text}>
            <DiffText pieces={pieces} own={own} />
          </div>
        </section>
      ))}
    </div>
  )
}
