/** One turn: the question, and the answer as it grows. */
import { memo, type ReactNode } from 'react'
import { Link } from 'wouter'
import type { Message } from '../../../src/part/message.ts'
import { Button } from '../../kit/Button.tsx'
import { Copy } from '../../kit/Copy.tsx'
import { ErrorNote } from '../../kit/ErrorNote.tsx'
import { DecideAll } from '../../kit/DecideAll.tsx'
import { cost, duration, moment, tokens, tokenSides } from '../../kit/format.ts'
import type { IconName } from '../../kit/Icon.tsx'
import { JsonTree } from '../../kit/JsonTree.tsx'
import { Verdict } from '../../kit/Verdict.tsx'
import { useAddTest } from '../../kit/AddTest.tsx'
import { Menu } from '../../kit/Menu.tsx'
import { useNarrow } from '../../data/media.ts'
import { ItemView } from './ItemView.tsx'
import type { ShownTurn } from './use-chat.ts'
import { answerText, isActive, openRequests, type ChatTurn } from './turn.ts'
import { UserMessage } from './UserMessage.tsx'
import css from './chat.module.css'

export interface TurnActions {
  /** Asks the same again, or what the reader has made of it. Absent: this server cannot. */
  again: ((turn: ChatTurn, asked?: readonly Message[]) => void) | undefined
  choose(runId: string): void
  /** What an answer took, in the place of one line. */
  facts?: ((turn: ChatTurn) => ReactNode) | undefined
}

interface Props {
  shown: ShownTurn
  actions: TurnActions
  isLast: boolean
}

export const TurnView = memo(function TurnView({ shown, actions, isLast }: Props) {
  const { turn, siblings } = shown
  const { again } = actions
  const isLive = isActive(turn)
  return (
    <article className={css.turn} data-last={isLast || undefined} data-run={turn.runId}>
      <UserMessage
        asked={turn.asked}
        values={turn.input}
        onEdit={again === undefined || isLive ? undefined : (asked) => again(turn, asked)}
      />
      <div
        className={css.answer}
        data-testid="assistant-message"
        data-status={turn.status}
        aria-busy={turn.status === 'running'}
      >
        {turn.items.map((item) => (
          <ItemView key={item.key} item={item} runId={turn.runId} isLive={isLive} />
        ))}
        {isLive && <DecideAll runId={turn.runId} requests={openRequests(turn.items)} />}
        <Output turn={turn} />
        {turn.status === 'running' && !isGrowing(turn) && <p className={css.waits}>Waiting for the model…</p>}
        <End turn={turn} onRetry={again === undefined || !isLast ? undefined : () => again(turn)} />
      </div>
      {actions.facts?.(turn)}
      <footer className={css.foot}>
        {siblings.length > 1 && <Branches shown={shown} choose={actions.choose} />}
        {actions.facts === undefined && <Facts turn={turn} />}
        <span className={css.tools}>
          {answerText(turn) !== '' && <Copy text={() => answerText(turn)} label="Copy answer" />}
          {!isLive && <Verdict run={turn.runId} />}
          {!isLive && <MoreOf run={turn.runId} onAgain={again && (() => again(turn))} />}
        </span>
      </footer>
    </article>
  )
})

/** On a phone in a menu, with words. */
function MoreOf({ run, onAgain }: { run: string; onAgain: (() => void) | undefined }) {
  const isPhone = useNarrow()
  const { open, dialog } = useAddTest(run)
  const action = (icon: IconName, word: string, act: (() => void) | undefined) =>
    act !== undefined && (
      <Button look="quiet" icon={icon} aria-label={word} onClick={act}>
        {isPhone ? word : undefined}
      </Button>
    )
  const actions = (
    <>
      {action('tests', 'Add as test', open)}
      {action('retry', 'Answer again', onAgain)}
    </>
  )
  const isEmpty = open === undefined && onAgain === undefined
  return (
    <>
      {isPhone && !isEmpty ? (
        <Menu look="quiet" label="More about this answer">
          {actions}
        </Menu>
      ) : (
        actions
      )}
      {dialog}
    </>
  )
}

/** What a run without an answer in words returns. */
function Output({ turn }: { turn: ChatTurn }) {
  const { output, items } = turn
  if (output === undefined || items.some(({ kind }) => kind === 'text')) return null
  return <JsonTree value={output} depth={3} />
}

function isGrowing({ items }: ChatTurn): boolean {
  const last = items.at(-1)
  if (last === undefined) return false
  if (last.kind === 'text' || last.kind === 'reasoning') return last.isOpen && last.text !== ''
  return last.kind === 'tool' && (last.isInputOpen || (last.startedAt !== undefined && last.endedAt === undefined))
}

function End({ turn, onRetry }: { turn: ChatTurn; onRetry: (() => void) | undefined }) {
  const { status, error } = turn
  if (status === 'running' || status === 'suspended' || status === 'completed') return null
  if (status === 'aborted') return <p className={css.waits}>Stopped.</p>
  const told = error ?? { message: 'The run ended early.', code: status }
  return <ErrorNote error={told} onRetry={onRetry} at={turn.endedAt} isFlush />
}

function Branches({ shown, choose }: { shown: ShownTurn; choose(runId: string): void }) {
  const { siblings, runId } = shown
  const at = siblings.indexOf(runId)
  return (
    <span className={css.branches}>
      <Button
        look="quiet"
        icon="left"
        aria-label="Earlier version"
        disabled={at === 0}
        onClick={() => choose(siblings[at - 1]!)}
      />
      <span className="num">{`${at + 1}/${siblings.length}`}</span>
      <Button
        look="quiet"
        icon="right"
        aria-label="Later version"
        disabled={at === siblings.length - 1}
        onClick={() => choose(siblings[at + 1]!)}
      />
    </span>
  )
}

/** `0.4 s · first token 16 ms · 46 tokens · $0.0003 · Open run ↗` */
function Facts({ turn }: { turn: ChatTurn }) {
  const { startedAt, firstTokenAt, workedMs, usage } = turn
  const first = turn.firstTokenMs ?? (firstTokenAt === undefined ? undefined : firstTokenAt - startedAt)
  const all = usage?.totalTokens ?? 0
  const facts: [words: string, title: string][] = []
  if (workedMs !== undefined)
    facts.push([duration(workedMs), `Time of the whole answer, which began ${moment(startedAt)}`])
  if (first !== undefined) facts.push([`first token ${duration(first)}`, 'Time until the first word came'])
  if (all > 0) {
    facts.push([`${tokens(usage)} ${all === 1 ? 'token' : 'tokens'}`, tokenSides(usage ?? {})])
  }
  if (turn.cost !== undefined && all > 0) facts.push([cost(turn.cost), 'Cost of its model calls'])
  if (turn.yaml !== undefined)
    facts.push(['changed agent', 'It ran with the settings of this chat, not with those of the agent’s file'])
  return (
    <span className={css.facts}>
      {facts.map(([words, title]) => (
        <span key={title} title={title}>
          {words} ·{' '}
        </span>
      ))}
      <Link href={`/runs/${encodeURIComponent(turn.runId)}`}>
        Open run <span aria-hidden="true">↗</span>
      </Link>
    </span>
  )
}
