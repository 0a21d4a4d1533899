/** What a list says of a run, and which runs it has. */
import type { ErrorValue } from './error.ts'
import { outcomes, type Outcome } from './part.ts'
import type { Usage } from './usage.ts'

/** The status of a run: active, waiting for an answer, or its outcome. */
export type RunStatus = 'running' | 'suspended' | Outcome

export const runStatuses: readonly RunStatus[] = ['running', 'suspended', ...outcomes]

export function hasEnded(status: RunStatus): boolean {
  return status !== 'running' && status !== 'suspended'
}

/** A run in a list: a fold of its log, which the store updates in the same transaction as the append. */
export interface RunRow {
  id: string
  agent: string
  threadId: string
  parentRunId?: string
  /** The run of its thread whose conversation it continues. Two runs with the same one are branches. */
  previousRunId?: string
  protocol: string
  status: RunStatus
  /** Its entries up to this `seq` were recorded elsewhere: it was imported, or forked from such a run. */
  foreign?: number
  /** Epoch ms. Of a fork: when it was forked. */
  startedAt: number
  updatedAt: number
  endedAt?: number
  lastSeq: number
  epoch: number
  /** Usage of the model calls that have ended, so far while the run is active. */
  usage?: Usage
  /** In USD; absent when no model was called or a price is unknown. */
  cost?: number
  error?: ErrorValue
  /** From its start to the first delta of its answer, in ms, without the time for which it was suspended. Absent until then, and if it is not known. */
  firstTokenMs?: number
  /** How many errors it has recorded, and how many tool calls that failed; at least 1 if it failed. Absent if there are none. */
  errors?: number
  /** The start of the last user message, at most 120 characters. */
  title?: string
  /** When its deltas were merged, epoch ms. */
  compactedAt?: number
}

/** Which runs to list. Conditions are combined with AND. */
export interface RunQuery {
  agent?: string
  threadId?: string
  /** One, or any of several. */
  status?: RunStatus | readonly RunStatus[]
  /** Only runs that started at this time or later, epoch ms. */
  since?: number
  /** Prefix of the run's id. */
  idPrefix?: string
  /** Words that the title must contain, in any order, case-insensitive. */
  q?: string
  /**
   * Words that the title must contain as with `q`, or else a text of the run: what the user, the model and the tools said. A store
   * without a search index looks at titles only.
   */
  search?: string
  /** Only runs listed after this run id: the next page. */
  before?: string
  /** 1–1000, default 50. */
  limit?: number
}
