/**
 * The contract of the log, to which the runner writes and from which all readers read. Implementations: `store/`.
 *
 * Entries are persisted before they are delivered: `append` resolves, and readers see its entries, only once they are stored.
 */
import type { Entry } from './entry.ts'
import type { Audit } from './audit.ts'
import type { Feedback } from './feedback.ts'
import type { TestResults } from './test-result.ts'
import type { Ledger } from './ledger.ts'
import type { Limits } from './limits.ts'
import type { OwnerFilter, RunUser } from './principal.ts'
import type { Records } from './records.ts'
import type { StoreStatus } from './store-status.ts'
import type { ThreadTitles } from './thread-title.ts'
import type { Upkeep } from './upkeep.ts'
import type { ErrorValue } from './error.ts'
import { outcomes, type Outcome } from './part.ts'
import type { Usage } from './usage.ts'

/** Entries to append: a list, which the store copies, or a function that returns it. */
export type Batch = readonly Entry[] | (() => readonly Entry[])

/**
 * `duplicate`: all entries were stored before; the acknowledgement was lost. `fenced`: another owner has claimed the run, or the
 * run has ended: nothing was stored, and this writer must stop.
 */
export type Appended = 'stored' | 'duplicate' | 'fenced'

/** Which entries of a run to read. Conditions are combined with AND. */
export interface ReadOptions {
  /** Only entries with a greater `seq`. Default 0. */
  after?: number
  /** Only entries with a smaller `seq`. */
  before?: number
  /** At most this many entries. */
  limit?: number
  /** Only entries of this step and of the steps below it. */
  step?: string
  /** Only entries of these types. A store may look over the others without reading them. */
  types?: readonly Entry['type'][] | undefined
  /** Follow the run: when all stored entries are read, wait for more, until `run-end` or until the signal aborts. */
  signal?: AbortSignal
}

/** Which messages of an inbox to read. */
export interface InboxOptions {
  /** Only messages with a greater `n`. Default 0. */
  after?: number
  /** Wait for more messages, until the signal aborts. */
  signal?: AbortSignal
}

/** Entries of one run that were stored together. A shared store that has lost some and got them again gives them twice. */
export interface Change {
  /** Position over all runs, from 1; pass it as `after` to continue. It grows, but not always by one. */
  n: number
  run: string
  entries: Entry[]
}

/** Which changes to read. */
export interface ChangesOptions {
  /** Only changes with a greater `n`. Default 0. */
  after?: number
  /** Wait for more changes, until the signal aborts. */
  signal?: AbortSignal
}

/**
 * An iterator of `read` that may have a `take`: `next` without a promise, so that a reader that waits for the next delta keeps nothing for it.
 * It calls one of the two, later and once, as a promise would. Not while a `next` or `take` is pending.
 */
export interface LogCursor<T> extends AsyncIterator<T, undefined> {
  take?(onResult: (result: IteratorResult<T, undefined>) => void, onError: (error: unknown) => void): void
}

/** The entries of runs and their inboxes. Every method rejects with `store-failed` when the store fails. */
export interface Log {
  /**
   * Appends entries whose `seq`s follow the last stored one without gaps, except those of merged deltas (`firstSeq`). Entries that are stored already are skipped, so a batch
   * that is sent twice is stored once.
   *
   * `epoch` is the run's: that of its first append, until a {@link Log.claim} increments it. An owner with an older one is `fenced`.
   * Rejects with `bad-entry`, and stores nothing, for input that only a bug can send: a greater epoch, a gap, another entry at a stored
   * `seq`, a run that does not start with `run-start`, an entry behind `run-end`.
   *
   * A function is called once, synchronously, right before the write, so entries that arrive while the write is queued are
   * included instead of waiting for a second write. `view` is called after it: its result is stored in the same write, as by
   * {@link RunIndex.keepView}, unless the writer is fenced.
   */
  append(run: string, epoch: number, entries: Batch, view?: () => KeptView | undefined): Promise<Appended>
  /**
   * Makes the caller the owner of a run that has this epoch and has not ended: increments the epoch, which fences earlier owners,
   * and sets the status to `running`. Resolves with whether it did. Fold the log after it, not before.
   */
  claim(run: string, epoch: number): Promise<boolean>
  /**
   * Reads entries in batches, in order. Without a signal: those stored when it begins, and perhaps a few more. With a signal:
   * then live (also for a run that has no entry yet), until `run-end` or until the signal aborts, which ends the iteration
   * without throwing. A reader is a cursor and costs no memory, and may be iterated again. If the run is deleted meanwhile, it
   * either stays readable through the iterable, or the iteration rejects with `unknown-run`. Rejects with `compacted` if
   * `after` stands inside merged deltas.
   */
  read(run: string, options?: ReadOptions): AsyncIterable<Entry[]>
  /** Posts a message to a run's owner. The first message of a key wins, permanently; later posts return the winner's message. */
  post(run: string, key: string, message: unknown): Promise<Posted>
  /**
   * Posts several messages to a run in one write, in order, up to the first whose key is taken. Resolves with one result for each
   * that was tried: only the last may be another's.
   */
  postAll(run: string, messages: readonly NewMessage[]): Promise<Posted[]>
  /** Reads the messages to a run, in order. Without a signal: those stored so far. With a signal: then live, until it aborts. */
  inbox(run: string, options?: InboxOptions): AsyncIterable<InboxMessage>
  /**
   * Reads the entries stored for all runs, in the order in which it was stored. Without a signal: so far. With a signal: then live,
   * until it aborts. Entries of another process may come late. A store that drops old runs drops their changes with them.
   */
  changes(options?: ChangesOptions): AsyncIterable<Change[]>
  /** The position of the last change: pass it as `after` to read only later ones. */
  position(): Promise<number>
  /**
   * Creates a run whose first entries are those of `source` up to `seq`. A store refers to them if it can; one whose runs lie on
   * several machines copies them first, in small steps, and creates the run with the last one. It reads as a run of its own: its
   * `run-start` has its id, a thread of its own and, in `forkedFrom`, its origin. Only its further entries are changes. It has
   * the epoch of its source, so that block ids of its owners are new: claim it to go on with it. The same again changes nothing.
   * Rejects with `run-exists`, `unknown-run`, `bad-entry` if the source has no such entry, or `compacted` if it was merged with later
   * ones. `at`: now, epoch ms. The times of the fork count from there; without it, from the start of its source. `user`: whom the fork belongs to;
   * without it, to no one.
   */
  fork(source: string, seq: number, run: string, at?: number, user?: RunUser): Promise<void>
}

/** A message to post. */
export interface NewMessage {
  key: string
  message: unknown
}

export interface Posted {
  first: boolean
  /** The winning message of the key: the caller's own if `first`. */
  message: unknown
}

/** A message to a run's owner: an answer, a stop, a claim to a turn. */
export interface InboxMessage {
  /** Position, from 1; pass it as `after` to continue. */
  n: number
  key: string
  message: unknown
}

/** A suspended run and its earliest deadline, in epoch ms. */
export interface DueRun {
  id: string
  dueAt: number
}

/** The view of a run, as JSON, and the `seq` of the last entry that is folded into it. */
export interface KeptView {
  seq: number
  view: unknown
}

/**
 * The data of runs outside of their logs. The list is newest first. Runs are ordered by when their first entries were appended,
 * not by timestamp, because clocks may be set back.
 */
export interface RunIndex {
  get(run: string): Promise<RunRow | undefined>
  list(query?: RunQuery): Promise<RunRow[]>
  /** Suspended runs with an open request whose deadline is at or before this moment (epoch ms), earliest first; default 1000. */
  due(before: number, limit?: number): Promise<DueRun[]>
  /** The view that was kept last. */
  view(run: string): Promise<KeptView | undefined>
  /** Keeps a view for later, unless one of a later entry is kept. It must be JSON. */
  keepView(run: string, seq: number, view: unknown): Promise<void>
}

/**
 * Which runs want an owner, and their readers. Everything here is a hint: it may be late, doubled or wrong. Only
 * {@link Log.claim} decides.
 */
export interface Fleet {
  /** Whether other processes share the store. */
  readonly shared: boolean
  /**
   * Runs that want an owner: running without one, suspended and due, suspended and answered or stopped. The first batch has those
   * that were left by now and comes at once, even if it is empty. Ends when the signal aborts or the store is closed.
   */
  wanted(signal: AbortSignal): AsyncIterable<string[]>
  /**
   * Announces that a run wants an owner: at a moment (epoch ms, as {@link Store.now} says), which replaces an earlier one, or now. `seen`: how
   * many messages to the run the caller has read before it chose that moment. If more have come, the run wants an owner now.
   */
  want(run: string, at?: number, seen?: number): Promise<void>
  /** This process cannot run it, so the others are asked. Absent where nothing is shared. */
  pass?(run: string): Promise<void>
  /** Announces a client that reads a run. Returns a function that ends it. */
  attend(run: string): () => void
  /** Whether a client reads the run, in any process. */
  attended(run: string): Promise<boolean>
  /** The processes that share the store, this one first. Absent where there is only one. */
  processes?(): Promise<FleetProcess[]>
  /** Tells the others of this process. */
  introduce?(about: Introduction): Promise<void>
}

/** `by`: the reader that stored it, so that a replaced reader notices. */
export interface Positions {
  get(name: string): Promise<{ position: number; by: string } | undefined>
  keep(name: string, position: number, by: string): Promise<void>
}

/** Must not throw. */
export type OnStored = (row: RunRow, entries: readonly Entry[]) => void

/** A log with the list of its runs. Call `close()` when the program ends. */
export interface Store {
  log: Log
  runs: RunIndex
  fleet: Fleet
  /** Whether runs outlive the process. If not, a run hands client tools over instead of waiting for their results. */
  durable: boolean
  /**
   * Epoch ms by the clock that all processes of the store go by: entries are stamped and deadlines are counted with it. Absent: it is that
   * of this machine.
   */
  now?(): number
  /** Tables and search over the log. Absent where there are none. */
  records?: Records
  /** Compaction and deletion. Absent where there are none. */
  upkeep?: Upkeep
  /** Limits over all processes of the store. Absent: a server counts for itself, and `limits.activeRuns` is not applied. */
  limits?: Limits
  /** Sums over all processes of the store. Absent: a server counts for itself, until it ends. */
  ledger?: Ledger
  /** Who did what. Absent: nothing is kept of it. */
  audit?: Audit
  /** What people say of runs. Absent: nothing is kept of it. */
  feedback?: Feedback
  /** Results of test cases. Absent: nothing is kept of them. */
  testResults?: TestResults
  /** What people call threads. Absent: they are called by their first words. */
  titles?: ThreadTitles
  /** Positions in the changes of all runs, by the name of the reader, for all processes of the store. Absent where nothing is shared. */
  positions?: Positions
  /**
   * Calls back with the entries that this process, and no other, has stored, and with the row after it. Returns a function that ends it. Absent where
   * nothing is shared: there {@link Log.changes} has the same.
   */
  onStored?(listener: OnStored): () => void
  /** The work of a shared store for this process. Absent where nothing is shared. */
  status?(): Promise<StoreStatus>
  close(): Promise<void>
}

/** A process of the fleet, for other processes. */
export interface FleetProcess {
  id: string
  /** The process that asks. */
  self: boolean
  host?: string
  pid?: number
  version?: string
  /** Where it can be reached, if it serves. */
  url?: string
  /** ms since its last beat, by the clock of the store. Of the process that asks: since the store has answered one. */
  beatAgeMs: number
  /** Its beat is recent. The runs of a process that is not alive go on elsewhere. */
  alive: boolean
  /** It hands its runs over and takes no more. */
  draining: boolean
  /** The number of active runs that it owns. */
  runs: number
}

/** A process's report about itself. Omitted fields stay unchanged. */
export type Introduction = Partial<Pick<FleetProcess, 'version' | 'url' | 'draining'>>

/* The time that all processes of a store go by. */

/** Epoch ms, as {@link Store.now} says. */
export function timeOf({ now }: Pick<Store, 'now'>): number {
  return now?.() ?? Date.now()
}

/** The thread of a run that belongs to no conversation. */
export function threadOf(runId: string): string {
  return `thread_${runId.replace(/^run_/u, '')}`
}

/* What a list says of a run, and which runs it has. */

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
  /** The id of who started it, or forked it, and its tenant. Absent: it belongs to no one. */
  owner?: string
  tenant?: string
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
  /** The models that it has called so far, in the order of their first calls; at most 16. */
  models?: string[]
  /** When its deltas were merged, epoch ms. */
  compactedAt?: number
}

/** By what a list of runs may be sorted. `duration`: up to its last entry, while it has not ended. */
export const runSorts = ['started', 'duration', 'cost', 'tokens'] as const

export type RunSort = (typeof runSorts)[number]

/** Which runs to list. Conditions are combined with AND. */
export interface RunQuery extends OwnerFilter {
  agent?: string
  threadId?: string
  /** One, or any of several. */
  status?: RunStatus | readonly RunStatus[]
  /** Only runs that started at this time or later, epoch ms. */
  since?: number
  /** Only runs that started before this time, epoch ms. */
  until?: number
  /** Only runs that have called this model. */
  model?: string
  /** Only runs that were started over this protocol. */
  protocol?: string
  /** Only runs that have cost at least, or at most, so many USD. A run of unknown cost has neither. */
  minCost?: number
  maxCost?: number
  /** Only runs that took at least, or at most, so many ms; up to the last entry, while they have not ended. */
  minMs?: number
  maxMs?: number
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
  /** 1–10,000, default 50. */
  limit?: number
  /** Sorts the newest 10,000 runs that fit. A run without the value is last. Absent: all runs, newest first. */
  sort?: RunSort
  /** Default `desc`. */
  order?: 'asc' | 'desc'
}
