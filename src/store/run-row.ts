/** A run's row in a list, as a fold of its entries. A delta costs one comparison. */
import type { Entry, EntryOf } from '../part/entry.ts'
import { hasEnded, type RunRow, threadOf } from '../part/log.ts'
import { isUnder, parentPath } from '../part/path.ts'
import { scopedThread, type OwnerFilter, type RunUser } from '../part/principal.ts'
import { sharedTo, startOf, textOf } from '../fold/run-view.ts'
import { addUsage } from '../part/usage.ts'
import type { Message } from '../part/message.ts'

/** A row with fields that only the store needs. */
export interface StoredRow extends RunRow {
  open: readonly OpenRequest[]
  /** The steps that answer, until the first delta of one. A process that has not seen them start counts the first delta of any step. */
  answers?: readonly string[] | undefined
  /** For a fork, as long as it matters: the `seq` of the last shared entry. Its source's first token is not its own. */
  sharedTo?: number | undefined
  /** Total suspended time in ms, and the start of the current suspension in epoch ms. */
  suspendedMs?: number | undefined
  suspendedAt?: number | undefined
  /** SQLite only: the last row of `ticks` outside of any group. */
  lastTick?: number | undefined
  /** SQLite only: its number in `runs`, by which a row is found faster than by the id. */
  number?: number | undefined
}

export interface OpenRequest {
  id: string
  step: string
  /** Epoch ms. */
  deadline: number
}

const none: readonly OpenRequest[] = []

/** The row without store-only fields. For stores other than SQLite, whose rows come from its table. */
export function publicRow(stored: StoredRow): RunRow {
  const row: RunRow & Partial<StoredRow> = { ...stored }
  delete row.open
  delete row.answers
  delete row.sharedTo
  delete row.suspendedMs
  delete row.suspendedAt
  return row
}

/** The earliest deadline of a suspended run. */
export function dueAt({ status, open }: StoredRow): number | undefined {
  if (status !== 'suspended' || open.length === 0) return undefined
  // Not `Math.min(...)`: the number of arguments is limited.
  return open.reduce((soonest, { deadline }) => Math.min(soonest, deadline), Infinity)
}

/** The inbox key of a reply to a request. */
export function answerKey(requestId: string): string {
  return `answer:${requestId}`
}

/**
 * Whether a suspended run needs an owner now: a deadline has passed, its inbox has a reply or a stop, or it has no open request, because a crash
 * cut off its end.
 */
export function isWanted(row: StoredRow, now: number, hasMessage: (key: string) => boolean): boolean {
  if (row.status !== 'suspended') return false
  const due = dueAt(row)
  return due === undefined || due <= now || hasMessage('stop') || row.open.some(({ id }) => hasMessage(answerKey(id)))
}

/** The row of an owner's claim. Undefined if there is nothing to claim. */
export function claimRow(row: StoredRow | undefined, epoch: number): StoredRow | undefined {
  return row?.epoch === epoch && !hasEnded(row.status) ? { ...row, epoch: epoch + 1, status: 'running' } : undefined
}

/** The origin of a fork. */
export interface Origin {
  source: string
  seq: number
  /** The time of the fork, epoch ms. */
  at?: number | undefined
  /** Whom the fork belongs to. */
  user?: RunUser | undefined
}

/**
 * An entry of a fork's source as an entry of the fork. It gets its own thread: otherwise two runs would have the same position. It belongs to who
 * forked it, not to the user of its source.
 */
export function ofFork(entry: Entry, run: string, { source, seq, at, user }: Origin): Entry {
  if (entry.type !== 'run-start') return entry
  const { user: _, ...shared } = entry
  const { foreign } = entry
  const own = {
    runId: run,
    threadId: scopedThread(threadOf(run), user),
    forkedFrom: { runId: source, seq, ...(at !== undefined && { at }) },
    ...(user !== undefined && { user }),
  }
  // Entries after the fork are written here.
  return { ...shared, ...own, ...(foreign !== undefined && { foreign: Math.min(foreign, seq) }) }
}

/** The fields of a row for a user. Empty texts are left out: a run without an owner belongs to no one. */
export function ownerOf(user: Pick<RunUser, 'id' | 'tenant'> | undefined): Pick<RunRow, 'owner' | 'tenant'> {
  const { id = '', tenant = '' } = user ?? {}
  return { ...(id !== '' && { owner: id }), ...(tenant !== '' && { tenant }) }
}

/** Whether a run is one of those that a filter shows. */
export function isShown(row: Pick<RunRow, 'owner' | 'tenant'>, { owner, tenant }: OwnerFilter): boolean {
  return (owner === undefined || (row.owner ?? '') === owner) && (tenant === undefined || (row.tenant ?? '') === tenant)
}

/** Whether a run is this fork: with another origin, or for another user, it is not. */
export function isFork(origin: Origin | undefined, { source, seq, user }: Origin): boolean {
  if (origin?.source !== source || origin.seq !== seq) return false
  const { owner = '', tenant = '' } = ownerOf(user)
  return isShown(ownerOf(origin.user), { owner, tenant })
}

/** Returns the row after these entries, without changing `row`. The first entry of the run must be `run-start`. */
export function foldRow(row: StoredRow | undefined, run: string, epoch: number, entries: readonly Entry[]): StoredRow {
  const next = row ? { ...row, epoch } : startRow(run, epoch, entries[0] as EntryOf<'run-start'>)
  updateRow(next, entries)
  return next
}

/** Whether it is found by other words, or as another agent's: a fork was changed. */
export function isRenamed(before: StoredRow, row: StoredRow): boolean {
  return row.agent !== before.agent || row.title !== before.title
}

/** Whether only its position has changed. */
export function hasOnlyGrown(before: StoredRow, row: StoredRow): boolean {
  const isSame = row.status === before.status && row.usage === before.usage && row.open === before.open
  if (isRenamed(before, row)) return false
  // A claim makes a suspended run `running` before it is resumed.
  if (row.suspendedAt !== before.suspendedAt) return false
  return (
    isSame && row.firstTokenMs === before.firstTokenMs && row.errors === before.errors && row.models === before.models
  )
}

/** Folds entries into a row, which is changed. */
export function updateRow(next: StoredRow, entries: readonly Entry[]): void {
  // Not `for … of`: until it is compiled, it allocates an object per entry, and nearly all entries are deltas.
  for (let i = 0; i < entries.length; i++) {
    const entry = entries[i]!
    switch (entry.type) {
      case 'text-delta':
      case 'reasoning-delta':
        if (next.firstTokenMs === undefined && isOwn(next, entry) && isAnswer(next, entry.step)) {
          next.firstTokenMs = Math.max(0, entry.timestamp - next.startedAt - (next.suspendedMs ?? 0))
          next.answers = undefined
        }
        break
      case 'step-start':
        if (entry.answer === true && next.answers !== undefined) next.answers = [...next.answers, entry.step]
        break
      case 'error':
        next.errors = (next.errors ?? 0) + 1
        break
      case 'tool-result':
        if (entry.isError === true && entry.outcome === undefined) next.errors = (next.errors ?? 0) + 1
        break
      case 'suspend':
        next.status = 'suspended'
        next.suspendedAt = entry.timestamp
        break
      case 'resume':
        next.status = 'running'
        resumeAt(next, entry.timestamp)
        if (entry.agent !== undefined) next.agent = entry.agent
        askAgain(next, entry.input)
        break
      case 'prompt':
        addModel(next, entry.model)
        break
      case 'usage':
        addModel(next, entry.model)
        setCost(next, next.usage === undefined ? entry.cost : plus(next.cost, entry.cost))
        next.usage = addUsage(next.usage, entry.usage)
        break
      case 'request':
        next.open = [...next.open, { id: entry.requestId, step: entry.step, deadline: entry.deadline }]
        break
      case 'response':
        next.open = next.open.filter(({ id }) => id !== entry.requestId)
        break
      case 'step-reset':
        if (next.open.length > 0) next.open = next.open.filter(({ step }) => !isUnder(step, entry.step))
        break
      case 'run-end':
        next.open = none
        if (next.suspendedAt !== undefined) resumeAt(next, entry.timestamp)
        next.status = entry.outcome
        next.endedAt = entry.timestamp
        next.usage = entry.usage
        setCost(next, entry.cost)
        if (entry.error !== undefined) next.error = entry.error
        if (entry.outcome === 'failed') next.errors ??= 1
        next.answers = undefined
        break
      default:
    }
  }
  const last = entries.at(-1)
  if (last) {
    next.lastSeq = last.seq
    next.updatedAt = last.timestamp
  }
}

function isOwn({ sharedTo: end }: StoredRow, { seq }: Entry): boolean {
  return end === undefined || seq > end
}

/** Suspended time is not working time. For a fork, only its own suspensions count. */
function resumeAt(row: StoredRow, time: number): void {
  const since = Math.max(row.suspendedAt ?? row.updatedAt, row.startedAt)
  row.suspendedMs = (row.suspendedMs ?? 0) + Math.max(0, time - since)
  row.suspendedAt = undefined
}

function isAnswer({ answers }: StoredRow, step: string): boolean {
  return answers === undefined || answers.includes(step) || answers.includes(parentPath(step))
}

const mostModels = 16

function addModel(row: StoredRow, model: string): void {
  const known = row.models ?? []
  if (known.length < mostModels && !known.includes(model)) row.models = [...known, model]
}

/** Undefined if either cost is unknown. */
function plus(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined ? undefined : a + b
}

function setCost(row: RunRow, cost: number | undefined): void {
  if (cost === undefined) delete row.cost
  else row.cost = cost
}

function startRow(run: string, epoch: number, start: EntryOf<'run-start'>): StoredRow {
  const { agent, threadId, parentRunId, previousRunId, foreign, protocol, timestamp, seq } = start
  const shared = sharedTo(start)
  const row: StoredRow = {
    id: run,
    agent,
    threadId,
    protocol,
    status: 'running',
    startedAt: startOf(start),
    updatedAt: timestamp,
    lastSeq: seq,
    epoch,
    open: none,
    answers: [],
  }
  if (start.user !== undefined) Object.assign(row, ownerOf(start.user))
  if (shared > 0) row.sharedTo = shared
  if (parentRunId !== undefined) row.parentRunId = parentRunId
  if (previousRunId !== undefined) row.previousRunId = previousRunId
  if (foreign !== undefined) row.foreign = foreign
  const title = titleOf(start.input)
  if (title !== '') row.title = title
  return row
}

/** A fork that is asked something else than its source is called by that. */
function askAgain(row: StoredRow, { messages }: Record<string, unknown> = {}): void {
  if (!Array.isArray(messages) || !messages.some(isUserMessage)) return
  const title = titleOf({ messages })
  if (title === '') delete row.title
  else row.title = title
}

/** The title of a run in a list. */
const titleLength = 120

/**
 * The start of the last user message in a run's input; without one, its other values: `city Rome, days 3`. White space and control characters
 * become single spaces, because titles are printed on terminals.
 */
export function titleOf(input: Record<string, unknown>): string {
  const messages = Array.isArray(input?.messages) ? (input.messages as unknown[]) : []
  const last = messages.findLast(isUserMessage)
  // A prompt may have megabytes: only look at enough of it for the title.
  const words = (last === undefined ? valuesOf(input) : textOf(last))
    .slice(0, 2000)
    .trim()
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .trim()
  const cut = words.slice(0, titleLength)
  // Do not split a surrogate pair.
  return (cut.isWellFormed() ? cut : cut.slice(0, -1)).trim()
}

/** Texts, numbers and yes or no; what clients send beside them is not what the run is about. */
function valuesOf(input: Record<string, unknown>): string {
  const said = Object.entries(input ?? {}).flatMap(([key, value]) => {
    if (typeof value === 'string' && value.trim() !== '') return [`${key} ${value.slice(0, titleLength)}`]
    return typeof value === 'number' || typeof value === 'boolean' ? [`${key} ${value}`] : []
  })
  return said.slice(0, 20).join(', ')
}

function isUserMessage(value: unknown): value is Message {
  if (typeof value !== 'object' || value === null || (value as Message).role !== 'user') return false
  const { content } = value as Message
  return (
    typeof content === 'string' ||
    (Array.isArray(content) && content.every((part) => part !== null && typeof part === 'object'))
  )
}
