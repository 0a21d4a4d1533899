/** The conversation of one column. */
import { memo, useCallback, useEffect, useImperativeHandle, useMemo, useRef, type Ref } from 'react'
import type { Message } from '../../../../src/part/message.ts'
import type { AgentFacts } from '../../../data/hooks.ts'
import { FeedbackOf } from '../../../data/feedback.tsx'
import { useSignedIn } from '../../../data/server.ts'
import { Conversation } from '../Conversation.tsx'
import type { ChatTurn } from '../turn.ts'
import type { TurnActions } from '../TurnView.tsx'
import { useAsking } from '../use-asking.ts'
import { useChat } from '../use-chat.ts'
import { useFollow } from '../use-follow.ts'
import { factsOf, type AnswerFacts, type Marks } from './answer-facts.ts'
import { AnswerLine } from './AnswerLine.tsx'
import type { ColumnSpec } from './columns.ts'
import type { ColumnAgent } from './use-column-agent.ts'
import css from './beside.module.css'

/** What the room knows of a column. */
export interface ColumnState {
  answers: readonly AnswerFacts[]
  isBusy: boolean
  /** A run that can be stopped. */
  isActive: boolean
  /** Why it cannot be asked. */
  fault: string | undefined
  /** What is sent now goes into its answer. */
  steers: boolean
}

/** What the room asks of a column. */
export interface ColumnHandle {
  say(messages: readonly Message[], values: Record<string, unknown>): void
  /** Asks what a run of it was asked once more, or something else instead. */
  again(runId: string, asked?: readonly Message[]): void
  stop(): void
}

interface Props {
  /** Stays the same while columns come and go. */
  id: number
  /** What it is called, for those who hear the page. */
  label: string
  spec: ColumnSpec
  agent: AgentFacts
  chosen: ColumnAgent
  marks: Marks
  onSpec(id: number, change: Partial<ColumnSpec>): void
  onState(id: number, state: ColumnState): void
  onReturned(messages: readonly Message[]): void
  /** A message was changed: it is asked in every column. */
  onEdited(id: number, runId: string, asked: readonly Message[]): void
  ref?: Ref<ColumnHandle>
}

export const ColumnChat = memo(function ColumnChat({ id, label, spec, agent, chosen, marks, ref, ...on }: Props) {
  const { onSpec, onState, onReturned, onEdited } = on
  const user = useSignedIn()
  const follow = useFollow()
  const { toEnd } = follow
  const isLinear = agent.history === 'client'
  const steers = agent.onBusy === 'steer'
  const chat = useChat({
    agentId: agent.id,
    threadId: spec.thread,
    tip: spec.run,
    isLinear,
    steers,
    changes: chosen.changes,
    // What the column shows is what answers, whatever its conversation had.
    yaml: null,
    userId: user?.id,
    onStarted: ({ threadId }) => onSpec(id, { thread: threadId, run: undefined }),
    onReturned,
  })
  useEffect(toEnd, [toEnd, spec.thread])

  const answers = useSettled(useMemo(() => chat.turns.map(({ turn }) => factsOf(turn)), [chat.turns]))
  const isSending = chat.sent.some(({ error }) => error === undefined)
  const isRunning = chat.active !== undefined
  const isSteered = steers && chat.active?.status === 'running'
  const { fault, isReady } = chosen
  useEffect(
    () => onState(id, { answers, isBusy: isSending || isRunning, isActive: isRunning, fault, steers: isSteered }),
    [id, onState, answers, isSending, isRunning, fault, isSteered],
  )

  const asking = useAsking(chat, isLinear, toEnd)
  const stop = useLatest(() => void chat.stop())
  const whenReady = useWhen(isReady)
  const handle = useMemo<ColumnHandle>(
    () => ({
      say: (...args) => whenReady(() => asking.say(...args)),
      again: (...args) => whenReady(() => asking.again(...args)),
      stop,
    }),
    [asking, stop, whenReady],
  )
  useImperativeHandle(ref, () => handle, [handle])

  const actions = useMemo<TurnActions>(() => {
    const again = ({ runId }: ChatTurn, asked?: readonly Message[]) =>
      asked === undefined ? handle.again(runId) : onEdited(id, runId, asked)
    return {
      again: isLinear ? undefined : again,
      choose: (run) => onSpec(id, { run }),
      facts: (turn) => <AnswerLine turn={turn} marks={marks.get(turn.runId)} />,
    }
  }, [id, isLinear, handle, marks, onSpec, onEdited])

  const feedback = spec.thread === undefined ? undefined : `/api/feedback?thread=${encodeURIComponent(spec.thread)}`
  return (
    <FeedbackOf of={feedback}>
      <Conversation
        chat={chat}
        follow={follow}
        actions={actions}
        welcome={
          <div className={css.welcome}>
            <h2>{agent.name ?? agent.id}</h2>
            {agent.description !== undefined && <p>{agent.description}</p>}
          </div>
        }
        of={label}
      />
    </FeedbackOf>
  )
})

/** The same object until something else is in it: words that grow change nothing of what an answer took. */
function useSettled(answers: readonly AnswerFacts[]): readonly AnswerFacts[] {
  const text = JSON.stringify(answers)
  return useMemo(() => JSON.parse(text) as AnswerFacts[], [text])
}

/** A function that stays the same and does what it does now. */
function useLatest(run: () => void): () => void {
  const latest = useRef(run)
  useEffect(() => {
    latest.current = run
  })
  return useCallback(() => latest.current(), [])
}

/** Does something at once, or as soon as everything for it is there. */
function useWhen(isReady: boolean): (run: () => void) => void {
  const waiting = useRef<(() => void)[]>([])
  const ready = useRef(isReady)
  useEffect(() => {
    ready.current = isReady
    if (isReady) for (const run of waiting.current.splice(0)) run()
  }, [isReady])
  return useCallback((run) => {
    if (ready.current) run()
    else waiting.current.push(run)
  }, [])
}
