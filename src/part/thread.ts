/** A conversation as a row of a list, derived from its runs. */
import type { OwnerFilter } from './principal.ts'
import type { SearchHit } from './records.ts'
import type { Usage } from './usage.ts'

export const threadStatuses = ['active', 'waiting', 'idle', 'closed'] as const

/**
 * `active`: a run is running. `waiting`: none is, and one waits for an answer. `closed`: nothing has happened for so long that nobody
 * waits any more; a new message opens it again. `idle`: anything else.
 */
export type ThreadStatus = (typeof threadStatuses)[number]

/** The code of the error of a run that was ended because its thread was closed. */
export const threadClosed = 'thread-closed'

/** When threads are closed: a rule and the present, so that no list of closed threads is needed. */
export interface ThreadRule {
  /** ms without an entry; `Infinity`: never. */
  closeAfterMs: number
  /** Epoch ms. */
  now: number
}

/** 30 days. */
export const defaultCloseAfterMs = 30 * 24 * 3_600_000

/** A thread in a list. Counts and sums are over all of its runs. */
export interface ThreadRow {
  id: string
  status: ThreadStatus
  /** What somebody has called it, or else that of its first run: the start of the first message. */
  title?: string
  /** Of the runs, newest first. */
  agents: string[]
  lastRunId: string
  /** Epoch ms. */
  startedAt: number
  /** Its last entry. Entries that only close the thread do not count. */
  updatedAt: number
  runCount: number
  /** Of people, of the assistant, and of tools. Absent for a thread whose texts are too long to be counted for a list. */
  messageCount?: number
  models: string[]
  tools: string[]
  toolCallCount: number
  /** Runs that ended with an error. */
  errorCount: number
  usage: Pick<Usage, 'inputTokens' | 'outputTokens' | 'totalTokens'>
  /** In USD. Absent when no model was called or a price is unknown. */
  cost?: number
  /** From the start of a run to its first text or reasoning, in ms. Absent if no run has said anything. */
  firstTokenMs?: { average: number; last: number }
  /** With `q`: the newest place where the words were found. */
  match?: Pick<SearchHit, 'run' | 'seq' | 'kind' | 'excerpt'>
}

/** Which threads to list. Conditions are combined with AND. */
export interface ThreadQuery extends OwnerFilter {
  status?: ThreadStatus
  /** Threads in which this agent has run. */
  agent?: string
  /** Words that must all occur in one text of the conversation, or in its title. */
  q?: string
  /** Only threads listed after this thread id: the next page. */
  before?: string
  /** 1–1000, default 50. */
  limit?: number
}
