/** Keeps Redis small: see `Upkeep`. After a crash, interrupted work leaves readable data, and the next process repeats it. */
import { type RunIndex, hasEnded } from '../../part/log.ts'
import type { Upkeep, Compacted, Paced, UpkeepPage } from '../../part/upkeep.ts'
import type { Archive } from '../archive/archive.ts'
import type { RedisConnection } from './connection.ts'
import { createEndedRuns, type EndedRuns, type Lease } from './ended-runs.ts'
import { measureRuns } from './memory.ts'
import type { Pages } from './pages.ts'
import type { Rows } from './rows.ts'
import type { StoreClock } from './store-clock.ts'
import { partitionOf, type Partition } from './keys.ts'
import { readScript } from './read-script.ts'
import { createCompaction } from '../../fold/compaction.ts'
import { createLineMerge, pieceLength, type MergedLines } from '../merge-lines.ts'
import type { StoredRow } from '../run-row.ts'
import { partitions } from './index-script.ts'

export interface RedisUpkeepContext {
  connection: RedisConnection
  clock: StoreClock
  rows: Rows
  pages: Pages
  runs: Pick<RunIndex, 'list'>
  archive: Archive | undefined
  /** Called when the stored entries of a run differ from the appended ones. */
  changed(run: string): void
}

/** How long the times of changes are kept, in ms: for readers of the changes of all runs. */
const changesFor = 3_600_000
/** How long a measured size counts as current, in ms. */
const sizeFor = 60_000

export function createRedisUpkeep(context: RedisUpkeepContext): Upkeep {
  const { connection, clock, rows, pages, runs, archive, changed } = context
  const ended = createEndedRuns(connection)
  const expiry = createExpiry({ connection, ended, rows, runs, archive })
  const sizes = new Map<string, number>()
  let size = { bytes: 0, until: 0 }

  const upkeep: Upkeep = {
    async size() {
      if (performance.now() >= size.until) {
        size = { bytes: await measureRuns(connection), until: performance.now() + sizeFor }
      }
      return { used: Math.max(0, size.bytes), free: 0 }
    },
    async uncompacted(before, limit) {
      return (await ended.endedBefore('ended', before, limit)).map(([run]) => run)
    },
    async compact(run, options = {}) {
      const done = await compactRun({ ended, pages, rows, clock }, run, options)
      if (done !== undefined && options.dryRun !== true) {
        changed(run)
        size.until = 0
      }
      return done
    },
    async expired(idleBefore, after) {
      const page = await expiry.expired(idleBefore, after)
      sizes.clear()
      for (const { id, bytes } of page.runs) sizes.set(id, bytes)
      return page
    },
    async drop(run) {
      if (!(await expiry.drop(run))) return false
      changed(run)
      // Measuring again for each of many runs would take longer than deleting them.
      size.bytes -= sizes.get(run) ?? 0
      return true
    },
    marks: (list) => readMarks(connection, list),
    async vacuum() {
      await expiry.completeAll()
      await ended.forgetChanges(clock.now() - changesFor)
      await archive?.tidy()
    },
  }
  if (archive === undefined) return upkeep
  return {
    ...upkeep,
    async unarchived(before, limit) {
      const found = await Promise.all(
        (['ended', 'compacted'] as const).map((set) => ended.endedBefore(set, before, limit)),
      )
      return found
        .flat()
        .toSorted((a, b) => a[1] - b[1])
        .slice(0, limit)
        .map(([run]) => run)
    },
    async archive(run) {
      const done = await archiveRun({ ended, pages, rows, archive }, run)
      if (done) size.until = 0
      return done
    },
  }
}

/** Moves an ended run to the archive. After a crash before the last step it is still in Redis, and the work is repeated. */
interface ArchiveContext {
  ended: EndedRuns
  pages: Pages
  rows: Rows
  archive: Archive
}

async function archiveRun({ ended, pages, rows, archive }: ArchiveContext, run: string): Promise<boolean> {
  const what = `archive run ${run}`
  const known = await rows.load(run)
  if (known === undefined || !hasEnded(known.row.status)) return false
  const lease = await ended.lease(what, run)
  if (lease === undefined) return false
  try {
    let items = 0
    async function* entries() {
      for await (const page of pages.items(run)) {
        items += page.length
        yield await pages.decode(run, page)
        await lease!.renew()
      }
    }
    const batches = entries()
    const first = await batches.next()
    // It was archived before, or deleted.
    if (first.done === true) return false
    async function* whole() {
      yield first.value!
      yield* batches
    }
    await archive.put(known.row, whole())
    const place = archive.placeOf(known.row)
    const done = await ended.change(what, run, 'archived', [items, place])
    // It was deleted meanwhile.
    if (done === 0 && (await rows.load(run)) === undefined) await archive.remove(run, place)
    return done === 1
  } finally {
    await lease.release()
  }
}

/* Reads marks of runs: see `Upkeep`. A run's position in the list is its mark, because it is unique. */

/** ARGV: runs. Returns the position of each, or nothing. */
const marksOf = readScript(`
local T = string.sub(KEYS[1], 1, -7)
local found = {}
for i, run in ipairs(ARGV) do
  local n = redis.pcall('HGET', T .. ':run:' .. run, 'n')
  found[i] = type(n) == 'string' and n or ''
end
return found
`)

/** Maximum number of runs per script. */
const most = 500

/** Asks each partition once, for any number of runs. */
async function readMarks(connection: RedisConnection, runs: readonly string[]): Promise<(string | undefined)[]> {
  const parts = new Map<Partition, string[]>()
  for (const run of new Set(runs)) {
    const partition = partitionOf(run)
    parts.set(partition, [...(parts.get(partition) ?? []), run])
  }
  const marks = new Map<string, string>()
  await Promise.all(
    [...parts].map(async ([partition, list]) => {
      for (let at = 0; at < list.length; at += most) {
        const asked = list.slice(at, at + most)
        const found = await marksOf(connection, 'read runs', partition, asked)
        for (const [i, run] of asked.entries()) if (found[i] !== '') marks.set(run, found[i]!)
      }
    }),
  )
  return runs.map((run) => marks.get(run))
}

/* Compacts a run: reads its log, collects the merged entries under another key, and replaces the log at once. */

/** Characters of merged entries that are sent together. */
const sentLength = 256 * 1024

interface CompactContext {
  ended: EndedRuns
  pages: Pages
  rows: Rows
  clock: StoreClock
}

interface CompactedPiece extends MergedLines {
  /** `seq` of its last entry. */
  last: string
  items: number
  bytes: number
}

async function compactRun(
  { ended, pages, rows, clock }: CompactContext,
  run: string,
  { rest = async () => undefined, dryRun = false }: Paced & { dryRun?: boolean },
): Promise<Compacted | undefined> {
  const what = `compact run ${run}`
  const known = await rows.load(run)
  if (known === undefined || !hasEnded(known.row.status)) return undefined
  const lease = dryRun ? undefined : await ended.lease(what, run)
  if (!dryRun && lease === undefined) return undefined
  const total = { entriesBefore: 0, entriesAfter: 0, bytesBefore: 0, bytesAfter: 0 }
  try {
    let [items, count] = [0, 0]
    let unsent: CompactedPiece[] = []
    for await (const piece of piecesOf(run, pages)) {
      total.entriesBefore += piece.before
      total.entriesAfter += piece.after
      total.bytesBefore += piece.bytes
      total.bytesAfter += Buffer.byteLength(piece.text)
      items += piece.items
      count++
      unsent.push(piece)
      if (lease !== undefined && lengthOf(unsent) > sentLength) unsent = await send(lease, unsent)
      await rest()
      await lease?.renew()
    }
    // Archived.
    if (lease === undefined || items === 0) return total
    const isSmaller = total.entriesAfter < total.entriesBefore
    const isWorthIt = isSmaller || count < items
    if (isWorthIt) await send(lease, unsent)
    const { row } = known
    const kept = JSON.stringify(isSmaller ? { ...row, compactedAt: clock.now() } : row)
    const done = await ended.change(what, run, 'compacted', [lease.token, items, isWorthIt ? count : 0, kept])
    return done === 1 ? total : undefined
  } finally {
    await lease?.release()
  }

  async function send({ token }: Lease, pieces: CompactedPiece[]): Promise<CompactedPiece[]> {
    const texts = pieces.flatMap(({ last, text }) => [last, text])
    await ended.change(what, run, 'merge', [token, pieces.length, ...texts])
    return []
  }
}

function lengthOf(pieces: readonly CompactedPiece[]): number {
  return pieces.reduce((sum, { text }) => sum + text.length, 0)
}

async function* piecesOf(run: string, pages: Pages): AsyncGenerator<CompactedPiece, void, void> {
  const lines = createLineMerge(run, createCompaction())
  let last = ''
  let [items, bytes, length] = [0, 0, 0]
  for await (const page of pages.items(run)) {
    for (const [id, [, text]] of page) {
      lines.add(text!)
      last = id.slice(0, id.indexOf('-'))
      bytes += Buffer.byteLength(text!) + (items === 0 ? 0 : 1)
      items++
      length += text!.length
      if (length < pieceLength) continue
      yield { ...lines.finish(), last, items, bytes }
      items = bytes = length = 0
    }
  }
  if (items > 0) yield { ...lines.finish(), last, items, bytes }
}

/* Finds and deletes expired runs. */

/** Number of runs that are checked at once. */
const window = 100
/** Number of runs of a thread in one page. */
const page = 1000

interface ExpiryContext {
  connection: RedisConnection
  ended: EndedRuns
  rows: Rows
  runs: Pick<RunIndex, 'list'>
  archive: Archive | undefined
}

function createExpiry({ connection, ended, rows, runs, archive }: ExpiryContext) {
  const { keys, ask } = connection
  const all = Array.from({ length: partitions }, (_, partition): Partition => partition)

  /** The first runs after a position, in the order of their starts. */
  async function runsAfter(after: number): Promise<[run: string, n: number][]> {
    const range = [`(${after}`, '+inf', 'WITHSCORES', 'LIMIT', '0', String(window)]
    const found = await Promise.all(
      all.map(async (partition) => {
        const key = `${keys.tag(partition)}:runs`
        return (await ask('list runs', key, ['ZRANGEBYSCORE', key, ...range])) as [string, number][]
      }),
    )
    return found
      .flat()
      .toSorted((a, b) => a[1] - b[1])
      .slice(0, window)
  }

  /** Whether a thread has no active run, and none since a moment. */
  async function isIdle(threadId: string, idleBefore: number): Promise<boolean> {
    const active = await runs.list({ threadId, status: ['running', 'suspended'], limit: 1 })
    if (active.length > 0) return false
    for (let before: string | undefined; idleBefore < Infinity;) {
      const some = await runs.list({ threadId, limit: page, ...(before !== undefined && { before }) })
      if (some.some(({ updatedAt }) => updatedAt >= idleBefore)) return false
      if (some.length < page) break
      before = some.at(-1)!.id
    }
    return true
  }

  async function isFree(row: StoredRow, isThreadIdle: (threadId: string) => Promise<boolean>): Promise<boolean> {
    if (!hasEnded(row.status) || !(await isThreadIdle(row.threadId))) return false
    const caller = row.parentRunId === undefined ? undefined : await rows.find(row.parentRunId)
    return caller === undefined || hasEnded(caller.row.status)
  }

  async function bytesOf(run: string): Promise<number> {
    const used = [keys.run(run), keys.log(run), keys.texts(run)].map((key) =>
      ask('read the size', key, ['MEMORY', 'USAGE', key]),
    )
    return (await Promise.all(used)).reduce<number>((sum, bytes) => sum + Number(bytes ?? 0), 0)
  }

  /** Removes the remains of a deleted run outside of its partition. `left`: its place in the archive, if any, and its thread. */
  async function complete(run: string, left: string): Promise<void> {
    const end = left.indexOf(' ')
    const [place, threadId] = [left.slice(0, end), left.slice(end + 1)]
    // Only a process with the archive can complete it.
    if (place !== '' && archive === undefined) return
    if (place !== '') await archive!.remove(run, place)
    if ((await runs.list({ threadId, limit: 1 })).length === 0) {
      const inbox = `thread:${threadId}`
      await ask(`delete run ${run}`, keys.inbox(inbox), [
        'UNLINK',
        keys.inbox(inbox),
        keys.messages(inbox),
        keys.title(threadId),
      ])
    }
    const key = `${keys.tag(partitionOf(run))}:dropped`
    await ask(`delete run ${run}`, key, ['HDEL', key, run])
  }

  /** Completes interrupted deletions. */
  async function completeAll(): Promise<void> {
    for (const partition of all) {
      const key = `${keys.tag(partition)}:dropped`
      for (const run of (await ask('delete runs', key, ['HKEYS', key])) as string[]) {
        const left = (await ask('delete runs', key, ['HGET', key, run])) as string | null
        // A damaged value has neither place nor thread.
        if (left !== null) await complete(run, left.includes(' ') ? left : ' ')
      }
    }
  }

  return {
    completeAll,
    async expired(idleBefore: number, after = 0): Promise<UpkeepPage> {
      const places = await runsAfter(after)
      const loaded = await Promise.all(places.map(([run]) => rows.find(run)))
      const found = loaded.flatMap((known) => (known === undefined ? [] : [known.row]))
      const idle = new Map<string, Promise<boolean>>()
      const isThreadIdle = (threadId: string) => {
        if (!idle.has(threadId)) idle.set(threadId, isIdle(threadId, idleBefore))
        return idle.get(threadId)!
      }
      const free: UpkeepPage['runs'] = []
      for (const row of found) {
        if (row.updatedAt < idleBefore && (await isFree(row, isThreadIdle))) {
          free.push({ id: row.id, bytes: await bytesOf(row.id) })
        }
      }
      // Runs are in the order of their starts: later ones are too new.
      const isOver = places.length < window || found.every(({ startedAt }) => startedAt >= idleBefore)
      return isOver ? { runs: free } : { runs: free, next: places.at(-1)![1] }
    },
    async drop(run: string): Promise<boolean> {
      const known = await rows.load(run)
      if (known === undefined || !(await isFree(known.row, (threadId) => isIdle(threadId, Infinity)))) return false
      // After a crash it may be in the archive although its row does not show it.
      const said = (await ask(`delete run ${run}`, keys.run(run), ['HGET', keys.run(run), 'archive'])) as string | null
      const left = `${said ?? archive?.placeOf(known.row) ?? ''} ${known.row.threadId}`
      if ((await ended.change(`delete run ${run}`, run, 'drop', [left])) !== 1) return false
      await complete(run, left)
      return true
    },
  }
}
