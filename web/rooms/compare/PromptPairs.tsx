/** What the models of both were told, call by call. */
import { useMemo, useState } from 'react'
import type { OutlineStep } from '../../../src/fold/outline-item.ts'
import { Button } from '../../kit/Button.tsx'
import { Empty } from '../../kit/Empty.tsx'
import { ErrorNote } from '../../kit/ErrorNote.tsx'
import { Skeleton } from '../../kit/Skeleton.tsx'
import type { Pair } from '../../kit/diff/align.ts'
import type { Compared } from './compared.ts'
import { differingNames, isSame, type PromptPart } from './prompt-parts.ts'
import { pairSteps } from './steps.ts'
import { Words } from './TextPair.tsx'
import { usePrompts } from './use-prompts.ts'
import css from './Compare.module.css'

const page = 200

export function PromptPairs({ steps, a, b }: Compared) {
  const pairs = useMemo(() => pairSteps(callsOf(steps.a), callsOf(steps.b)), [steps])
  if (pairs.length === 0) return <Empty title="Neither run has called a model." />
  // Of other runs, other prompts.
  return <Calls key={`${a.id} ${b.id} ${pairs.length}`} a={a.id} b={b.id} pairs={pairs} />
}

function Calls({ a, b, pairs }: { a: string; b: string; pairs: readonly Pair<OutlineStep>[] }) {
  const [most, setMost] = useState(page)
  const [asked, setAsked] = useState<ReadonlySet<number>>(new Set())
  /** What the reader has opened or closed. */
  const [chosen, setChosen] = useState<ReadonlyMap<number, boolean>>(new Map())
  const { parts, first, error } = usePrompts(a, b, pairs, asked)
  const toggle = (i: number, isOpen: boolean) => {
    setChosen((before) => new Map(before).set(i, isOpen))
    if (isOpen) setAsked((before) => new Set(before).add(i))
  }
  return (
    <>
      {error !== undefined && <ErrorNote error={error} />}
      <ol className={css.calls}>
        {pairs.slice(0, most).map((pair, i) => (
          <Call
            key={i}
            number={i + 1}
            pair={pair}
            parts={parts.get(i)}
            isOpen={chosen.get(i) ?? (i === first || pairs.length === 1)}
            onOpen={(isOpen) => toggle(i, isOpen)}
          />
        ))}
      </ol>
      {pairs.length > most && (
        <Button onClick={() => setMost(most + page)}>{pairs.length - most} more model calls</Button>
      )}
    </>
  )
}

interface CallProps {
  number: number
  pair: Pair<OutlineStep>
  parts: readonly PromptPart[] | undefined
  isOpen: boolean
  onOpen(isOpen: boolean): void
}

function Call({ number, pair: [x, y], parts, isOpen, onOpen }: CallProps) {
  const step = (x ?? y)!
  return (
    <li className={css.call} data-testid="prompt-pair">
      <h3>
        <button type="button" className={css.callHead} aria-expanded={isOpen} onClick={() => onOpen(!isOpen)}>
          <span aria-hidden="true">{isOpen ? '▾' : '▸'}</span>
          <span>
            Model call {number} <code>{step.path.replace(/^main\//u, '')}</code>
          </span>
          <span className={css.verdict}>{verdict(x, y, parts)}</span>
        </button>
      </h3>
      {isOpen && (parts === undefined ? <Skeleton rows={3} /> : <Parts parts={parts} />)}
    </li>
  )
}

function verdict(
  x: OutlineStep | undefined,
  y: OutlineStep | undefined,
  parts: readonly PromptPart[] | undefined,
): string {
  if (x === undefined) return 'only in B'
  if (y === undefined) return 'only in A'
  if (parts === undefined) return ''
  const names = differingNames(parts)
  if (names.length === 0) return 'the same'
  const shown = names.slice(0, mostNames).join(', ')
  const more = names.length - mostNames
  return more > 0 ? `differs in ${shown} and ${more} more` : `differs in ${shown}`
}

const mostNames = 4

/** What is the same in both is one line until somebody asks. */
function Parts({ parts }: { parts: readonly PromptPart[] }) {
  const same = parts.filter(isSame)
  const [showsSame, setShowSame] = useState(false)
  return (
    <div className={css.parts} data-testid="prompt-parts">
      {same.length > 0 && (
        <Button look="quiet" onClick={() => setShowSame(!showsSame)}>
          {`${showsSame ? 'Hide' : 'Show'} what is the same: ${namesOf(same)}`}
        </Button>
      )}
      {parts.map(
        (part, i) =>
          (showsSame || !isSame(part)) && (
            <section key={i} aria-label={part.name}>
              <h4>{part.name}</h4>
              <Words name={part.name} a={part.a} b={part.b} isCode={part.name.startsWith('tool ')} />
            </section>
          ),
      )}
    </div>
  )
}

/** `model, system, 3 messages, 2 tools` */
function namesOf(parts: readonly PromptPart[]): string {
  const isOther = (name: string) => ['model', 'settings', 'system'].includes(name)
  const names = [...new Set(parts.map(({ name }) => name).filter(isOther))]
  const tools = parts.filter(({ name }) => name.startsWith('tool ')).length
  const messages = parts.length - tools - parts.filter(({ name }) => isOther(name)).length
  if (messages > 0) names.push(messages === 1 ? '1 message' : `${messages} messages`)
  if (tools > 0) names.push(tools === 1 ? '1 tool' : `${tools} tools`)
  return names.join(', ')
}

function callsOf(steps: readonly OutlineStep[]): OutlineStep[] {
  return steps.filter(({ kind }) => kind === 'model-call')
}
