/** What runs ask people: one line that opens, a few rows, then all of them. Each is answered in its place. */
import { useEffect, useState, type RefObject } from 'react'
import { Link } from 'wouter'
import { messageOf } from '../../../src/part/error.ts'
import { client } from '../../data/client.ts'
import { mayAnswer, useSeesOthers, useSignedIn, useThreadName } from '../../data/server.ts'
import { Button } from '../../kit/Button.tsx'
import { useEdited } from '../../kit/edited-requests.ts'
import { Icon } from '../../kit/Icon.tsx'
import { Owner } from '../../kit/Owner.tsx'
import { OpenRequest } from '../../kit/OpenRequest.tsx'
import { Skeleton } from '../../kit/Skeleton.tsx'
import { keyOf, type UsedWaiting, type WaitingRun } from './useWaiting.ts'
import css from './WaitsForYou.module.css'

/** `few`: the first ones. */
export type Fold = 'off' | 'few' | 'all'

interface Props {
  used: UsedWaiting
  fold: Fold
  onFold(fold: Fold): void
  /** Whether the first question gets the focus as soon as it is here. */
  wantsFocusRef: RefObject<boolean>
}

const few = 3

export function WaitsForYou({ used, fold, onFold, wantsFocusRef }: Props) {
  const { count, isCut, waiting, tidy } = used
  const isOpen = fold !== 'off'
  const shown = fold === 'all' ? waiting : waiting.slice(0, few)
  const deciding = useDeciding(waiting)
  // A user's runs may wait for an operator.
  const isOwn = useSignedIn()?.role === 'user'
  const { chosen } = deciding
  useEffect(() => {
    if (!wantsFocusRef.current || !isOpen || waiting.length === 0) return
    wantsFocusRef.current = false
    focusFirst()
  }, [isOpen, waiting, wantsFocusRef])
  if (count === 0 && waiting.length === 0) return null
  const isSelecting = isOpen && chosen !== undefined
  return (
    <section className={css.box} aria-label={isOwn ? 'Runs that wait' : 'Waits for you'}>
      <div className={css.head}>
        <h2>
          <button
            type="button"
            className={css.fold}
            aria-expanded={isOpen}
            onClick={() => onFold(isOpen ? 'off' : 'few')}
          >
            <Icon name={isOpen ? 'down' : 'right'} size={12} />
            {wordsOf(count, isCut, isOwn)}
          </button>
        </h2>
        {isOpen && !isSelecting && waiting.some(({ isDone }) => isDone) && (
          <Button look="quiet" onClick={tidy}>
            Clear answered
          </Button>
        )}
        {isOpen && !isSelecting && deciding.possible.length > 1 && (
          <Button
            look="quiet"
            onClick={() => {
              onFold('all')
              deciding.choose(new Set())
            }}
          >
            Select
          </Button>
        )}
        {isSelecting && <Selection {...deciding} chosen={chosen} />}
      </div>
      {isOpen && waiting.length === 0 && <Skeleton rows={Math.min(few, count)} />}
      {isOpen && (
        <ul>
          {shown.map((each) => (
            <Item key={keyOf(each)} {...each} deciding={isSelecting ? deciding : undefined} told={deciding.told} />
          ))}
        </ul>
      )}
      {isOpen && waiting.length > shown.length && (
        <Button look="quiet" className={css.more!} onClick={() => onFold('all')}>
          {`Show all ${waiting.length}${waiting.length === count ? '' : ' requests'}`}
        </Button>
      )}
    </section>
  )
}

export function focusFirst(): void {
  document.querySelector<HTMLElement>('[data-question] [data-first]')?.focus()
}

function wordsOf(count: number, isCut: boolean, isOwn: boolean): string {
  if (count === 0) return isOwn ? 'No run waits' : 'Nothing waits for you'
  const shown = isCut ? `At least ${count}` : `${count}`
  if (isOwn) return count === 1 ? `${shown} run waits` : `${shown} runs wait`
  return `${shown} ${count === 1 ? 'waits' : 'wait'} for you`
}

interface ItemProps extends WaitingRun {
  /** While some are chosen. */
  deciding: Deciding | undefined
  told: ReadonlyMap<string, Told>
}

function Item({ run, request, isDone, deciding, told }: ItemProps) {
  const key = keyOf({ run, request })
  const nameOf = useThreadName()
  const isForOthers = useSeesOthers()
  const { outcome = isDone ? 'No longer waits' : undefined, fault } = told.get(key) ?? {}
  const isChosen = deciding?.chosen?.has(key) === true
  const canDecide = deciding?.possible.includes(key) === true
  return (
    <li data-question data-done={outcome !== undefined || undefined}>
      <OpenRequest
        runId={run.id}
        request={request}
        isRow
        outcome={outcome}
        fault={fault}
        mark={
          canDecide && (
            <input
              type="checkbox"
              checked={isChosen}
              aria-label={`Select ${request.toolName}, ${run.title ?? run.id}`}
              onChange={() => deciding.toggle(key)}
            />
          )
        }
        about={
          <>
            {run.agent}
            {' · '}
            {isForOthers && run.owner !== undefined && (
              <>
                <Owner owner={run.owner} tenant={run.tenant} />
                {' · '}
              </>
            )}
            <Link href={`/runs/${encodeURIComponent(run.id)}`} title="The run">
              {run.title === undefined ? run.id : `“${run.title}”`}
            </Link>
            <span className={css.thread}>
              {' · '}
              <Link href={`/threads/${encodeURIComponent(run.threadId)}`} title={`Thread ${nameOf(run.threadId).name}`}>
                thread
              </Link>
            </span>
          </>
        }
      />
    </li>
  )
}

interface Told {
  outcome?: string
  fault?: string
}

interface Deciding {
  /** The requests that are chosen. Absent: none can be chosen now. */
  chosen: ReadonlySet<string> | undefined
  /** The approvals that are open. */
  possible: readonly string[]
  told: ReadonlyMap<string, Told>
  choose(chosen: ReadonlySet<string> | undefined): void
  toggle(key: string): void
  decide(approved: boolean): void
}

/** Several approvals are decided at once. */
function useDeciding(waiting: readonly WaitingRun[]): Deciding {
  const [chosen, choose] = useState<ReadonlySet<string>>()
  const [told, setTold] = useState<ReadonlyMap<string, Told>>(new Map())
  const user = useSignedIn()
  const edited = useEdited()
  // What is being changed is decided for itself.
  const open = waiting.filter(
    ({ isDone, request }) =>
      !isDone && request.kind === 'approval' && mayAnswer(user, request) && !edited.has(request.requestId),
  )
  const possible = open.map(keyOf).filter((key) => told.get(key)?.outcome === undefined)
  const tell = (key: string, next: Told) => setTold((before) => new Map([...before, [key, next]]))
  return {
    chosen,
    possible,
    told,
    choose,
    toggle(key) {
      const next = new Set(chosen)
      if (!next.delete(key)) next.add(key)
      choose(next)
    },
    decide(approved) {
      for (const each of open) {
        const key = keyOf(each)
        if (chosen?.has(key) !== true) continue
        client()
          .answer(each.run.id, each.request.requestId, { approved })
          .then(() => tell(key, { outcome: approved ? 'Allowed' : 'Denied' }))
          .catch((error: unknown) => tell(key, { fault: messageOf(error) }))
      }
      choose(undefined)
    },
  }
}

function Selection({ chosen, possible, choose, decide }: Deciding & { chosen: ReadonlySet<string> }) {
  const count = possible.filter((key) => chosen.has(key)).length
  return (
    <>
      <Button look="quiet" onClick={() => choose(new Set(count < possible.length ? possible : []))}>
        {count < possible.length ? 'Select all' : 'Select none'}
      </Button>
      <Button look="danger" disabled={count === 0} onClick={() => decide(false)}>
        {`Deny selected (${count})`}
      </Button>
      <Button disabled={count === 0} onClick={() => decide(true)}>
        {`Allow selected (${count})`}
      </Button>
      <Button look="quiet" onClick={() => choose(undefined)}>
        Cancel
      </Button>
    </>
  )
}
