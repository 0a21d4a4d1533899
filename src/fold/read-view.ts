/**
 * Reads the view of a run: the stored one if it includes the run's last entry, otherwise a fold of its log. The fold of an ended or
 * suspended run is stored, which repairs old databases and lost writes.
 */
import type { Entry, EntryOf } from '../part/entry.ts'
import { hasEnded, type KeptView, type Log, type RunIndex, type RunRow, type Store } from '../part/log.ts'
import { keptVersion, toView, type KeptRun } from './kept-run.ts'
import { foldRun, type FoldedRun } from './run-fold.ts'
import type { RunView } from './run-view.ts'

type LogAndRuns = Pick<Store, 'log' | 'runs'>

/** The stored form of a run's view. Undefined if there is no such run. */
export async function readKept(store: LogAndRuns, run: string): Promise<KeptRun | undefined> {
  const stored = usable(await store.runs.view(run))
  // Nothing can follow the end.
  if (stored !== undefined && hasEnded(stored.status)) return stored
  const row = await store.runs.get(run)
  return row && keptOf(store, row)
}

/** The same for a row that was just read. Undefined for a run without entries. */
export async function keptOf(store: LogAndRuns, row: RunRow): Promise<KeptRun | undefined> {
  return (await load(store, row))?.stored
}

/** A run as clients see it. Undefined if there is no such run. */
export async function readView(store: LogAndRuns, run: string): Promise<RunView | undefined> {
  const row = await store.runs.get(run)
  const { stored, fold } = (row && (await load(store, row))) ?? {}
  if (stored === undefined || fold !== undefined) return fold?.view()
  const start = await entryAt(store.log, run, 1)
  if (stored.steps !== undefined && start?.type === 'run-start') {
    return toView(stored, { start, end: { output: await readOutput(store.log, run, stored) } })
  }
  return (await foldLog(store.log.read(run)))?.view()
}

/** The output of an ended run. */
export async function readOutput(log: Log, run: string, { hasOutput, lastSeq }: KeptRun): Promise<unknown> {
  const end = hasOutput === true ? await entryAt(log, run, lastSeq) : undefined
  return end?.type === 'run-end' ? end.output : undefined
}

async function load({ log, runs }: LogAndRuns, { id, lastSeq, compactedAt }: RunRow): Promise<Loaded | undefined> {
  const stored = usable(await runs.view(id))
  if (stored?.lastSeq === lastSeq) return { stored }
  const fold = await foldLog(log.read(id))
  if (fold === undefined) return undefined
  const isWanted = compactedAt === undefined && (fold.end !== undefined || fold.open.suspended)
  if (isWanted) await keepView(runs, id, fold)
  return { stored: fold.kept(), fold }
}

/** Undefined unless the stored view has the expected shape: other programs may have changed it. */
function usable(found: KeptView | undefined): KeptRun | undefined {
  const stored = found?.view as KeptRun | null | undefined
  if (stored?.version !== keptVersion) return undefined
  const lists = [stored.asked, stored.messages, stored.requests, stored.ended, stored.usageByModel]
  return lists.every(Array.isArray) ? stored : undefined
}

interface Loaded {
  stored: KeptRun
  /** Set if the log was read. */
  fold?: FoldedRun
}

/** Stores the view of a run that has ended or is suspended. A failure does no harm: the next reader folds the log. */
export async function keepView(runs: RunIndex, run: string, fold: FoldedRun): Promise<void> {
  try {
    const stored = viewOf(fold)
    if (stored !== undefined) await runs.keepView(run, stored.seq, stored.view)
  } catch {
    // The store fails, or is read-only.
  }
}

/** In characters. Making the JSON of longer texts would block other runs for too long. */
const mostText = 4 * 1024 * 1024

/** The view of a run as it is stored. Undefined if it is too long: readers fold the log. */
export function viewOf(fold: FoldedRun): KeptView | undefined {
  const view = fold.kept()
  let length = 0
  for (const { content } of view.messages) length += typeof content === 'string' ? content.length : lengthOf(content)
  return length > mostText ? undefined : { seq: fold.lastSeq, view }
}

/** The length of all texts of a value, counted up to a little more than `mostText`. */
function lengthOf(value: object): number {
  const left: object[] = [value]
  let length = 0
  for (let at = left.pop(); at !== undefined && length <= mostText; at = left.pop()) {
    for (const inner of Object.values(at) as unknown[]) {
      if (typeof inner === 'string') length += inner.length
      else if (typeof inner === 'object' && inner !== null) left.push(inner)
    }
  }
  return length
}

/** Folds a log's entries. Undefined if there are none. */
export async function foldLog(batches: AsyncIterable<Entry[]>): Promise<FoldedRun | undefined> {
  let fold: FoldedRun | undefined
  for await (const batch of batches) {
    fold ??= foldRun()
    for (const entry of batch) fold.apply(entry)
  }
  return fold
}

/** One entry of a run. */
export async function entryAt(log: Log, run: string, seq: number): Promise<Entry | undefined> {
  for await (const [entry] of log.read(run, { after: seq - 1, limit: 1 })) return entry?.seq === seq ? entry : undefined
  return undefined
}

/** Rejects with `compacted` if a client's cursor stands inside merged deltas. */
export async function checkCursor(log: Log, run: string, after: number): Promise<void> {
  if (after > 0) for await (const _ of log.read(run, { after, limit: 1 })) return
}

/** The input with which a run was started. */
export async function readInput(log: Log, run: string): Promise<Record<string, unknown>> {
  return ((await entryAt(log, run, 1)) as EntryOf<'run-start'> | undefined)?.input ?? {}
}
