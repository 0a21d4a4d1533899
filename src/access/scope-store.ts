/**
 * A store as one principal may see it: runs of others are as unknown as runs that do not exist. It reads only; whatever writes belongs to the
 * runtime. What it cannot restrict, such as SQL, is refused: code that needs it asks the whole store with a filter, and says so.
 */
import { MillraceError } from '../part/error.ts'
import type {
  Change,
  ChangesOptions,
  InboxMessage,
  InboxOptions,
  KeptView,
  Log,
  LogCursor,
  Posted,
  RunIndex,
  RunQuery,
  RunRow,
  Store,
} from '../part/log.ts'
import type { Entry } from '../part/entry.ts'
import { threadMark, type OwnerFilter, type Principal } from '../part/principal.ts'
import type { Records, SearchQuery } from '../part/records.ts'
import type { StatsQuery } from '../part/stats.ts'
import type { Upkeep } from '../part/upkeep.ts'
import { decide, visibleTo, type Action } from './decide.ts'
import { hideDetails, hideTexts, hideViewDetails } from './hide-texts.ts'

/** Throws for an action that the principal may see but not take; resolves with undefined if there is no such run for it. */
export async function rowFor(
  { runs }: Pick<Store, 'runs'>,
  principal: Principal,
  action: Action,
  run: string,
): Promise<RunRow | undefined> {
  const row = await runs.get(run)
  if (row === undefined) return undefined
  const decision = decide(principal, action, row)
  if (decision === 'forbidden') throw notAllowed(action)
  return decision === 'allow' ? row : undefined
}

export function notAllowed(action: Action): MillraceError {
  return new MillraceError('forbidden', `You may not do this here (${action}). Ask for another role.`, { status: 403 })
}

export function scopeStore(base: Store, principal: Principal): Store {
  const filter = visibleTo(principal)
  const get = (run: string) => rowFor(base, principal, 'runs.read', run)
  const hides = decide(principal, 'agents.read') !== 'allow'
  const log = createLog(base, principal, { get, hides })
  return {
    log,
    runs: createRuns(base.runs, filter, { get, hides }),
    fleet: base.fleet,
    durable: base.durable,
    ...(base.now !== undefined && { now: () => base.now!() }),
    ...(base.records !== undefined && { records: createRecords(base.records, filter, { get, hides }) }),
    ...(base.upkeep !== undefined && { upkeep: createUpkeep(base, base.upkeep, principal) }),
    close: refused,
  }
}

type Get = (run: string) => Promise<RunRow | undefined>

interface Scope {
  get: Get
  /** Texts of agents, and details of errors, are hidden. */
  hides: boolean
}

function createRuns(base: RunIndex, filter: OwnerFilter, { get, hides }: Scope): RunIndex {
  const shown = (row: RunRow) => (hides ? hideDetails(row) : row)
  return {
    async get(run) {
      const row = await get(run)
      return row && shown(row)
    },
    async list(query: RunQuery = {}) {
      return (await base.list({ ...query, ...filter })).map(shown)
    },
    due: refused,
    async view(run): Promise<KeptView | undefined> {
      const view = (await get(run)) && (await base.view(run))
      return view && hides ? hideViewDetails(view) : view
    },
    async keepView(run, seq, view) {
      // What a user sees of it is not what is kept for all.
      if (!hides && (await get(run)) !== undefined) await base.keepView(run, seq, view)
    },
  }
}

function createLog({ log: base, runs }: Store, principal: Principal, { get, hides }: Scope): Log {
  const filter = visibleTo(principal)
  const mark = threadMark(principal)
  const isVisible = createVisibility(get)

  /** Threads and keys have inboxes beside those of runs. */
  async function mayReadInbox(name: string): Promise<boolean> {
    if (!name.startsWith('thread:')) return (await get(name)) !== undefined
    const threadId = name.slice('thread:'.length)
    return (await runs.list({ threadId, limit: 1, ...filter })).length > 0
  }

  /** The inbox that a request may write to: its own threads, and its own idempotency keys. */
  function ownInbox(name: string): string {
    if (name.startsWith('thread:') && mark !== '' && name.endsWith(mark)) return name
    if (name.startsWith('key:')) return `${name}${mark}`
    throw notAllowed('runs.start')
  }

  return {
    append: refused,
    claim: refused,
    fork: refused,
    read: (run, options) => new CheckedRead(base.read(run, options), { check: () => get(run), hides }),
    async post(run, key, message): Promise<Posted> {
      return base.post(ownInbox(run), key, message)
    },
    async postAll(run, messages): Promise<Posted[]> {
      return base.postAll(ownInbox(run), messages)
    },
    async *inbox(run: string, options?: InboxOptions): AsyncGenerator<InboxMessage> {
      if (await mayReadInbox(run)) yield* base.inbox(run, options)
    },
    async *changes(options?: ChangesOptions): AsyncGenerator<Change[]> {
      for await (const batch of base.changes(options)) {
        const seen: Change[] = []
        for (const change of batch) {
          if (!(await isVisible(change))) continue
          seen.push(hides ? { ...change, entries: hideTexts(change.entries) } : change)
        }
        // Also an empty one: the reader's position moves on.
        yield seen.length === 0 && batch.length > 0 ? [{ ...batch.at(-1)!, run: '', entries: [] }] : seen
      }
    },
    position: () => base.position(),
  }
}

/** Maximum number of runs whose owner is remembered. */
const mostKnown = 10_000

/** Whether changes are of a visible run. A run may be deleted, and its id used again: its first entry decides anew. */
function createVisibility(get: Get): (change: Change) => Promise<boolean> {
  const known = new Map<string, boolean>()
  return async ({ run, entries }) => {
    if (entries[0]?.type === 'run-start') known.delete(run)
    let isVisible = known.get(run)
    if (isVisible === undefined) {
      isVisible = (await get(run)) !== undefined
      if (known.size >= mostKnown) known.delete(known.keys().next().value!)
      known.set(run, isVisible)
    }
    return isVisible
  }
}

/** How a principal reads a run. The check comes before the first batch; after it a batch costs one call more. */
interface Reading {
  check: () => Promise<RunRow | undefined>
  /** Texts of agents are hidden. */
  hides: boolean
}

class CheckedRead implements AsyncIterable<Entry[]> {
  private readonly batches: AsyncIterable<Entry[]>
  private readonly reading: Reading

  constructor(batches: AsyncIterable<Entry[]>, reading: Reading) {
    this.batches = batches
    this.reading = reading
  }

  [Symbol.asyncIterator](): LogCursor<Entry[]> {
    return new CheckedCursor(this.batches[Symbol.asyncIterator]() as LogCursor<Entry[]>, this.reading)
  }
}

const end: IteratorResult<Entry[], undefined> = { done: true, value: undefined }

class CheckedCursor implements LogCursor<Entry[]> {
  private readonly inner: LogCursor<Entry[]>
  private readonly reading: Reading
  private isChecked = false
  readonly take: LogCursor<Entry[]>['take']

  constructor(inner: LogCursor<Entry[]>, reading: Reading) {
    this.inner = inner
    this.reading = reading
    const { take } = inner
    if (take === undefined) return
    this.take = (onResult, onError) => {
      const read = () => take.call(inner, reading.hides ? (result) => onResult(hidden(result)) : onResult, onError)
      if (this.isChecked) return read()
      this.passes().then((passes) => (passes ? read() : onResult(end)), onError)
    }
  }

  async next(): Promise<IteratorResult<Entry[], undefined>> {
    if (!this.isChecked && !(await this.passes())) return end
    const result = await this.inner.next()
    return this.reading.hides ? hidden(result) : result
  }

  async return(): Promise<IteratorResult<Entry[], undefined>> {
    await this.inner.return?.()
    return end
  }

  private async passes(): Promise<boolean> {
    this.isChecked = (await this.reading.check()) !== undefined
    if (!this.isChecked) await this.inner.return?.()
    return this.isChecked
  }
}

function hidden(result: IteratorResult<Entry[], undefined>): IteratorResult<Entry[], undefined> {
  if (result.done === true) return result
  const value = hideTexts(result.value)
  return value === result.value ? result : { done: false, value }
}

function createRecords(base: Records, filter: OwnerFilter, { get, hides }: Scope): Records {
  return {
    settle: () => base.settle(),
    isBehind: () => base.isBehind(),
    // SQL sees everything.
    query: refused,
    reindex: refused,
    async streamEvents(run, query) {
      // They have details of errors.
      if (hides) throw notAllowed('agents.read')
      return (await get(run)) === undefined ? [] : base.streamEvents(run, query)
    },
    search: (query: SearchQuery) => base.search({ ...query, ...filter }),
    totals: (query: StatsQuery) => base.totals({ ...query, ...filter }),
  }
}

/** Only single runs can be deleted. */
function createUpkeep(store: Store, base: Upkeep, principal: Principal): Upkeep {
  return {
    size: refused,
    uncompacted: refused,
    compact: refused,
    expired: refused,
    vacuum: refused,
    marks: (runs) => base.marks(runs),
    ...(base.generation !== undefined && { generation: () => base.generation!() }),
    async drop(run, options) {
      return (await rowFor(store, principal, 'runs.delete', run)) !== undefined && base.drop(run, options)
    },
    ...(base.erase !== undefined && { erase: (options) => base.erase!(options) }),
  }
}

// oxlint-disable-next-line typescript/require-await -- a rejection, as all failures of a store
async function refused(): Promise<never> {
  throw notAllowed('query')
}
