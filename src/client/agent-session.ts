/** One conversation with an agent as a store, for any framework: subscribe to it, and draw its state. */
import { oncePerFrame } from './frame.ts'
import { omitUndefined } from '../part/omit-undefined.ts'
import type { EntryOf } from '../part/entry.ts'
import { toMillraceError, type ErrorValue, type MillraceError } from '../part/error.ts'
import { messagesOf, type UserMessage } from '../part/message.ts'
import { again } from './request.ts'
import type { AgentMessage } from './agent-message.ts'
import { toNamedTools } from './client-tool.ts'
import { createMessageFold, type MessageFold } from './message-fold.ts'
import { questionOf, serveTools, type ServedTools } from './serve-tools.ts'
import { stateOf, type AgentSession, type SessionOptions, type SessionSettings } from './session-state.ts'
import { randomKey } from './start-run.ts'
import { questionMessages, threadMessages } from './thread-messages.ts'

/** The run that is followed. */
interface Current {
  id: string
  fold: MessageFold
  served: ServedTools
  ended: PromiseWithResolvers<void>
}

/** A message on its way, or that could not be sent: it is sent again with the same key. */
interface Unsent {
  said: readonly object[]
  message: AgentMessage[]
  input: Record<string, unknown> | undefined
  previousRunId: string | null | undefined
  key: string
}

/** A conversation with an agent as a store. It asks the server once somebody subscribes, or says something. */
export function createAgentSession({ client, agent, threadId, ...given }: SessionOptions): AgentSession {
  let settings: SessionSettings = given
  const listeners = new Set<() => void>()
  let thread = threadId
  let earlier: readonly AgentMessage[] = []
  let current: Current | undefined
  let unsent: Unsent | undefined
  let isSending = false
  let isLoaded = threadId === undefined
  let loading: Promise<void> | undefined
  let error: ErrorValue | undefined
  let reading: AbortController | undefined
  const questions = new Map<string, string>()
  const stateNow = () => stateOf({ threadId: thread, earlier, current, unsent, isSending, isLoaded, error, questions })
  let state = stateNow()
  const notify = oncePerFrame(() => {
    state = stateNow()
    for (const changed of listeners) changed()
  })

  function attempt(work: () => Promise<void>): Promise<void> {
    error = undefined
    return work().catch((thrown: unknown) => {
      const { code, message } = toMillraceError(thrown, 'error')
      error = { code, message }
      notify()
    })
  }

  async function load(): Promise<void> {
    isLoaded = false
    notify.now()
    const before = current
    try {
      const { messages, lastRunId, runs } = await again(() => client.thread(thread!).show())
      // A message was sent meanwhile: its run is the newest.
      if (isSending || current !== before) return
      earlier = threadMessages(messages, lastRunId).filter(({ runId }) => runId !== lastRunId)
      if (current?.id === lastRunId) return read()
      follow(lastRunId, true)
      const { status } = runs.find(({ id }) => id === lastRunId) ?? {}
      if (status !== 'running' && status !== 'suspended') await current!.ended.promise
    } catch (thrown) {
      // It begins with its first message.
      if ((thrown as Partial<MillraceError>).code !== 'unknown-thread') throw thrown
    } finally {
      isLoaded = true
      loading = undefined
      notify()
    }
  }

  function follow(id: string, mayBeOld: boolean): void {
    const served = serveTools({
      client,
      tools: () => toNamedTools(settings.tools),
      onConfirm: () => settings.onConfirm,
      mayBeOld,
      onRefused: notify,
    })
    current = { id, fold: createMessageFold(id), served, ended: Promise.withResolvers() }
    reading?.abort()
    reading = undefined
    read()
  }

  /** Continues reading after the last known entry, as long as anybody is subscribed. */
  function read(): void {
    if (current === undefined || current.fold.status === 'ended' || listeners.size === 0 || reading !== undefined)
      return
    const { signal } = (reading = new AbortController())
    const { id, fold, served, ended } = current
    void (async () => {
      for await (const entry of client.follow(id, fold.lastSeq, { signal })) {
        fold.apply(entry)
        if (entry.type === 'request') {
          const { requestId } = entry
          served.take(id, fold.requests.find((request) => request.requestId === requestId) ?? entry)
          void ask(entry)
        } else if (entry.type === 'run-end') ended.resolve()
        notify()
      }
    })().catch((thrown: unknown) => {
      if (signal.aborted) return
      reading = undefined
      ended.resolve()
      void attempt(() => Promise.reject(thrown as Error))
    })
  }

  /** The question that a tool here has for the user. */
  async function ask(request: EntryOf<'request'>): Promise<void> {
    if (request.kind !== 'approval') return
    const confirm = toNamedTools(settings.tools).find(({ name }) => name === request.toolName)?.confirm
    const question = await questionOf(confirm, request.input).catch(() => true)
    if (typeof question === 'string') questions.set(request.requestId, question)
    notify()
  }

  async function deliver(turn: Unsent): Promise<void> {
    unsent = turn
    isSending = true
    // The message is shown at once, not at the end of this frame.
    notify.now()
    try {
      await stopCurrent()
      const { said, previousRunId, key } = turn
      const begun = await client.start({
        agent,
        messages: said,
        idempotencyKey: key,
        input: { ...settings.input, ...turn.input },
        ...omitUndefined({ threadId: thread, previousRunId, tools: settings.tools }),
      })
      thread = begun.threadId
      earlier = shown()
      unsent = undefined
      follow(begun.id, false)
    } finally {
      isSending = false
      notify()
    }
  }

  async function stopCurrent(): Promise<void> {
    if (current === undefined || current.fold.status === 'ended') return
    await client.stop(current.id)
    // Without a reader nobody sees its end here; on the server the next run waits for it.
    if (reading !== undefined) await current.ended.promise
  }

  function shown(): readonly AgentMessage[] {
    return [...earlier, ...(current?.fold.messages() ?? [])]
  }

  /** Says something in place of a run, with all that came after it. */
  async function replace(runId: string, said: readonly object[] | undefined): Promise<void> {
    const { input, previousRunId } = await client.show(runId)
    const { messages, tools: _, ...rest } = input
    await stopCurrent()
    const at = shown().findIndex((message) => message.runId === runId)
    if (at >= 0) earlier = shown().slice(0, at)
    current = undefined
    await deliver(turnOf(said ?? messagesOf({ messages }), rest, previousRunId ?? null))
  }

  function turnOf(said: readonly object[], input?: Record<string, unknown>, previousRunId?: string | null): Unsent {
    const key = randomKey()
    const message = questionMessages(said as UserMessage[], key).map(({ id, role, parts }) => ({ id, role, parts }))
    return { said, message, input, previousRunId, key }
  }

  return {
    subscribe(changed) {
      listeners.add(changed)
      if (listeners.size === 1) {
        if (isLoaded || current !== undefined || thread === undefined) read()
        else void attempt(() => (loading ??= load()))
      }
      return () => {
        listeners.delete(changed)
        if (listeners.size > 0) return
        reading?.abort()
        reading = undefined
      }
    },
    getState: () => state,
    set: (changed) => void (settings = { ...settings, ...changed }),
    send: (said, input) => attempt(() => deliver(turnOf([{ role: 'user', content: said }], input))),
    stop: () => attempt(async () => current && client.stop(current.id)),
    answer: (requestId, answer) =>
      attempt(async () => void (current && (await client.answer(current.id, requestId, answer)))),
    regenerate: (runId = current?.id) =>
      attempt(async () => {
        if (unsent !== undefined) return deliver(unsent)
        if (runId !== undefined) await replace(runId, undefined)
      }),
    edit: (runId, said) => attempt(() => replace(runId, [{ role: 'user', content: said }])),
    reload: () => attempt(async () => (thread === undefined ? undefined : (loading ??= load()))),
  }
}
