/**
 * An append. As long as this process knows the run, it folds the row itself and the script only compares. A mismatch (sent again, fenced, a gap) is
 * decided with the stored data.
 */
import type { Entry } from '../../part/entry.ts'
import { MillraceError } from '../../part/error.ts'
import type { Appended, Batch, KeptView } from '../../part/log.ts'
import { admitEntries, isSameEntry } from '../check-append.ts'
import { encodeMessage } from '../encode.ts'
import { indexAfter } from '../live-tail-cache.ts'
import { fold } from '../run-query.ts'
import { dueAt, foldRow, hasOnlyGrown, isRenamed, type StoredRow } from '../run-row.ts'
import { entriesLost } from '../store-error.ts'
import type { Pages } from './pages.ts'
import type { Rows, StoredRun } from './rows.ts'
import { listed, operation } from './script.ts'
import { textMissing, type SharedLines } from './texts.ts'
import type { Job, Send } from './write-queue.ts'

/** The change of an append. The entries are only in its `lines`: it is kept for seconds, and long-lived objects burden the garbage collector. */
export interface Change {
  run: string
  before: StoredRow | undefined
  row: StoredRow
  lines: string
  view: { seq: number; text: string } | undefined
}

/** A change with its entries. */
export interface Appending extends Change {
  entries: Entry[]
  shared: SharedLines | undefined
}

export interface AppendContext {
  process: string
  rows: Rows
  pages: Pages
  /** The row after the pending operations; undefined if unknown. */
  expected(run: string): StoredRow | undefined
  expect(run: string, row: StoredRow): void
  /** Whether an operation of this run is done alone, so that later ones must be, too. */
  isUnsure(run: string): boolean
  doubt(run: string): void
  encode(run: string, entries: readonly Entry[]): string
  share(run: string, entries: readonly Entry[], lines: string): SharedLines | undefined
  /** A text was not sent, and is not stored. */
  missing(run: string, shared: SharedLines): void
  stored(appending: Appending): void
  /** This process's data about the run may be outdated. */
  outdated(run: string): void
  /** The `seq` of the last entry that this process knows to be stored. */
  lastKnown(run: string): number
  /** Rewrites the entries of a run that Redis has lost. */
  heal(run: string): Promise<void>
}

/** Maximum number of attempts when other processes write in between. */
const mostTries = 10

/** `whole`: the row is sent in any case. */
export function appendOperation(
  process: string,
  { run, before, row, lines, view }: Change,
  shared: SharedLines | undefined,
  { whole = false } = {},
): string[] {
  const isGrown = !whole && before !== undefined && hasOnlyGrown(before, row)
  return operation('append', [
    run,
    row.epoch,
    process,
    before?.lastSeq ?? 0,
    row.lastSeq,
    row.updatedAt,
    lines,
    ...(isGrown ? ['', '', ''] : [row.status, JSON.stringify(row), dueAt(row) ?? '']),
    ...listed(indexed(before, row)),
    ...(view === undefined ? ['', ''] : [view.seq, view.text]),
    ...(shared === undefined ? [] : [shared.lines, ...shared.args]),
  ])
}

/** The fields that the lists of runs need. */
export function indexed(before: StoredRow | undefined, row: StoredRow): string[] {
  if (before === undefined) {
    const { agent, threadId, startedAt, title = '', owner = '', tenant = '' } = row
    return [agent, threadId, String(startedAt), fold(title), owner, tenant]
  }
  return isRenamed(before, row) ? [before.agent, row.agent, fold(row.title ?? '')] : []
}

export interface AppendRequest {
  run: string
  epoch: number
  given: Batch
  view: (() => KeptView | undefined) | undefined
}

export function createAppendJob(
  context: AppendContext,
  { run, epoch, given, view }: AppendRequest,
  settle: { resolve(appended: Appended): void; reject(error: MillraceError): void },
): Job {
  // Copied: its owner may change it.
  let entries: readonly Entry[] = typeof given === 'function' ? [] : [...given]
  let appending: Appending | undefined
  let kept: { view: Appending['view'] } | undefined

  function build(before: StoredRow | undefined, admitted: readonly Entry[]): Appending {
    const row = foldRow(before, run, epoch, admitted)
    const lines = context.encode(run, admitted)
    const shared = context.share(run, admitted, lines)
    return { run, before, row, entries: [...admitted], lines, shared, view: keptView() }
  }

  /** Called once, after the entries. */
  function keptView(): Appending['view'] {
    if (kept) return kept.view
    const found = view?.()
    kept = { view: found && { seq: found.seq, text: encodeMessage(run, 'view', found.view) } }
    return kept.view
  }

  function isDone(result: unknown): boolean {
    if (result === textMissing && appending?.shared !== undefined) context.missing(run, appending.shared)
    if (result !== 1) return false
    context.stored(appending!)
    settle.resolve('stored')
    return true
  }

  function fence(): void {
    context.outdated(run)
    settle.resolve('fenced')
  }

  async function decide(send: Send): Promise<boolean> {
    let known = await context.rows.load(run)
    if (hasLost(known)) {
      await context.heal(run)
      known = await context.rows.load(run)
      if (hasLost(known)) throw entriesLost(run)
    }
    const { lastSeq = 0 } = known?.row ?? {}
    const stored = entries[0]!.seq > lastSeq ? [] : await readRange(entries[0]!.seq - 1, lastSeq)
    const isStored = (entry: Entry) => {
      const found = stored[indexAfter(stored, entry.seq - 1)]
      return found !== undefined && isSameEntry(found, entry)
    }
    const admitted = admitEntries(run, known?.row, epoch, entries, isStored)
    if (admitted === 'fenced') {
      fence()
      return true
    }
    // The response to its own append was lost.
    if (admitted === 'duplicate' && appending !== undefined) return isDone(1)
    if (admitted === 'duplicate') {
      const toKeep = keptView()
      if (toKeep) await send([operation('view', [run, toKeep.seq, toKeep.text])])
      settle.resolve('duplicate')
      return true
    }
    if (known && known.owner !== '' && known.owner !== context.process) {
      fence()
      return true
    }
    appending = build(known?.row, admitted)
    const [result] = await send([appendOperation(context.process, appending, appending.shared)])
    if (typeof result === 'string') throw new Error(result)
    return isDone(result)
  }

  async function readRange(after: number, lastSeq: number): Promise<Entry[]> {
    const end = Math.min(lastSeq, entries.at(-1)!.seq)
    const found: Entry[] = []
    for (let at = after; at < end;) {
      const page = await context.pages.entries(run, at)
      if (page.length === 0) break
      found.push(...page)
      at = page.at(-1)!.seq
    }
    return found
  }

  function hasLost(known: StoredRun | undefined): boolean {
    return (known?.row.lastSeq ?? 0) < context.lastKnown(run) && (known?.row.epoch ?? epoch) <= epoch
  }

  /** Whether the entries directly follow a row. If not, the row may be outdated. */
  function fits(before: StoredRow | undefined): boolean {
    if (before === undefined && entries[0]!.type !== 'run-start') return false
    try {
      return admitEntries(run, before, epoch, entries, () => false) === entries
    } catch {
      return false
    }
  }

  return {
    what: `append to run ${run}`,
    prepare() {
      if (typeof given === 'function') entries = given()
      if (entries.length === 0) {
        settle.resolve('stored')
        return 'done'
      }
      const before = context.expected(run)
      if (!context.isUnsure(run) && fits(before)) {
        appending = build(before, entries)
        context.expect(run, appending.row)
        return appendOperation(context.process, appending, appending.shared)
      }
      context.doubt(run)
      return 'alone'
    },
    take: isDone,
    async alone(send, isRepeated) {
      // If it was sent only once, it has not been stored.
      if (!isRepeated) appending = undefined
      for (let i = 0; i < mostTries; i++) if (await decide(send)) return
      throw new Error(`run ${run} changes all the time`)
    },
    fail(error) {
      context.doubt(run)
      // Whether it is stored is unknown.
      if (error.code === 'store-failed') context.outdated(run)
      settle.reject(error)
    },
  }
}
