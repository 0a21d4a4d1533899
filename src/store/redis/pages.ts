/** Reads the streams of runs in pages. */
import type { Entry } from '../../part/entry.ts'
import { hasEnded, type RunStatus } from '../../part/log.ts'
import { MillraceError } from '../../part/error.ts'
import type { ArchiveReader } from '../archive/archive-reader.ts'
import { decodeEntries, type Restore } from '../encode.ts'
import { indexAfter } from '../live-tail-cache.ts'
import { storeDamaged } from '../store-error.ts'
import type { RedisConnection } from './connection.ts'
import { createForkTimes } from './fork-times.ts'
import { partitionOf } from './keys.ts'
import type { RedisTexts } from './texts.ts'

/** Maximum number of items, each of which has the entries of an append. */
const pageItems = 256
/** Number of times that a page is read if it has texts that are gone. */
const mostTries = 2

/** The position and state of a run. */
export interface RunHead {
  epoch: number
  seq: number
  status: RunStatus
}

export interface Page {
  /** Undefined if there is no such run. */
  head: RunHead | undefined
  /** In the reader's own array. */
  entries: Entry[]
}

export type Item = [id: string, fields: string[]]

/** Decodes stored lines, which may be damaged. */
export function readLines(run: string, texts: readonly string[], restore?: Restore): Entry[] {
  try {
    const entries = decodeEntries(texts, restore)
    if (entries.every(isEntry)) return entries
  } catch {
    // Invalid JSON is no entry.
  }
  throw storeDamaged(`cannot read run ${run}`, 'an entry that is none')
}

function isEntry(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  const { seq, type } = value as Partial<Entry>
  return Number.isSafeInteger(seq) && typeof type === 'string'
}

export function createPages(
  { keys, ask }: RedisConnection,
  archive: ArchiveReader | undefined,
  texts: Pick<RedisTexts, 'restorer'>,
) {
  const forkTimes = createForkTimes((run, after) => stored(run, after, 1))

  async function head(run: string): Promise<RunHead | undefined> {
    const key = keys.run(run)
    const asked = await ask(`read run ${run}`, key, ['HMGET', key, 'epoch', 'seq', 'status'])
    const [epoch, seq, status] = asked as (string | null)[]
    return typeof epoch === 'string'
      ? { epoch: Number(epoch), seq: Number(seq), status: status as RunStatus }
      : undefined
  }

  /** Entries after this one, from at most `items` items. */
  async function entries(run: string, after: number, items = pageItems): Promise<Entry[]> {
    const found = await stored(run, after, items)
    const [start] = found
    if (start?.type !== 'run-start' || start.forkedFrom === undefined || start.forkedFrom.at !== undefined) return found
    const at = await forkTimes.of(run, start.forkedFrom.seq)
    if (at !== undefined) found[0] = { ...start, forkedFrom: { ...start.forkedFrom, at } }
    return found
  }

  /** The same as they were stored. */
  async function stored(run: string, after: number, items: number): Promise<Entry[]> {
    const key = keys.log(run)
    // The id of an item is the seq of its last entry, so the first one may begin before.
    const range = ['XRANGE', key, String(after + 1), '+', 'COUNT', String(Math.min(items, pageItems))]
    for (let tries = 1; ; tries++) {
      const found = (await ask(`read run ${run}`, key, range)) as Item[]
      if (found.length === 0) return archived(run, after)
      const lines = found.map(([, fields]) => fields[1] ?? '')
      const { restore, isWhole } = await texts.restorer(`read run ${run}`, partitionOf(run), lines)
      // Archived or deleted in between.
      if (!isWhole && tries < mostTries) continue
      const all = readLines(run, lines, restore)
      return all.slice(indexAfter(all, after))
    }
  }

  /** Entries after this one of an archived run. */
  async function archived(run: string, after: number): Promise<Entry[]> {
    const key = keys.run(run)
    const [seq, place] = (await ask(`read run ${run}`, key, ['HMGET', key, 'seq', 'archive'])) as (string | null)[]
    if (typeof place !== 'string' || Number(seq) <= after) return []
    if (archive === undefined) {
      const cure = 'Set record.archive, or MILLRACE_ARCHIVE, to the place that all instances use'
      throw new MillraceError('store-failed', `Run ${run} is in an archive. ${cure}.`, { status: 503 })
    }
    return archive.page(run, place, after)
  }

  return {
    head,
    entries,
    forkTimes,
    /** The entries of items. Throws `store-damaged` if a text of theirs is missing. */
    async decode(run: string, items: readonly Item[]): Promise<Entry[]> {
      const lines = items.map(([, fields]) => fields[1] ?? '')
      const { restore, isWhole } = await texts.restorer(`read run ${run}`, partitionOf(run), lines)
      if (!isWhole) throw storeDamaged(`read run ${run}`, 'a text of an entry is missing')
      return decodeEntries(lines, restore)
    },
    /** All items of a run in Redis, as stored. */
    async *items(run: string): AsyncGenerator<Item[], void, void> {
      const key = keys.log(run)
      for (let from = '-'; ;) {
        const range = ['XRANGE', key, from, '+', 'COUNT', String(pageItems)]
        const found = (await ask(`read run ${run}`, key, range)) as Item[]
        if (found.length > 0) yield found
        if (found.length < pageItems) return
        from = `(${found.at(-1)![0]}`
      }
    },
    /** The head is requested first: if the run has ended, the entries are complete. */
    async page(run: string, after: number, items?: number): Promise<Page> {
      const [found, read] = await Promise.all([head(run), entries(run, after, items)])
      return { head: found, entries: read }
    },
  }
}

export type Pages = ReturnType<typeof createPages>

export function isOver(head: RunHead | undefined): boolean {
  return head !== undefined && hasEnded(head.status)
}
