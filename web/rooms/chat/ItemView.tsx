/** One thing that a run has said or done. */
import { memo, useMemo, useState } from 'react'
import { Link } from 'wouter'
import { useSignedIn } from '../../data/server.ts'
import { Icon } from '../../kit/Icon.tsx'
import { duration } from '../../kit/format.ts'
import { Markdown } from '../../kit/Markdown.tsx'
import { OpenRequest } from '../../kit/OpenRequest.tsx'
import { SourceLink } from '../../../src/react/run-answer.tsx'
import { FileView } from './FileView.tsx'
import { ToolCard } from './ToolCard.tsx'
import { UserMessage } from './UserMessage.tsx'
import type { Item, QuestionItem, SaidItem, StepItem, TextItem } from './turn.ts'
import css from './chat.module.css'
import toolCss from './Tool.module.css'

export const ItemView = memo(function ItemView({
  item,
  runId,
  isLive,
}: {
  item: Item
  runId: string
  isLive: boolean
}) {
  switch (item.kind) {
    case 'text':
      return <Markdown text={item.text} isOpen={item.isOpen} />
    case 'reasoning':
      return <Reasoning item={item} isLive={isLive} />
    case 'tool':
      return (
        <ToolCard item={item} runId={runId} isLive={isLive}>
          {item.agent?.items.map((each) => (
            <ItemView key={each.key} item={each} runId={runId} isLive={isLive} />
          ))}
        </ToolCard>
      )
    case 'question':
      return <Question item={item} runId={runId} isLive={isLive} />
    case 'step':
      return <Step item={item} runId={runId} isLive={isLive} />
    case 'said':
      return <Said item={item} />
    case 'note':
      return <p className={css.note}>{item.text}</p>
    case 'file':
      return <FileView data={item.data} mediaType={item.mediaType} />
    case 'source':
      return (
        <p className={css.note}>
          Source: <SourceLink title={item.title} url={item.url} />
        </p>
      )
  }
})

/** A message between the steps: who sent it, and how long it waited. */
function Said({ item: { content, by, waitedMs, isDropped } }: { item: SaidItem }) {
  const asked = useMemo(() => [{ role: 'user' as const, content }], [content])
  const user = useSignedIn()
  const how = [
    // Only what somebody else has sent is news.
    by && by.id !== user?.id && `from ${by.name ?? by.id}`,
    waitedMs >= 1000 && `waited ${duration(waitedMs)}`,
    isDropped && 'not delivered: the run was stopped',
  ].filter(Boolean)
  return (
    <>
      <UserMessage asked={asked} />
      {how.length > 0 && <p className={css.how}>{how.join(', ')}</p>}
    </>
  )
}

function Reasoning({ item, isLive }: { item: TextItem; isLive: boolean }) {
  const [isOpen, setOpen] = useState(false)
  const isThinking = item.isOpen && isLive
  const words = isThinking
    ? 'Thinking…'
    : item.endedAt === undefined
      ? 'Thought'
      : `Thought for ${duration(item.endedAt - item.startedAt)}`
  return (
    <div className={css.reasoning}>
      <button type="button" className={css.toggle} aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        <Icon name={isOpen ? 'down' : 'right'} size={12} />
        {words}
      </button>
      {isOpen && <Markdown text={item.text} isOpen={item.isOpen} />}
    </div>
  )
}

function Step({ item, runId, isLive }: { item: StepItem; runId: string; isLive: boolean }) {
  const { name, stepType, path, error } = item
  const state = item.duration === undefined ? (isLive ? 'running…' : 'not finished') : duration(item.duration)
  return (
    <p className={css.step} data-state={error === undefined ? undefined : 'failed'}>
      <Link href={`/runs/${encodeURIComponent(runId)}?sel=${encodeURIComponent(path).replaceAll('%2F', '/')}`}>
        {name}
      </Link>
      <span>{stepType}</span>
      <span className="num">{error === undefined ? state : `${error.code} · ${state}`}</span>
    </p>
  )
}

function Question({ item, runId, isLive }: { item: QuestionItem; runId: string; isLive: boolean }) {
  const { request, response } = item.ask
  if (response === undefined && isLive) {
    return (
      <section className={toolCss.question} aria-label="A question for you">
        <OpenRequest key={request.requestId} request={request} runId={runId} />
      </section>
    )
  }
  const asked = ('message' in request ? request.message : undefined) ?? request.toolName ?? 'A question'
  return <p className={css.note}>{`${asked} — ${answered(response)}`}</p>
}

function answered(response: QuestionItem['ask']['response']): string {
  const answer = response?.answer
  if (answer === undefined) return 'not answered'
  if (answer.kind === 'approval') return answer.approved ? 'allowed' : 'denied'
  if (answer.kind === 'tool') return 'answered'
  return 'cancelled' in answer
    ? 'cancelled'
    : typeof answer.value === 'string'
      ? answer.value
      : JSON.stringify(answer.value)
}
