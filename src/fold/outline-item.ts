/**
 * The items of a run's outline: its steps, its blocks and its marks, small enough to draw a run of any size.
 *
 * An item begins with the entry `from` (a mark: `seq`), which is its unique key. It is sent again when it has grown; the latest version
 * counts. Times are epoch ms.
 */
import type { ErrorValue } from '../part/error.ts'
import type { SentMessage } from '../part/part.ts'
import type { Actor } from '../part/principal.ts'
import type { StepKind } from '../part/step-kind.ts'
import type { Usage } from '../part/usage.ts'

interface Superseded {
  /** The `seq` of the `step-reset` that discarded it: it counts as closed, and another attempt replaces it. */
  superseded?: number
}

/** One attempt of a step. */
export interface OutlineStep extends Superseded {
  k: 'step'
  path: string
  stepType: string
  kind: StepKind
  answer?: true
  attempt: number
  /** `seq`s of its first and last entry so far; deltas are not counted. */
  from: number
  to: number
  at: number
  /** When the model began to answer (`stream-start`), and when its first delta came. */
  opened?: number
  first?: number
  end?: number
  /** The usage so far while it is open. */
  usage?: Usage
  /** In USD, of this step itself; absent when a price is unknown. */
  cost?: number
  /** The model that was asked, then the one that answered. */
  model?: string
  finishReason?: string
  toolName?: string
  toolCallId?: string
  /** The id of the agent that it calls. */
  agent?: string
  /** The agent takes over: its answer is that of the run. */
  handoff?: true
  /** With at most 200 characters of its message, and without `detail`: both are in the entry `to`. */
  error?: ErrorValue
}

/** A text, reasoning or tool arguments that streamed. */
export interface OutlineBlock extends Superseded {
  k: 'block'
  kind: 'text' | 'reasoning' | 'tool-input'
  id: string
  step: string
  /** `seq`s of its first and last entry so far. */
  from: number
  to: number
  /** The `seq` of its first delta, if it is not `from + 1`. */
  begun?: number
  at: number
  first?: number
  end?: number
  /** Deltas, and UTF-16 units of text. */
  n: number
  chars: number
  /** Characters in slices of `per` ms each, from `first` on; at most 64. Those of merged deltas are spread evenly. */
  rate?: number[]
  per?: number
  toolName?: string
}

/** Any other entry that is not a delta. */
export interface OutlineMark extends Superseded {
  k: 'mark'
  type: string
  seq: number
  /** For adjacent entries of a kind that may come in thousands: the last `seq`, and their number. */
  to?: number
  n?: number
  at: number
  step: string
  /** Length of the entries as JSON. */
  bytes: number
  /** At most 200 characters to show beside it, such as a tool's name or an error's message. */
  note?: string
  /** The id of its tool call or request. */
  id?: string
  /** What its step says of itself while it goes on: the newest of the entries. */
  progress?: string
  /** The entry reports a failure. */
  failed?: true
  /** For `usage`. */
  usage?: Usage
  cost?: number
  /** Of a `message`: when and by whom it was sent, and what became of it if the model was not told it. */
  sent?: { at: number; by?: Actor; outcome?: NonNullable<SentMessage['outcome']> }
  /** Of a `prompt` or `summarized`: the handles of results that its model was told shortened from here on. */
  shortened?: string[]
  /** Of the `run-start` of a fork: the last entry that it shares with its source, and when it was forked. */
  fork?: { seq: number; at: number }
}

export type OutlineItem = OutlineStep | OutlineBlock | OutlineMark

/** The last line of a page that is not the last one: the next page begins after this entry. */
export interface OutlineMore {
  k: 'more'
  after: number
}
