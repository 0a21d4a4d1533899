/** The turns of a chat, what is being sent, and the end of it in view. */
import { useLayoutEffect, useRef, type ReactNode } from 'react'
import { Button } from '../../kit/Button.tsx'
import { ErrorCard, ErrorNote } from '../../kit/ErrorNote.tsx'
import { explain } from '../../kit/error-words.ts'
import { Skeleton } from '../../kit/Skeleton.tsx'
import { statusWord } from '../../kit/status-words.ts'
import { TurnView, type TurnActions } from './TurnView.tsx'
import type { Chat, SentMessage } from './use-chat.ts'
import type { Follow } from './use-follow.ts'
import { UserMessage } from './UserMessage.tsx'
import css from './chat.module.css'

interface Props {
  chat: Chat
  follow: Follow
  actions: TurnActions
  /** Shown when there are no turns. */
  welcome: ReactNode
  /** Whose conversation it is, if others stand beside it, which are asked the same. */
  of?: string
}

export function Conversation({ chat, follow, actions, welcome, of }: Props) {
  const { thread, turns, sent } = chat
  const { box, content, hasNew, toEnd } = follow
  useKeptPlace(follow, turns[0]?.runId)
  const isEmpty = turns.length === 0 && sent.length === 0
  return (
    <div className={css.scroll}>
      <div
        ref={box}
        className={css.box}
        // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex
        tabIndex={0}
        role="log"
        aria-label={of === undefined ? 'Conversation' : `Conversation of ${of}`}
        aria-live="off"
      >
        <div ref={content} className={css.content}>
          {thread.hasEarlier && (
            <div className={css.earlier}>
              <Button onClick={() => chat.loadEarlier()}>Earlier turns</Button>
            </div>
          )}
          {isEmpty && (thread.isLoading ? <Skeleton rows={5} /> : thread.error === undefined && welcome)}
          {turns.map((shown, i) => (
            <TurnView key={shown.runId} shown={shown} actions={actions} isLast={i === turns.length - 1} />
          ))}
          {sent.map((each) => (
            <SentView key={each.key} sent={each} chat={chat} isShared={of !== undefined} />
          ))}
          {thread.error !== undefined && <ErrorNote error={thread.error} onRetry={() => chat.reload()} isFlush />}
        </div>
      </div>
      {hasNew && (
        <Button icon="down" className={css.new!} onClick={toEnd}>
          New
        </Button>
      )}
      <Announcer chat={chat} of={of} />
    </div>
  )
}

function SentView({ sent, chat, isShared }: { sent: SentMessage; chat: Chat; isShared: boolean }) {
  return (
    <article className={css.turn} data-last>
      <UserMessage asked={sent.asked} />
      {sent.error !== undefined ? (
        <NotSent
          error={sent.error}
          onAgain={() => chat.retry(sent)}
          // Others have it already.
          onEdit={isShared ? undefined : () => chat.edit(sent)}
          onDrop={() => chat.drop(sent)}
        />
      ) : sent.waits === undefined ? (
        <p className={css.waits}>{sent.runId === undefined ? 'Sending…' : 'Waiting for its turn…'}</p>
      ) : (
        <Waiting sent={sent} onTakeBack={() => chat.takeBack(sent)} />
      )}
    </article>
  )
}

/** It is for a run that goes on, and can be taken back until its model was told. */
function Waiting({ sent: { waits, by, fault }, onTakeBack }: { sent: SentMessage; onTakeBack(): void }) {
  const when = waits === 'queue' ? 'Waiting for its turn…' : 'Waiting for the next call of the model…'
  return (
    <div className={css.waiting}>
      <p className={css.waits}>{by === undefined || by.id === '' ? when : `From ${by.name ?? by.id}. ${when}`}</p>
      <Button look="quiet" icon="close" onClick={onTakeBack}>
        Take back
      </Button>
      {fault !== undefined && <p role="alert">Not taken back: {fault}</p>}
    </div>
  )
}

interface NotSentProps {
  error: unknown
  onAgain(): void
  onEdit: (() => void) | undefined
  onDrop(): void
}

function NotSent({ error, onAgain, onEdit, onDrop }: NotSentProps) {
  const { title, detail, code, canRetry } = explain(error)
  const why = title === undefined ? '' : `: ${title[0]!.toLowerCase()}${title.slice(1)}`
  return (
    <ErrorCard title={`Not sent${why}.`} detail={detail} code={code} isFlush>
      {canRetry && (
        <Button icon="retry" onClick={onAgain}>
          Send again
        </Button>
      )}
      {onEdit && <Button onClick={onEdit}>Edit</Button>}
      <Button onClick={onDrop}>Discard</Button>
    </ErrorCard>
  )
}

/** Tells those who hear the page when an answer begins and ends, instead of each word of it. */
function Announcer({ chat, of }: { chat: Chat; of: string | undefined }) {
  const last = chat.turns.at(-1)?.turn
  const words =
    last === undefined
      ? ''
      : last.status === 'running'
        ? 'The answer is being written.'
        : last.status === 'suspended'
          ? 'The run is waiting for you.'
          : `The answer is ${statusWord(last.status)}.`
  return <output className="visually-hidden">{words !== '' && of !== undefined ? `${of}: ${words}` : words}</output>
}

/** Turns that come in above do not move what is read. */
function useKeptPlace({ box }: Follow, first: string | undefined): void {
  const before = useRef<{ first: string | undefined; fromEnd: number }>(undefined)
  useLayoutEffect(() => {
    const element = box.current!
    const { current } = before
    if (current?.first !== undefined && current.first !== first && element.scrollTop < 40) {
      element.scrollTo({ top: element.scrollHeight - current.fromEnd })
    }
    return () => {
      before.current = { first, fromEnd: element.scrollHeight - element.scrollTop }
    }
  }, [box, first])
}
