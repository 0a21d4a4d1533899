/**
 * The log's contract: what the runner writes to and every reader reads from. Implementations: `record/`.
 *
 * Persisted before delivered: `append` resolves, and readers see its entries, only when they are stored.
 */
import type { Entry } from './entry.ts'
import type { ErrorValue } from './error.ts'
import { outcomes, type Outcome } from './part.ts'
import type { Usage } from './usage.ts'

/** What is appended: a list, which the store copies, or a function that gives it. */
export type Appended = readonly Entry[] | (() => readonly Entry[])

/** The entries of runs, and the messages left for them. Everything rejects with `store-failed` when the store does. */
export interface Log {
  /**
   * Appends entries with dense `seq`s that follow the last stored one. One writer at a time: an `epoch` lower than the
   * stored one, or a `seq` that is taken, is refused with code `stale-writer` and stores nothing.
   *
   * A function is asked for the entries once, synchronously, at the last moment before they are written: what a run says
   * while it waits for that goes with it, instead of waiting for a second write behind the first.
   */
  append(run: string, epoch: number, entries: Appended): Promise<void>
  /**
   * The entries with `seq > after`, in batches. Without a signal: those stored by now. With one: then live (also for a
   * run that has no entry yet), until `run-end` or until the signal aborts, which ends it without throwing.
   * Costs no memory per reader: a reader is a cursor. A store that forgets runs keeps this one for who has called this, for
   * as long as the iterable is held; it may be iterated again.
   */
  read(run: string, after?: number, signal?: AbortSignal): AsyncIterable<Entry[]>
  /** Leaves a message for a run's owner: one winner per key for ever; a later one is told the winner's message. */
  post(run: string, key: string, message: unknown): Promise<Posted>
  /** The messages left for a run, in order. Without a signal: those there by now. With one: then live, until it aborts. */
  inbox(run: string, after?: number, signal?: AbortSignal): AsyncIterable<InboxMessage>
}

export interface Posted {
  first: boolean
  /** The message that holds the key: the caller's own when `first`. */
  message: unknown
}

/** A message left for a run’s owner: an answer, a stop, a claim to a turn. */
export interface InboxMessage {
  /** Position, from 1; pass it as `after` to go on. */
  n: number
  key: string
  message: unknown
}

/** Where a run stands: under way, waiting for an answer, or how it ended. */
export type RunStatus = 'running' | 'suspended' | Outcome

export const runStatuses: readonly RunStatus[] = ['running', 'suspended', ...outcomes]

export function hasEnded(status: RunStatus): boolean {
  return status !== 'running' && status !== 'suspended'
}

/** A run in a list: a fold of its log that the store keeps current within the append's own transaction. */
export interface RunRow {
  id: string
  agent: string
  threadId: string
  parentRunId?: string
  protocol: string
  status: RunStatus
  /** Epoch ms. */
  startedAt: number
  updatedAt: number
  endedAt?: number
  lastSeq: number
  epoch: number
  /** Of the model calls that have ended, so far while the run goes on. */
  usage?: Usage
  /** USD; left out when no model was called or a price is unknown. */
  cost?: number
  error?: ErrorValue
  /** The first words of the last user message, at most 120 characters. */
  title?: string
}

/** Which runs to list; all conditions hold at once. */
export interface RunQuery {
  agent?: string
  threadId?: string
  status?: RunStatus
  /** What the run's id must begin with. */
  idPrefix?: string
  /** Words that the title must contain, case-insensitive. */
  q?: string
  /** Only runs listed after this run id: the next page. */
  before?: string
  /** 1–1000, default 50. */
  limit?: number
}

/**
 * Listing is apart from the log: read-only, newest first. The order is that in which the first entries of the runs were
 * appended, whatever their timestamps say: a clock may be set back.
 */
export interface RunIndex {
  get(run: string): Promise<RunRow | undefined>
  list(query?: RunQuery): Promise<RunRow[]>
}

/** A log, the list of its runs, and what they are kept in. `close()` it when the program ends. */
export interface Store {
  log: Log
  runs: RunIndex
  /** Whether runs outlive the process: without it a client's tool is always handed over, never waited for. */
  durable: boolean
  close(): Promise<void>
}
