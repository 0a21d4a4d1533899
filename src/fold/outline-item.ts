/** What the outline of a run is made of: its steps, its blocks and its marks, small enough to draw a run of any size. */
import type { ErrorValue } from '../part/error.ts'
import type { StepKind } from '../part/step-kind.ts'
import type { Usage } from '../part/usage.ts'

/** A step. Sent again, with the same path, when it has got further: the last one counts. Times are epoch ms. */
export interface OutlineStep {
  k: 'step'
  path: string
  stepType: string
  kind?: StepKind
  answer?: true
  attempt: number
  /** `seq`s of its first and last entry so far. */
  from: number
  to: number
  at: number
  /** When the model began to answer (`stream-start`), and when its first delta came. */
  opened?: number
  first?: number
  end?: number
  usage?: Usage
  cost?: number
  model?: string
  finishReason?: string
  toolName?: string
  toolCallId?: string
  /** For a call of another agent: its id. */
  agent?: string
  error?: ErrorValue
}

/** A text, reasoning or tool arguments that streamed. Sent again when it has grown. */
export interface OutlineBlock {
  k: 'block'
  kind: 'text' | 'reasoning' | 'tool-input'
  id: string
  step: string
  from: number
  to: number
  at: number
  first?: number
  end?: number
  /** Deltas, and UTF-16 units of text. */
  n: number
  chars: number
  /** Characters in equal slices of its time; at most 64. */
  rate?: number[]
  toolName?: string
}

/** Any other entry that is not a delta. */
export interface OutlineMark {
  k: 'mark'
  type: string
  seq: number
  at: number
  step: string
  /** Length of the entry as JSON. */
  bytes?: number
  /** At most 200 characters to show beside it: a tool's name, an error's message. */
  note?: string
}

export type OutlineItem = OutlineStep | OutlineBlock | OutlineMark
