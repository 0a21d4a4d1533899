/** The state of a run as clients see it: its status, messages, usage, open requests, and the steps with their times. */
import type { EntryOf } from '../part/entry.ts'
import type { ErrorValue } from '../part/error.ts'
import type { RunStatus } from '../part/log.ts'
import type { Actor } from '../part/principal.ts'
import type { AssistantContent, AssistantMessage, Message, ToolMessage } from '../part/message.ts'
import type { Usage } from '../part/usage.ts'
import type { StepKind } from '../part/step-kind.ts'
import type { UsedByAll } from './usage-fold.ts'

/** One step of a run. Times are epoch ms, durations ms. */
export interface StepView {
  path: string
  stepType: string
  kind: StepKind
  attempt: number
  answer?: true
  toolName?: string
  startedAt: number
  duration?: number
  finishReason?: string
  usage?: Usage
  /** The model that answered, for a model call or a CLI agent. */
  model?: string
  /** In USD, of this step itself. */
  cost?: number
  /** It used a model whose price is unknown. */
  unpriced?: true
  error?: ErrorValue
}

/** An open request as clients see it. */
export type RequestView = EntryOf<'request'> & {
  /** The agents that lead to it, the run's own first. Absent: the run's own agent asks. */
  agents?: string[]
}

/** The state of a run: its status, messages, usage and cost. */
export interface RunView extends UsedByAll {
  runId: string
  agent: string
  threadId: string
  parentRunId?: string
  previousRunId?: string
  protocol: string
  /** Who started it, or forked it. Absent: it belongs to no one. */
  user?: Actor
  status: RunStatus
  startedAt: number
  endedAt?: number
  lastSeq: number
  input: Record<string, unknown>
  labels?: Record<string, string>
  /** The caller's span in its trace (W3C Trace Context). */
  traceparent?: string
  /** The messages that the run added to the conversation: assistant and tool messages of the answer. The first has the run's id. */
  messages: Message[]
  /** The answer's text. */
  text: string
  steps: StepView[]
  usage: Usage
  /** In USD, so far while the run is active; absent if no model was called or a price is unknown. */
  cost?: number
  /** In USD, if a price is unknown: the cost of the other calls. */
  knownCost?: number
  /** How many usage reports have no known price; absent if all have one. */
  unpriced?: number
  requests: RequestView[]
  output?: unknown
  error?: ErrorValue
  summary: Summary
  /** The last summary of each tool loop whose conversation was longer than its model's window. Absent if there is none. */
  summaries?: SummaryView[]
}

/** A summary in place of the first `upTo` messages of the conversation of the loop at `step`: see `Summarized`. */
export type SummaryView = Pick<
  EntryOf<'summarized'>,
  'step' | 'seq' | 'upTo' | 'text' | 'before' | 'after' | 'reason' | 'hash'
>

/** Counts of finished items, named as in the Smithers document. A router's `respond` does not count as a tool call. */
export interface Summary {
  textBlocks: number
  reasoningBlocks: number
  toolCalls: number
  toolResults: number
  errors: number
}

/** The text of a message: all its text parts, joined. */
export function textOf(message: Message): string {
  if (typeof message.content === 'string') return message.content
  let text = ''
  for (const part of message.content as (AssistantContent | AssistantMessage | ToolMessage['content'][number])[]) {
    if ('type' in part && part.type === 'text') text += part.text
  }
  return text
}

/** The text of an answer, without the messages that came while it was made. */
export function answerText(messages: readonly Message[]): string {
  return messages.map((message) => (message.role === 'user' ? '' : textOf(message))).join('')
}

/*
 * The own start of a run. A fork's log begins with entries of another run and their times: its duration and its first token are counted
 * from its own start. Lists, views, comparisons, statistics and metrics all use this.
 */

/** Epoch ms. */
export function startOf({ timestamp, forkedFrom }: EntryOf<'run-start'>): number {
  return forkedFrom?.at ?? timestamp
}

/** The `seq` of the last entry that a fork shares with its origin; 0 for other runs. */
export function sharedTo({ forkedFrom }: EntryOf<'run-start'>): number {
  return forkedFrom?.seq ?? 0
}
