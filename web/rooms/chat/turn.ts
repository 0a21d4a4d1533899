/** One turn of a chat: what was asked, and what the run has answered so far. */
import type { RequestView } from '../../../src/fold/run-view.ts'
import type { ErrorValue } from '../../../src/part/error.ts'
import type { Actor } from '../../../src/part/principal.ts'
import type { RunStatus } from '../../../src/part/log.ts'
import type { Message, UserMessage } from '../../../src/part/message.ts'
import type { Reply } from '../../../src/part/request-part.ts'
import type { ToolOutcome } from '../../../src/part/model-part.ts'
import type { Usage } from '../../../src/part/usage.ts'

/** Times are epoch ms. */
export interface TextItem {
  kind: 'text' | 'reasoning'
  key: string
  path: string
  text: string
  isOpen: boolean
  startedAt: number
  endedAt?: number
}

export interface ToolItem {
  kind: 'tool'
  key: string
  path: string
  callId: string
  name: string
  /** JSON as text, as far as it has come. */
  input: string
  isInputOpen: boolean
  /** The tool itself has started. */
  startedAt?: number
  endedAt?: number
  /** Present with the first result; a preliminary one may be replaced. */
  result?: { value: unknown; isError: boolean; isPreliminary: boolean; outcome?: ToolOutcome }
  ask?: Ask
  /** The work of an agent that is called as a tool: no part of the answer. */
  agent?: { id: string; items: readonly Item[] }
}

/** A question to a person or a client. */
export interface Ask {
  request: RequestView
  /** Absent while it is open. */
  response?: { answer?: Reply; reason?: string; by?: Actor }
}

/** A question that belongs to no tool call of the answer. */
export interface QuestionItem {
  kind: 'question'
  key: string
  path: string
  ask: Ask
}

/** A step that is not the answer. */
export interface StepItem {
  kind: 'step'
  key: string
  path: string
  name: string
  stepType: string
  startedAt: number
  duration?: number
  error?: ErrorValue
}

/** A message that was sent into the running turn. */
export interface SaidItem {
  kind: 'said'
  key: string
  path: string
  messageId: string
  content: UserMessage['content']
  by?: Actor
  waitedMs: number
  /** The run was stopped before its model was told. */
  isDropped?: true
}

export interface NoteItem {
  kind: 'note'
  key: string
  path: string
  text: string
}

export interface FileItem {
  kind: 'file'
  key: string
  path: string
  mediaType: string
  /** Base64, a `data:` URL or an http(s) URL. */
  data: string
}

export interface SourceItem {
  kind: 'source'
  key: string
  path: string
  title: string
  url?: string
}

export type Item = TextItem | ToolItem | QuestionItem | StepItem | SaidItem | NoteItem | FileItem | SourceItem

export interface ChatTurn {
  runId: string
  agent: string
  status: RunStatus
  /** The new messages that the run was asked with. */
  asked: readonly Message[]
  /** The other keys of its input. */
  input: Readonly<Record<string, unknown>>
  previousRunId?: string
  /** It ran with this YAML instead of the agent's file. */
  yaml?: string
  items: readonly Item[]
  /** Ids of messages that were sent into it and wait no more. Those that begin another run are there. */
  told?: readonly string[]
  startedAt: number
  endedAt?: number
  firstTokenAt?: number
  /** What the row of the run says. */
  firstTokenMs?: number
  /** ms in which it did not wait for anybody. Of a fork, since it was forked. Present when it has ended. */
  workedMs?: number
  usage?: Usage
  /** USD. Present when it has ended and every price is known. */
  cost?: number
  output?: unknown
  error?: ErrorValue
  lastSeq: number
}

export function isActive({ status }: Pick<ChatTurn, 'status'>): boolean {
  return status === 'running' || status === 'suspended'
}

/** What waits for an answer, in the order in which it was asked. */
export function openRequests(items: readonly Item[]): RequestView[] {
  return items.flatMap((item) => {
    if (item.kind !== 'tool' && item.kind !== 'question') return []
    const open = item.ask !== undefined && item.ask.response === undefined ? [item.ask.request] : []
    return item.kind === 'tool' ? [...open, ...openRequests(item.agent?.items ?? [])] : open
  })
}

/** The answer's text, as it is copied and sent back by clients that keep the conversation. */
export function answerText({ items }: ChatTurn): string {
  return items.flatMap((item) => (item.kind === 'text' ? [item.text] : [])).join('')
}
