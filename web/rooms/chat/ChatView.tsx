/** A chat with one agent: its header, its turns, and where the next message is written. */
import { lazy, Suspense, useCallback, useEffect, useMemo, useRef, useState } from 'react'
import { useLocation } from 'wouter'
import { textOf } from '../../../src/fold/run-view.ts'
import type { Message } from '../../../src/part/message.ts'
import type { AgentFacts } from '../../data/hooks.ts'
import { FeedbackOf } from '../../data/feedback.tsx'
import { useQuery } from '../../data/query.ts'
import { useSignedIn } from '../../data/server.ts'
import { Panes } from '../../kit/Panes.tsx'
import { readFields, type FormFields } from '../../kit/SchemaForm.tsx'
import { useTitle } from '../../shell/title.ts'
import { besideOf } from './beside/columns.ts'
import { formOf } from './agent-form.ts'
import { ChangedLine } from './ChangedLine.tsx'
import { ChatHeader } from './ChatHeader.tsx'
import type { ChatTool } from './ChatTools.tsx'
import { Composer } from './Composer.tsx'
import { CopyAs } from './CopyAs.tsx'
import { Conversation } from './Conversation.tsx'
import { promptsFor } from './prompts.ts'
import { toDraft, toMessage, type Attachment } from './send.ts'
import type { TurnActions } from './TurnView.tsx'
import { useAsking } from './use-asking.ts'
import { useBodyLimit } from './use-body-limit.ts'
import { useChat } from './use-chat.ts'
import { useChatTitle } from './use-chat-title.ts'
import { useChanges } from './use-changes.ts'
import { moveDraft, useDraft } from './use-draft.ts'
import { useFollow } from './use-follow.ts'
import { useUnsent } from './use-unsent.ts'
import { Welcome } from './Welcome.tsx'
import css from './chat.module.css'

const AgentPanel = lazy(() => import('./AgentPanel.tsx'))
const FramesPanel = lazy(() => import('./FramesPanel.tsx'))

/** Of what is kept for a chat. */
const placeOf = (agent: string, threadId: string | undefined) => `${agent}:${threadId ?? ''}`

export function ChatView({ agent, agents }: { agent: AgentFacts; agents: readonly AgentFacts[] }) {
  const { id, name = id } = agent
  const query = useQuery()
  const [, navigate] = useLocation()
  const threadId = query.get('thread')
  const limit = useBodyLimit()
  const user = useSignedIn()
  const place = placeOf(id, threadId)
  const [draft, setDraft] = useDraft(place, query.get('draft') ?? '')
  const [files, setFiles] = useState<readonly Attachment[]>([])
  const [fields, setFields] = useState<FormFields>({})
  const [isForced, setForced] = useState(0)
  const [isCode, setCode] = useState(false)
  const input = useRef<HTMLTextAreaElement>(null)
  const follow = useFollow()
  const isLinear = agent.history === 'client'
  const steers = agent.onBusy === 'steer'

  const changed = useChanges(id, threadId)
  const { set } = query
  const { moveTo } = changed
  const onStarted = useCallback(
    ({ id: run, threadId: thread }: { id: string; threadId: string }) => {
      moveTo(thread)
      if (threadId === undefined) moveDraft(place, placeOf(id, thread))
      set({ thread, run: undefined, draft: undefined }, { replace: location.search.includes(encodeURIComponent(run)) })
    },
    [set, moveTo, id, threadId, place],
  )
  const current = useRef(draft)
  useEffect(() => {
    current.current = draft
  })
  const onReturned = (messages: readonly Message[]) => {
    const back = toDraft(messages)
    setDraft([back.text, current.current].filter((each) => each.trim() !== '').join('\n\n'))
    setFiles((before) => [...before, ...back.files])
    input.current?.focus({ preventScroll: true })
  }
  const chat = useChat({
    agentId: id,
    threadId,
    tip: query.get('run'),
    isLinear,
    steers,
    changes: changed.changes,
    yaml: changed.yaml,
    userId: user?.id,
    onStarted,
    onReturned,
  })
  useUnsent(chat.sent, place)

  // Not on phones: the keyboard would cover what is there to read.
  useEffect(() => {
    if (!matchMedia('(pointer: coarse)').matches) input.current?.focus({ preventScroll: true })
  }, [threadId])
  const { toEnd } = follow
  useEffect(toEnd, [toEnd, isForced, threadId])

  const asking = useAsking(chat, isLinear, () => setForced((n) => n + 1))
  function send(text: string, files: readonly Attachment[], values: Record<string, unknown>): void {
    const message = toMessage(text, files)
    asking.say(message === undefined ? [] : [message], values)
    setDraft('')
    input.current?.focus({ preventScroll: true })
  }
  const actions = useMemo<TurnActions>(
    () => ({
      again: isLinear ? undefined : ({ runId }, words) => asking.again(runId, words),
      choose: (run) => set({ run }),
    }),
    [isLinear, asking, set],
  )

  const title = useChatTitle(threadId, chat)
  useTitle(title)
  const panel = query.get('panel')
  const last = chat.turns.at(-1)?.turn
  /** YAML with which the conversation goes on. */
  const kept = last?.agent === id ? last.yaml : undefined
  const framesOf = chat.turns.find(({ runId }) => runId === query.get('run'))?.runId ?? last?.runId
  const { schema, isMessageRequired } = formOf(agent)
  const asked = draft.trim() !== '' ? draft : (last?.asked.map(textOf).join('\n\n') ?? '')
  const request = {
    origin: location.origin,
    agentId: id,
    text: asked === '' ? (promptsFor(agent)[0] ?? 'Hello') : asked,
    values: schema === undefined ? {} : readFields(schema, fields).values,
    hasKey: user !== undefined,
  }
  const toggle = (name: string) => set({ panel: panel === name ? undefined : name, wire: undefined })
  const isChanged = changed.changes.length > 0
  const tools: readonly ChatTool[] = [
    {
      icon: 'model',
      word: 'Agent',
      ...(isChanged && { label: 'Agent, changed for this chat' }),
      isPressed: panel === 'agent',
      isMarked: isChanged,
      use: () => toggle('agent'),
    },
    { icon: 'menu', word: 'Stream', isPressed: panel === 'frames', use: () => toggle('frames') },
    {
      icon: 'columns',
      word: 'Side by side',
      title: 'Ask two to four agents or models the same question',
      use: () => navigate(besideOf(id, changed.changes)),
    },
    { icon: 'code', word: 'Code', use: () => setCode(true) },
  ]
  const side =
    panel === 'frames' ? (
      <Suspense>
        <FramesPanel
          runId={framesOf}
          wire={query.get('wire') ?? 'ui'}
          onWire={(wire) => set({ wire: wire === 'ui' ? undefined : wire }, { replace: true })}
        />
      </Suspense>
    ) : panel === 'agent' ? (
      <Suspense>
        <AgentPanel agent={agent} changed={changed} kept={kept} />
      </Suspense>
    ) : undefined

  return (
    <Panes
      name="chat"
      label={panel === 'agent' ? 'Agent' : 'Stream'}
      size={460}
      side={side}
      onClose={() => set({ panel: undefined, wire: undefined })}
    >
      <div className={css.room}>
        <ChatHeader
          agent={agent}
          agents={agents}
          threadId={threadId}
          title={title}
          tools={tools}
          onAgent={(next) => navigate(`/chat/${encodeURIComponent(next)}`)}
          onNew={() => {
            set({ thread: undefined, run: undefined })
            input.current?.focus()
          }}
        />
        <FeedbackOf of={threadId === undefined ? undefined : `/api/feedback?thread=${encodeURIComponent(threadId)}`}>
          <Conversation
            chat={chat}
            follow={follow}
            actions={actions}
            welcome={<Welcome agent={agent} onAsk={(text) => send(text, [], {})} />}
          />
        </FeedbackOf>
        <ChangedLine changed={changed} goesOn={kept !== undefined} />
        <Composer
          agentName={name}
          schema={schema}
          isMessageRequired={isMessageRequired}
          draft={draft}
          onDraft={setDraft}
          files={files}
          onFiles={setFiles}
          fields={fields}
          onFields={setFields}
          limit={limit}
          isRunning={chat.active !== undefined}
          steers={steers && chat.active?.status === 'running'}
          onSend={send}
          onStop={() => void chat.stop()}
          input={input}
        />
        <CopyAs request={request} isOpen={isCode} onClose={() => setCode(false)} />
      </div>
    </Panes>
  )
}
