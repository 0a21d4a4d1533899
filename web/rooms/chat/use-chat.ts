/** A chat with an agent: the turns of its thread, and what is being sent. */
import { useCallback, useEffect, useMemo, useRef, useState, useSyncExternalStore } from 'react'
import type { Message } from '../../../src/part/message.ts'
import { api, client } from '../../data/client.ts'
import { pathOf, type BranchPoint } from './branches.ts'
import { randomKey, toOutgoing, type Outgoing } from './send.ts'
import { createThreadStore, type ThreadState } from './thread-store.ts'
import { isActive, type ChatTurn } from './turn.ts'

/** A message on its way: shown until the run that it started is here. */
export interface SentMessage {
  key: string
  body: Outgoing
  asked: readonly Message[]
  /** Absent until the server has told. */
  threadId?: string | undefined
  runId?: string
  /** It goes into this run, which is active. */
  into?: string | undefined
  error?: unknown
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
  /** A message was taken: the thread and the run that it started. */
  onStarted(started: { id: string; threadId: string }): void
}

export function useChat({ agentId, threadId, tip, isLinear, steers, onStarted }: ChatOptions): Chat {
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

  const started = useRef(onStarted)
  useEffect(() => {
    started.current = onStarted
  })
  const post = useCallback(async (message: SentMessage) => {
    const change = (next: Partial<SentMessage>) =>
      setSent((all) => all.map((each) => (each.key === message.key ? { ...each, ...next } : each)))
    change({ error: undefined })
    try {
      if (message.into !== undefined && (await tell(message))) return
      change({ into: undefined })
      // The same key again: a message whose answer was lost is not asked twice.
      const headers = { 'idempotency-key': message.key }
      const run = await api<{ id: string; threadId: string }>('/api/runs', {
        method: 'POST',
        body: message.body,
        headers,
      })
      change({ runId: run.id, threadId: run.threadId })
      started.current(run)
    } catch (error) {
      change({ error })
    }
  }, [])

  const active = turns.findLast(({ turn }) => isActive(turn))?.turn

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
    const into = steers && isPlain && active?.status === 'running' ? { into: active.runId } : {}
    const message: SentMessage = { key: randomKey(), body, asked: messages, threadId, ...into }
    setSent((all) => [...all, message])
    void post(message)
  }

  return {
    thread,
    turns,
    sent: waiting,
    active,
    say,
    retry: (message) => void post(message),
    drop: (message) => setSent((all) => all.filter((each) => each !== message)),
    stop: async () => {
      if (active !== undefined) await client().stop(active.runId)
    },
    loadEarlier: () => store?.loadEarlier(),
    reload: () => store?.reload(),
  }
}

/** Ids of messages that a run has, or that began it. */
function toldIn({ items, asked }: ChatTurn): string[] {
  const began = asked.flatMap(({ id }) => (id === undefined ? [] : [id]))
  return [...began, ...items.flatMap((item) => (item.kind === 'said' ? [item.messageId] : []))]
}

/** False if the run has ended meanwhile: the message begins another one. */
async function tell({ key, into, asked }: SentMessage): Promise<boolean> {
  const [message] = asked
  try {
    await client().tell(into!, { id: key, content: message!.content as string | object[] })
    return true
  } catch (error) {
    if ((error as { code?: unknown }).code === 'run-ended') return false
    throw error
  }
}
