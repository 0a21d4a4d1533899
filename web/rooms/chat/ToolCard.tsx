/** A tool call: its arguments as they stream, its result, how long it took; and what it waits for. */
import { memo, useState, type ReactNode } from 'react'
import { mayAnswer, useSignedIn } from '../../data/server.ts'
import { Icon } from '../../kit/Icon.tsx'
import { JsonTree } from '../../kit/JsonTree.tsx'
import { OpenRequest } from '../../kit/OpenRequest.tsx'
import { answerWords } from '../../kit/answer-words.ts'
import { duration } from '../../kit/format.ts'
import type { ToolItem } from './turn.ts'
import css from './Tool.module.css'

interface Props {
  item: ToolItem
  runId: string
  /** The run may still answer. */
  isLive: boolean
  /** What the agent does that is called. */
  children?: ReactNode
}

export const ToolCard = memo(function ToolCard({ item, runId, isLive, children }: Props) {
  const { name, input, isInputOpen, result, startedAt, endedAt, ask, agent } = item
  const waits = ask !== undefined && ask.response === undefined && isLive
  const [isOpen, setOpen] = useState(false)
  const isOthers = !mayAnswer(useSignedIn(), ask?.request ?? {})
  const state = stateOf(item, isLive, isOthers)
  return (
    <section
      className={css.card}
      data-testid="tool-card"
      data-state={state.tone}
      aria-label={`${agent === undefined ? 'Tool' : 'Agent'} ${name}`}
    >
      <button
        type="button"
        className={css.head}
        aria-expanded={isOpen || waits}
        disabled={waits}
        onClick={() => setOpen(!isOpen)}
      >
        <span className={css.icon}>
          <Icon name={agent === undefined ? 'tool' : 'agents'} />
        </span>
        <span className={css.name}>{name}</span>
        {/* The question has them. */}
        {!waits && <code className={css.line}>{oneLine(input)}</code>}
        {result !== undefined && <code className={css.result}>{oneLine(asText(result.value))}</code>}
        <span className={css.state}>
          {state.word}
          {startedAt !== undefined && endedAt !== undefined && ` ${duration(endedAt - startedAt)}`}
        </span>
      </button>
      {isOpen && !waits && (
        <div className={css.body}>
          <h4>Arguments</h4>
          {isInputOpen ? <pre className={css.raw}>{input}</pre> : <JsonTree value={parsed(input)} depth={2} />}
          {agent !== undefined && (
            <>
              <h4>{agent.id}</h4>
              <div className={css.agent} data-testid="agent-track">
                {children}
                {agent.items.length === 0 && <p className={css.note}>Nothing so far.</p>}
              </div>
            </>
          )}
          {result !== undefined && (
            <>
              <h4>{result.isError ? 'Error' : result.isPreliminary ? 'Result so far' : 'Result'}</h4>
              <JsonTree value={result.value} depth={2} />
            </>
          )}
        </div>
      )}
      {waits && <OpenRequest key={ask.request.requestId} request={ask.request} runId={runId} />}
      {ask?.response !== undefined && <Answered ask={ask} />}
    </section>
  )
})

function Answered({ ask }: { ask: NonNullable<ToolItem['ask']> }) {
  const { answer, reason, by } = ask.response!
  const user = useSignedIn()
  if (answer === undefined) return <p className={css.note}>Closed without an answer{reason ? `: ${reason}` : ''}.</p>
  if (answer.kind !== 'approval') return null
  // Only what somebody else has answered is news.
  const words = answerWords(answer, by?.id === user?.id ? undefined : by)
  return (
    <p className={css.note}>
      {words} {answer.reason}
    </p>
  )
}

function stateOf(
  { isInputOpen, result, startedAt, ask }: ToolItem,
  isLive: boolean,
  isOthers: boolean,
): { tone: string; word: string } {
  if (result !== undefined && !result.isPreliminary) {
    const { outcome, isError } = result
    if (outcome === 'handed-over') return { tone: 'done', word: 'handed over' }
    if (outcome !== undefined) return { tone: 'failed', word: outcome }
    return isError ? { tone: 'failed', word: 'failed' } : { tone: 'done', word: '' }
  }
  if (!isLive) return { tone: 'failed', word: 'not finished' }
  if (ask !== undefined && ask.response === undefined)
    return { tone: 'waits', word: isOthers ? 'waiting' : 'waiting for you' }
  if (isInputOpen) return { tone: 'runs', word: 'writes arguments…' }
  return { tone: 'runs', word: startedAt === undefined ? 'waiting…' : 'running…' }
}

function parsed(input: string): unknown {
  if (input.trim() === '') return {}
  try {
    return JSON.parse(input) as unknown
  } catch {
    return input
  }
}

function asText(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
}

function oneLine(text: string): string {
  return text.slice(0, 300).replaceAll(/\s+/gu, ' ')
}
