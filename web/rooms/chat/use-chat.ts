/** A chat with an agent: the turns of its thread, and what is being sent. */
import { useCallback, useEffect, useMemo, useRef, useState, useSyncExternalStore, type RefObject } from 'react'
import { messageOf } from '../../../src/part/error.ts'
import type { StepChange } from '../../../src/part/agent-settings.ts'
import type { Message } from '../../../src/part/message.ts'
import type { Actor } from '../../../src/part/principal.ts'
import type { MessageMode, WaitingMessage } from '../../../src/part/sent-message.ts'
import { api, client } from '../../data/client.ts'
import { pathOf, type BranchPoint } from './branches.ts'
import type { OwnYaml } from '../../data/own-yaml.ts'
import { pipelineOf } from './override.ts'
import { randomKey, toOutgoing, type Outgoing } from './send.ts'
import { createThreadStore, type ThreadState } from './thread-store.ts'
import { isActive, type ChatTurn } from './turn.ts'

/** A message on its way: shown until the run that it started is here. */
export interface SentMessage {
  key: string
  body: Outgoing
  /** The server was asked with the body: another try asks the same. */
  isPinned?: true
  asked: readonly Message[]
  /** Absent until the server has told. */
  threadId?: string | undefined
  runId?: string
  /** It goes into this run, which is active. */
  into?: string | undefined
  /** The server has it, and tells it to the run when its model is called next, or begins another run with it. */
  waits?: MessageMode
  /** Who has sent it, if that was somebody else. */
  by?: Actor | undefined
  error?: unknown
  /** Why it was not taken back. */
  fault?: string | undefined
}

export interface ShownTurn extends BranchPoint {
  turn: ChatTurn
}

export interface Chat {
  thread: ThreadState
  turns: readonly ShownTurn[]
  sent: readonly SentMessage[]
  /** The run that is going on or waits, the last of them. */
  active: ChatTurn | undefined
  say(
    messages: readonly Message[],
    values: Record<string, unknown>,
    from?: { previousRunId: string | null; before: readonly ChatTurn[] },
  ): void
  retry(sent: SentMessage): void
  drop(sent: SentMessage): void
  /** What could not be sent returns to the one who writes. */
  edit(sent: SentMessage): void
  /** Its words return to the one who writes. */
  takeBack(sent: SentMessage): void
  stop(): Promise<void>
  loadEarlier(): void
  reload(): void
}

const nothing: ThreadState = { runs: [], hasEarlier: false, isLoading: false }

export interface ChatOptions {
  agentId: string
  threadId: string | undefined
  /** A run of the path that is shown. */
  tip: string | undefined
  /** The client keeps the history. */
  isLinear: boolean
  /** A message goes into the run that is active. */
  steers: boolean
  /** What is another one than in the agent's file, for this chat. */
  changes?: readonly StepChange[]
  /** YAML that it sends, with the changes in it. */
  yaml?: OwnYaml
  /** Who is signed in. */
  userId: string | undefined
  /** A message was taken: the thread and the run that it started. */
  onStarted(started: { id: string; threadId: string }): void
  /** Messages that were taken back, or that a stopped run was not told. */
  onReturned(messages: readonly Message[]): void
}

export function useChat(options: ChatOptions): Chat {
  const { agentId, threadId, tip, isLinear, steers } = options
  const store = useMemo(() => (threadId === undefined ? undefined : createThreadStore(threadId)), [threadId])
  useEffect(() => store?.start(), [store])
  const subscribe = useCallback((listener: () => void) => store?.subscribe(listener) ?? (() => undefined), [store])
  const thread = useSyncExternalStore(subscribe, () => store?.read() ?? nothing)
  const [sent, setSent] = useState<readonly SentMessage[]>([])

  const turns = useMemo(() => {
    const byId = new Map(thread.runs.flatMap(({ runId, turn }) => (turn === undefined ? [] : [[runId, turn] as const])))
    const known = thread.runs.filter(({ runId }) => byId.has(runId))
    return pathOf(known, { tip, isLinear }).map((place) => ({ ...place, turn: byId.get(place.runId)! }))
  }, [thread.runs, tip, isLinear])

  // What was sent from here is added when the thread is open, which it is not yet for its first message.
  useEffect(() => {
    for (const each of sent) if (each.runId !== undefined && each.threadId === threadId) store?.add(each.runId)
  }, [store, sent, threadId])
  const arrived = new Set(thread.runs.flatMap(({ runId, turn }) => (turn === undefined ? [] : [runId])))
  const told = new Set(turns.flatMap(({ turn }) => toldIn(turn)))
  const isHere = ({ key, runId = '', into }: SentMessage) => (into === undefined ? arrived.has(runId) : told.has(key))
  const waiting = sent.filter((each) => each.threadId === threadId && !isHere(each))

  const latest = useRef(options)
  useEffect(() => {
    latest.current = options
  })
  useReturned(turns, sent, latest)
  /** The first message of a new thread is on its way: which thread it has begun. */
  const begins = useRef<Promise<string | undefined>>(undefined)
  useEffect(() => {
    begins.current = undefined
  }, [threadId])
  /** The thread in which it was taken. */
  const post = useCallback(async (message: SentMessage): Promise<string | undefined> => {
    const change = (next: Partial<SentMessage>) =>
      setSent((all) => all.map((each) => (each.key === message.key ? { ...each, ...next } : each)))
    change({ error: undefined })
    try {
      const waits = message.into === undefined ? undefined : await tell(message)
      if (waits !== undefined) {
        change({ waits })
        return message.threadId
      }
      change({ into: undefined })
      const body = message.isPinned ? message.body : await withChanges(message.body, latest.current)
      change({ body, isPinned: true })
      // The same key again: a message whose answer was lost is not asked twice.
      const headers = { 'idempotency-key': message.key }
      const run = await api<{ id: string; threadId: string }>('/api/runs', {
        method: 'POST',
        body,
        headers,
      })
      change({ runId: run.id, threadId: run.threadId })
      // Whoever has gone to another chat meanwhile stays there.
      if (latest.current.threadId === message.threadId) latest.current.onStarted(run)
      return run.threadId
    } catch (error) {
      change({ error })
      return undefined
    }
  }, [])
  /** What is said right behind the first message goes into the thread that this one begins. */
  const postBehind = async (first: Promise<string | undefined>, message: SentMessage) => {
    const thread = await first
    const next =
      thread === undefined ? message : { ...message, threadId: thread, body: { ...message.body, threadId: thread } }
    setSent((all) => all.map((each) => (each.key === next.key ? next : each)))
    await post(next)
  }

  const active = turns.findLast(({ turn }) => isActive(turn))?.turn
  const waitingIn = useCallback(
    (messages: readonly SentMessage[]) =>
      setSent((all) => [...all, ...messages.filter(({ key }) => all.every((each) => each.key !== key))]),
    [],
  )
  useWaiting(active?.runId, threadId, options, waitingIn)
  const remove = (message: SentMessage) => setSent((all) => all.filter(({ key }) => key !== message.key))

  const say: Chat['say'] = (messages, values, from) => {
    const before = from?.before ?? turns.map(({ turn }) => turn)
    const body = toOutgoing({
      agentId,
      threadId,
      messages,
      values,
      before: isLinear ? before : undefined,
      ...(from !== undefined && { previousRunId: from.previousRunId }),
    })
    const isPlain = from === undefined && messages.length === 1 && Object.keys(values).length === 0
    // Also one that has been started here a moment ago.
    const begun = waiting.findLast(({ runId }) => runId !== undefined)?.runId
    const into = active === undefined ? begun : active.status === 'running' ? active.runId : undefined
    const message: SentMessage = { key: randomKey(), body, asked: messages, threadId }
    if (steers && isPlain && into !== undefined) message.into = into
    setSent((all) => [...all, message])
    const first = threadId === undefined ? begins.current : undefined
    if (first !== undefined) return void postBehind(first, message)
    const posted = post(message)
    if (threadId !== undefined) return
    begins.current = posted.then((thread) => {
      if (thread === undefined) begins.current = undefined
      return thread
    })
  }

  return {
    thread,
    turns,
    sent: waiting,
    active,
    say,
    retry: (message) => void post(message),
    drop: remove,
    edit(message) {
      remove(message)
      latest.current.onReturned(message.asked)
    },
    takeBack(message) {
      client()
        .takeBack(message.into!, message.key)
        .then(() => {
          remove(message)
          latest.current.onReturned(message.asked)
        })
        .catch((error: unknown) => {
          // Its entry is on the way.
          if ((error as { code?: unknown }).code === 'message-delivered') return
          const fault = messageOf(error)
          setSent((all) => all.map((each) => (each.key === message.key ? { ...each, fault } : each)))
        })
    },
    stop: async () => {
      if (active !== undefined) await client().stop(active.runId)
    },
    loadEarlier: () => store?.loadEarlier(),
    reload: () => store?.reload(),
  }
}

async function withChanges(body: Outgoing, { changes = [], yaml }: ChatOptions): Promise<Outgoing> {
  const pipeline = await pipelineOf(body.agentId, changes, yaml)
  return pipeline === undefined ? body : { ...body, pipeline }
}

/** Ids of messages that a run has, or that began it. */
function toldIn({ told = [], asked }: ChatTurn): string[] {
  return [...asked.flatMap(({ id }) => (id === undefined ? [] : [id])), ...told]
}

/** Undefined if the run has ended meanwhile: the message begins another one. */
async function tell({ key, into, asked }: SentMessage): Promise<MessageMode | undefined> {
  const [message] = asked
  try {
    const { mode } = await client().tell(into!, { id: key, content: message!.content as string | object[] })
    return mode
  } catch (error) {
    if ((error as { code?: unknown }).code === 'run-ended') return undefined
    throw error
  }
}

/** What waits for the run already when its thread is opened, whoever has sent it. */
function useWaiting(
  runId: string | undefined,
  threadId: string | undefined,
  { agentId, userId }: ChatOptions,
  add: (messages: readonly SentMessage[]) => void,
): void {
  useEffect(() => {
    if (runId === undefined) return
    const leave = new AbortController()
    const path = `/api/runs/${encodeURIComponent(runId)}`
    api<{ waiting?: WaitingMessage[] }>(path, { signal: leave.signal }).then(
      ({ waiting = [] }) =>
        add(
          waiting.map(({ id: key, mode, content, by }) => {
            const asked = [{ role: 'user' as const, content }]
            const body = toOutgoing({ agentId, threadId, messages: asked, values: {}, before: undefined })
            const isOwn = by?.id === userId
            return { key, body, asked, threadId, into: runId, waits: mode, ...(!isOwn && { by: by ?? nobody }) }
          }),
        ),
      // What waits is shown when it was told.
      () => undefined,
    )
    return () => leave.abort()
  }, [runId, threadId, agentId, userId, add])
}

const nobody: Actor = { id: '' }

/** Gives back what a stopped run was not told, if it was sent from here. */
function useReturned(turns: readonly ShownTurn[], sent: readonly SentMessage[], latest: RefObject<ChatOptions>): void {
  const given = useRef(new Set<string>())
  useEffect(() => {
    const dropped = new Set(
      turns.flatMap(({ turn }) =>
        turn.items.flatMap((item) => (item.kind === 'said' && item.isDropped ? [item.messageId] : [])),
      ),
    )
    const back = sent.filter(({ key, by }) => by === undefined && dropped.has(key) && !given.current.has(key))
    if (back.length === 0) return
    for (const { key } of back) given.current.add(key)
    latest.current.onReturned(back.flatMap(({ asked }) => asked))
  }, [turns, sent, latest])
}
