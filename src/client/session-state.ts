/** The state of a conversation on a page, and how it is derived from the runs. */
import type { RequestView } from '../fold/run-view.ts'
import { omitUndefined } from '../part/omit-undefined.ts'
import type { ErrorValue } from '../part/error.ts'
import type { UserMessage } from '../part/message.ts'
import type { AgentMessage } from './agent-message.ts'
import type { ClientTools } from './client-tool.ts'
import type { ClientAnswer, MillraceClient } from './client.ts'
import type { MessageFold } from './message-fold.ts'
import type { Confirmation, Confirmed, ServedTools } from './serve-tools.ts'

/** Options that a page may change while a conversation is open. */
export interface SessionSettings {
  /** Tools that run in the page: a list, or an object with each under its name. */
  tools?: ClientTools | undefined
  /** Asked when the model calls a tool that must be confirmed. Without it, its request is one of the open `requests`. */
  onConfirm?: ((confirmation: Confirmation) => Confirmed | Promise<Confirmed>) | undefined
  /** Additional keys of `$input`, for each message. */
  input?: Record<string, unknown> | undefined
}

/** Options of `createAgentSession`. */
export interface SessionOptions extends SessionSettings {
  client: MillraceClient
  /** The agent's id or an alias. */
  agent: string
  /** The conversation to open. Without it, one begins with the first message. */
  threadId?: string | undefined
}

/**
 * `loading`: the conversation is read. `submitted`: sent, and no word of the answer has come. `streaming`: the answer comes. `waiting`:
 * the run waits for an answer to one of the `requests`. `ready`: nothing runs. `error`: the last run has failed, or the server cannot
 * be reached; `error` says why.
 */
export type SessionStatus = 'loading' | 'ready' | 'submitted' | 'streaming' | 'waiting' | 'error'

/** An open request that somebody here must answer: an approval, a question, or a tool without `execute`. */
export type SessionRequest = RequestView & {
  /** The question for people, if there is one. */
  message?: string
}

/** The state of a session. A new object with each change; its unchanged fields are the same objects. */
export interface SessionState {
  threadId?: string
  /** The newest run: running, waiting or ended. */
  runId?: string
  status: SessionStatus
  messages: readonly AgentMessage[]
  requests: readonly SessionRequest[]
  error?: ErrorValue
}

/** Input of a user: text, or text and files. */
export type UserContent = UserMessage['content']

/** A conversation with an agent. Its methods never reject: errors are in the state. */
export interface AgentSession {
  /** Reads and follows the conversation while anybody is subscribed. `changed` is called at most once per frame. */
  subscribe(changed: () => void): () => void
  getState(): SessionState
  /** Changes the tools and other options for later runs. */
  set(settings: SessionSettings): void
  /** Says something. A run that still answers is stopped first. */
  send(said: UserContent, input?: Record<string, unknown>): Promise<void>
  /** Stops the run on the server. */
  stop(): Promise<void>
  /** Answers an open request. */
  answer(requestId: string, answer: ClientAnswer): Promise<void>
  /** Answers the question of a run again; default: of the newest, or of a message that could not be sent. */
  regenerate(runId?: string): Promise<void>
  /** Replaces the message that started a run. */
  edit(runId: string, said: UserContent): Promise<void>
  /** Reads the conversation again, with the messages of others. */
  reload(): Promise<void>
}

/** The source of a state. */
export interface SessionFacts {
  threadId: string | undefined
  /** Messages before those of the newest run. */
  earlier: readonly AgentMessage[]
  current: { id: string; fold: MessageFold; served: ServedTools } | undefined
  unsent: { message: readonly AgentMessage[] } | undefined
  isSending: boolean
  isLoaded: boolean
  error: ErrorValue | undefined
  /** The questions of tools to the user, by request. */
  questions: ReadonlyMap<string, string>
}

export function stateOf(facts: SessionFacts): SessionState {
  const { threadId, earlier, current, unsent, isSending, questions } = facts
  const requests = (current?.fold.requests ?? []).flatMap((request): SessionRequest[] => {
    if (current!.served.has(request)) return []
    const message = questions.get(request.requestId)
    return [message === undefined ? request : { ...request, message }]
  })
  const error = facts.error ?? (isSending || unsent !== undefined ? undefined : failureOf(current?.fold))
  return {
    status: error === undefined ? statusOf(facts, requests.length > 0) : 'error',
    messages: [...earlier, ...(current?.fold.messages() ?? []), ...(unsent?.message ?? [])],
    requests,
    ...omitUndefined({ threadId, runId: current?.id, error }),
  }
}

function statusOf({ isLoaded, isSending, current }: SessionFacts, waits: boolean): SessionStatus {
  if (!isLoaded) return 'loading'
  if (isSending) return 'submitted'
  const { status = 'ended', hasBegun = false } = current?.fold ?? {}
  if (status === 'ended') return 'ready'
  if (status === 'suspended' && waits) return 'waiting'
  return hasBegun ? 'streaming' : 'submitted'
}

function failureOf(fold: MessageFold | undefined): ErrorValue | undefined {
  const { outcome, error } = fold?.end ?? {}
  return outcome === undefined || outcome === 'completed' || outcome === 'aborted' ? undefined : error
}
