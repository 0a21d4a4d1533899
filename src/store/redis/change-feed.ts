/**
 * The changes of all runs, in one order over all partitions. A poll uses the same end position for all of them, and advances their clocks to it: no
 * later change gets a position up to it. Readers at the same position share one poll.
 */
import { leavable } from '../../async/leavable.ts'
import type { Entry } from '../../part/entry.ts'
import { MillraceError } from '../../part/error.ts'
import type { Change, ChangesOptions, Log } from '../../part/log.ts'
import type { Channels } from './channels.ts'
import type { RedisConnection } from './connection.ts'
import { partitions } from './index-script.ts'
import type { Partition } from './keys.ts'
import { hasShared } from '../shared-texts.ts'
import { readLines } from './pages.ts'
import { readScript } from './read-script.ts'
import { damagedIs, clockScript } from './damage-script.ts'
import type { RedisTexts } from './texts.ts'
import type { Restore } from '../encode.ts'

/*
 * Reads changes of one partition. Before, it moves the partition's clock, so that later changes get positions after the end of this read: the
 * delivered range is then complete forever.
 *
 * KEYS: `T:clock`. ARGV: start position (exclusive), end position, and approximate bytes of entries. Returns the position up to which the reply is
 * complete, and for each change its position, run, first and last `seq` and lines; empty lines: the item is gone.
 */

/** Maximum number of changes in a reply. */
const most = 256

const lookScript = String.raw`#!lua flags=allow-oom
local T = string.sub(KEYS[1], 1, -7)
${clockScript}
local after, upto, left = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
readClock()
clock = math.max(clock, upto)
keepClock()
local found = { whole(upto) }
if upto <= after then return found end
-- What is damaged has nothing to say: who writes next makes it anew.
local items = redis.pcall('XRANGE', T .. ':changes', whole(after + 1), whole(upto), 'COUNT', ${most})
for i, item in ipairs(items) do
  local n = string.match(item[1], '^%d+')
  local run, first, last = item[2][2] or '', item[2][4] or '', item[2][6] or ''
  local stored = redis.pcall('XRANGE', T .. ':log:' .. run, last, last)[1]
  local lines = stored and stored[2][2] or ''
  for _, each in ipairs({ n, run, first, last, lines }) do found[#found + 1] = each end
  -- Texts that are shared count where they are read.
  left = left - (stored and tonumber(stored[2][4]) or #lines)
  if left <= 0 or i == ${most} then
    found[1] = n
    break
  end
end
return found
`

/** Polling interval without notifications, in ms: notifications may be lost. */
const lookEvery = 1000
/** Minimum time between two polls of a reader that keeps up, in ms. */
const gap = 10
/** Maximum size of a partition's reply to a poll, and of the cache for other readers, in characters of JSON. */
const mostOfLook = 128 * 1024
const mostKept = 1024 * 1024

const look = readScript(lookScript)
const what = 'read the changes of all runs'

const isPlace = (n: number) => Number.isSafeInteger(n) && n >= 0

/** Empty for a damaged run: it must not block readers of all runs. */
function readable(run: string, lines: string, restore: Restore): Entry[] {
  try {
    return readLines(run, [lines], restore)
  } catch {
    return []
  }
}

interface Look {
  changes: Change[]
  /** All changes up to this position are known, and no more will come. */
  upto: number
}

export interface ChangeFeed {
  read(options?: ChangesOptions): AsyncIterable<Change[]>
  position(): Promise<number>
  /** Ends all readers. */
  end(): void
}

export function createChangeFeed(
  connection: RedisConnection,
  channels: Channels,
  log: Pick<Log, 'read'>,
  texts: Pick<RedisTexts, 'restorer'>,
): ChangeFeed {
  const { keys, ask } = connection
  const all = Array.from({ length: partitions }, (_, partition): Partition => partition)
  /** Running and completed polls, by their start position, with their size. */
  const looks = new Map<number, { found: Promise<Look>; length: number }>()
  /** One for each following reader: a function that ends it. */
  const followers = new Set<() => void>()
  let kept = 0
  let rings = 0
  let rung = Promise.withResolvers<void>()
  let closed = false

  function ring(): void {
    rings++
    rung.resolve()
    rung = Promise.withResolvers()
  }

  async function clockOf(partition: Partition): Promise<number> {
    const key = `${keys.tag(partition)}:clock`
    const place = await ask(what, key, ['GET', key]).catch(damagedIs(undefined))
    if (place === null) return 0
    if (place !== '' && isPlace(Number(place))) return Number(place)
    // The script restores it.
    await look(connection, what, partition, ['0', '0', '0'])
    return Number(await ask(what, key, ['GET', key]))
  }

  async function lastPlace(): Promise<number> {
    return Math.max(...(await Promise.all(all.map(clockOf))))
  }

  /** The remaining entries of a change whose item is gone, because the run was dropped or its deltas were merged. */
  async function readRange(run: string, first: number, last: number, after = first - 1): Promise<Entry[]> {
    const entries: Entry[] = []
    try {
      for await (const batch of log.read(run, { after, before: last + 1 })) entries.push(...batch)
    } catch (error) {
      const isGone =
        error instanceof MillraceError && ['compacted', 'unknown-run', 'store-damaged'].includes(error.code)
      if (!isGone) throw error
      // It begins inside merged deltas: a compacted run is short.
      if (error.code === 'compacted') return readRange(run, first, last, 0)
    }
    return entries.filter(({ seq }) => seq >= first)
  }

  function lookBetween(after: number, end: number): Promise<string[][]> {
    const args = [String(after), String(end), String(mostOfLook)]
    return Promise.all(all.map((partition) => look(connection, what, partition, args)))
  }

  async function lookAfter(after: number): Promise<Look & { length: number }> {
    const end = await lastPlace()
    if (end <= after) return { changes: [], upto: after, length: 0 }
    const answers = await lookBetween(after, end)
    // If one partition has more, the others must wait for it.
    const upto = Math.min(...answers.map(([place]) => Number(place)))
    const changes: Change[] = []
    let length = 0
    for (const [partition, [, ...answer]] of answers.entries()) {
      const all = answer.filter((_, i) => i % 5 === 4)
      const { restore, isWhole, length: shared } = await texts.restorer(what, partition, all)
      length += shared
      for (let i = 0; i < answer.length && Number(answer[i]) <= upto; i += 5) {
        const [n, run, first, last, lines] = answer.slice(i, i + 5) as [string, string, string, string, string]
        length += lines.length
        const entries =
          lines === '' || (!isWhole && hasShared(lines))
            ? await readRange(run, Number(first), Number(last))
            : readable(run, lines, restore)
        // In a compacted run the item may contain earlier entries.
        while (entries.length > 0 && entries[0]!.seq < Number(first)) entries.shift()
        if (entries.length > 0) changes.push({ n: Number(n), run, entries })
      }
    }
    return { changes: changes.sort((a, b) => a.n - b.n), upto, length }
  }

  /** Readers at the same position, and slightly later ones, share a poll. */
  function lookOnce(after: number): Promise<Look> {
    const known = looks.get(after)
    if (known !== undefined) return known.found
    const found = lookAfter(after)
    const entry = { found, length: 0 }
    looks.set(after, entry)
    const done = ({ upto, length }: { upto: number; length: number }) => {
      // An empty reply is not cached: changes may come later.
      if (upto === after) return void looks.delete(after)
      entry.length = length
      kept += length
      for (const [place, oldest] of looks) {
        if (kept <= mostKept || oldest === entry) break
        kept -= oldest.length
        looks.delete(place)
      }
    }
    found.then(done, () => looks.delete(after))
    return found
  }

  function join(leave: () => void): void {
    followers.add(leave)
    if (followers.size > 1) return
    const opened = all.map((partition) => channels.open(keys.changed(partition), ring))
    // Earlier notifications were missed.
    Promise.all(opened).then(ring, () => undefined)
  }

  function quit(leave: () => void): void {
    followers.delete(leave)
    if (followers.size > 0) return
    for (const partition of all) void channels.close(keys.changed(partition))
    looks.clear()
    kept = 0
  }

  async function* follow(
    { after = 0, signal }: ChangesOptions,
    left: AbortSignal,
  ): AsyncGenerator<Change[], void, void> {
    const { promise: gone, resolve: leave } = Promise.withResolvers<undefined>()
    const end = () => leave(undefined)
    left.addEventListener('abort', end)
    signal?.addEventListener('abort', end)
    if (signal) join(end)
    try {
      let place = after
      const goal = signal ? Infinity : await lastPlace()
      while (!closed && !left.aborted && !signal?.aborted) {
        const heard = rings
        const began = performance.now()
        const found = await Promise.race([lookOnce(place), gone])
        if (found === undefined) return
        const isNew = found.upto > place
        place = found.upto
        if (found.changes.length > 0) yield found.changes.map((each) => ({ ...each, entries: [...each.entries] }))
        if (place >= goal) return
        if (isNew) continue
        if (heard === rings) await Promise.race([rung.promise, pause(lookEvery), gone])
        await Promise.race([pause(began + gap - performance.now()), gone])
      }
    } catch (error) {
      if (!closed) throw error
    } finally {
      signal?.removeEventListener('abort', end)
      if (signal) quit(end)
    }
  }

  return {
    read: (options = {}) => ({ [Symbol.asyncIterator]: () => leavable((left) => follow(options, left)) }),
    async position() {
      const end = await lastPlace()
      // From now on, changes get later positions in every partition.
      if (end > 0) await lookBetween(end, end)
      return end
    },
    end() {
      closed = true
      for (const leave of followers) leave()
    },
  }
}

/** Resolves after `ms`; does not keep the process alive. */
function pause(ms: number): Promise<undefined> {
  return new Promise((resolve) => void setTimeout(() => resolve(undefined), Math.max(0, ms)).unref())
}
