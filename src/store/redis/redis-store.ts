/** A store in Redis or Valkey, shared by many processes. decisions/0025 describes its layout. */
import { randomUUID } from 'node:crypto'
import type { Entry } from '../../part/entry.ts'
import { MillraceError } from '../../part/error.ts'
import {
  hasEnded,
  type InboxMessage,
  type Log,
  type OnStored,
  type RunIndex,
  type Store,
  type Positions,
} from '../../part/log.ts'
import type { StoreStatus } from '../../part/store-status.ts'
import { createArchiveReader } from '../archive/archive-reader.ts'
import { createNotifier, type Notifier } from '../notifier.ts'
import { follow, type Puller, selectEntries } from '../follow.ts'
import { createRowCache } from '../row-cache.ts'
import type { Appending } from './append-job.ts'
import { createChangeFeed } from './change-feed.ts'
import { createChannels, type Channels } from './channels.ts'
import { openConnection, type RedisOptions, type RedisConnection, inTime, evenFull } from './connection.ts'
import { createRedisFleet } from './fleet.ts'
import { createLostRewriter, lookEvery } from './rewrite-lost.ts'
import { createForking } from './fork.ts'
import { createInboxes } from './inboxes.ts'
import { createRedisFeedback } from './feedback.ts'
import { createRedisTestResults } from './test-results.ts'
import { createRedisThreadTitles } from './thread-titles.ts'
import { createRedisAudit, createRedisLedger } from './ledger.ts'
import { createRedisLimits } from './limits.ts'
import { watchMemory } from './memory.ts'
import { partitionOf, type Keys } from './keys.ts'
import { createPages } from './pages.ts'
import { createReader } from './reader.ts'
import { redisFailed, damagedIs } from './damage-script.ts'
import { createRedisUpkeep } from './redis-upkeep.ts'
import { createRows } from './rows.ts'
import { createRunIndex } from './run-index.ts'
import { createStoreClock, type StoreClock } from './store-clock.ts'
import { createTails } from './tails.ts'
import { createTexts } from './texts.ts'
import { createWrites } from './writes.ts'
import { partitions } from './index-script.ts'

export type { RedisOptions } from './connection.ts'

/**
 * Connects to `redis://user:password@host:6379/0?prefix=tenant` (`rediss://…?ca=/path/ca.pem` for TLS; several hosts, separated by commas, for a
 * cluster). Throws `bad-config`, `missing-package`, `store-failed` or `store-version`. Needs the package `@redis/client`.
 */
export async function redisStore(url: string, options: RedisOptions = {}): Promise<Store> {
  const connection = await openConnection(url, options).catch(async (error: unknown) => {
    await options.archive?.close()
    throw error
  })
  const { keys } = connection
  const process = randomUUID()
  const heads = createRowCache()
  const archived = options.archive && createArchiveReader(options.archive)
  const texts = createTexts(connection)
  const pages = createPages(connection, archived, texts)
  const rows = createRows(connection, pages.forkTimes)
  const channels = createChannels(connection)
  const entryBell = createNotifier()
  const inboxBell = createNotifier()
  const tails = createTails({ channels, keys, pages, bell: entryBell })
  const inboxes = createInboxes({ channels, connection, bell: inboxBell })
  const healing = createLostRewriter({ connection, process, pages, texts })
  const isLate = (run: string) => healing.isLate(partitionOf(run))
  const clock = createStoreClock(options.warn, options.clocks)
  const status = createStatus(connection, () => writes.pending, clock)
  const writes = createWrites({
    connection,
    committed: status.committed,
    process,
    heads,
    rows,
    pages,
    texts,
    healing,
    dead: () => fleet.dead(),
    written: (write) => {
      healing.keep(write)
      if (write.type === 'claim') fleet.claimed(write.run)
    },
    appended,
    tookOver: status.tookOver,
    lost,
  })
  const fleet = createRedisFleet({ ...options, connection, channels, process, clock, want: writes.want })
  const limits = createRedisLimits(connection, process)
  const listeners = new Set<OnStored>()
  let closing: Promise<void> | undefined
  let closed = false
  followClaims(channels, keys, claimed)
  connection.onDown(healing.pause)
  connection.onUp((partitions) => {
    healing.start(partitions)
    // Notifications may have been missed.
    for (const run of heads.runs()) {
      const look = pages.head(run).then((head) => head && claimed(run, head.epoch))
      look.catch(() => undefined)
    }
    tails.verifyAll()
    inboxes.lookAtAll()
  })

  function appended({ run, before, row, entries, lines }: Appending): void {
    // Another process, or an append whose reply was lost, has written in between.
    if (heads.get(run) !== undefined && heads.get(run)!.row.lastSeq !== (before?.lastSeq ?? 0)) heads.forget(run)
    const head = heads.add(run, row, entries, lines.length)
    entryBell.notify(run)
    for (const listener of listeners) listener(row, entries)
    heads.trim(run, head)
    // The next owner may be another process, whose appends come as messages.
    if (row.status === 'suspended') lost(run)
  }

  /** In this or another process. */
  function claimed(run: string, epoch: number): void {
    if ((heads.get(run)?.row.epoch ?? epoch) < epoch) lost(run)
  }

  function lost(run: string): void {
    const head = heads.get(run)
    if (head === undefined || hasEnded(head.row.status)) return
    heads.forget(run)
    entryBell.notify(run)
  }

  function open<T>(
    bell: Notifier,
    key: string,
    signal: AbortSignal | undefined,
    start: () => Puller<T>,
  ): AsyncIterable<T> {
    const guarded = (): Puller<T> => {
      const { pull, leave } = closed ? { pull: () => 'end' as const } : start()
      const guard = (): ReturnType<typeof pull> => {
        if (closed) return 'end'
        const pulled = pull()
        // Its pending request cannot succeed any more.
        return pulled instanceof Promise ? pulled.catch((error) => (closed ? 'end' : Promise.reject(error))) : pulled
      }
      return leave === undefined ? { pull: guard } : { pull: guard, leave }
    }
    return follow({ start: guarded, bell, key, signal, pause: setImmediate })
  }

  const log: Log = {
    append: (run, epoch, given, view) => writes.append({ run, epoch, given, view }),
    claim: (run, epoch) => status.claimed(writes.claim(run, epoch)),
    read: (run, options = {}) => {
      const { step, types, signal } = options
      const limit = step === undefined && types === undefined ? options.limit : undefined
      return open<Entry[]>(entryBell, run, signal, () =>
        selectEntries(createReader({ heads, tails, pages, isLate: () => isLate(run) }, run, options, limit), options),
      )
    },
    post: async (run, key, message) => (await log.postAll(run, [{ key, message }]))[0]!,
    postAll: async (run, messages) => writes.post(run, messages),
    inbox: (run, { after, signal } = {}) =>
      open<InboxMessage>(inboxBell, run, signal, () => inboxes.reader(run, after, signal)),
    changes: (options) => feed.read(options),
    position: () => feed.position(),
    fork: (...given) => fork(...given),
  }

  const listing = createRunIndex(connection, rows)
  const index: RunIndex = {
    ...listing,
    async get(run) {
      let row = await listing.get(run)
      // Just after a reconnect the stored data may be older than entries already seen: the owner, possibly this process, rewrites it.
      const partition = partitionOf(run)
      const whole = heads.get(run) === undefined ? healing.mayClaim(partition) : healing.healed(partition)
      if (whole) {
        await connection.patiently(`read run ${run}`, whole)
        row = await listing.get(run)
      }
      while (row === undefined && isLate(run)) {
        await new Promise((resolve) => setTimeout(resolve, lookEvery))
        row = await listing.get(run)
      }
      return row
    },
    keepView: async (run, seq, view) => writes.keepView(run, seq, view),
  }
  const feed = createChangeFeed(connection, channels, log, texts)
  const fork = createForking(connection, log, index, writes, texts)

  const upkeep = createRedisUpkeep({
    connection,
    clock,
    rows,
    pages,
    runs: index,
    archive: options.archive,
    changed: heads.forget,
  })
  const unwatch = options.warn && watchMemory(connection, options.warn)

  async function close(): Promise<void> {
    unwatch?.()
    archived?.close()
    await writes.close()
    await limits.close()
    await fleet.close()
    closed = true
    tails.end()
    inboxes.end()
    feed.end()
    channels.end()
    for (const bell of [entryBell, inboxBell]) bell.ringAll()
    await connection.close()
    await options.archive?.close()
  }

  try {
    await fleet.start()
  } catch (error) {
    await close()
    throw error instanceof MillraceError ? error : redisFailed('cannot join the other processes', connection.url, error)
  }
  return {
    log,
    runs: index,
    fleet,
    upkeep,
    limits,
    ledger: createRedisLedger(connection),
    audit: createRedisAudit(connection),
    feedback: createRedisFeedback(connection),
    testResults: createRedisTestResults(connection),
    titles: createRedisThreadTitles(connection, index),
    positions: createPositions(connection),
    onStored(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    status: status.read,
    durable: true,
    now: clock.now,
    close: () => (closing ??= close()),
  }
}

/** Positions in the changes of all runs, which processes hand over to each other. */
function createPositions({ ask, keys }: RedisConnection): Positions {
  return {
    async get(name) {
      const key = keys.position(name)
      const found = await ask('read a position', key, ['GET', key]).catch(damagedIs(undefined))
      // Without a valid position, a reader begins anew.
      const [, position, by = ''] = /^(\d{1,16})(?: (.*))?$/u.exec(String(found)) ?? []
      return position === undefined ? undefined : { position: Number(position), by }
    },
    async keep(name, position, by) {
      const key = keys.position(name)
      await ask('keep a position', key, evenFull('SET', key, `${position} ${by}`))
    },
  }
}

/** Notifies of claims by any process: the former owner may not know yet. A hint, which may be lost. */
function followClaims(channels: Channels, keys: Keys, claimed: (run: string, epoch: number) => void): void {
  /** `claim <epoch> <run>`. */
  function hear(note: string): void {
    const [, epoch, run] = /^claim (\d+) ([^]*)$/u.exec(note) ?? []
    if (run !== undefined) claimed(run, Number(epoch))
  }
  for (let partition = 0; partition < partitions; partition++) {
    channels.open(keys.note(partition), hear).catch(() => undefined)
  }
}

/* The status of the store for monitors. */

/** Number of commits whose times are kept. */
const recent = 500
/** Timeout of a request to Redis, in ms. */
const patience = 250

function createStatus(connection: RedisConnection, pending: () => number, clock: StoreClock) {
  const times: number[] = []
  const commits = { count: 0, seconds: 0 }
  const claims = { won: 0, refused: 0 }
  let takeovers = 0
  let awaySince: number | undefined
  let reconnects = 0
  connection.onDown(() => void (awaySince ??= performance.now()))
  connection.onUp(() => {
    if (awaySince === undefined || !connection.isWhole()) return
    reconnects++
    awaySince = undefined
  })

  async function memory(): Promise<StoreStatus['memory']> {
    const key = connection.keys.format
    const info = String(await inTime(connection.send(key, ['INFO', 'memory']), patience))
    const bytes = (name: string) => Number(new RegExp(`^${name}:(\\d+)`, 'mu').exec(info)?.[1] ?? 0)
    return { usedBytes: bytes('used_memory'), maxBytes: bytes('maxmemory') }
  }

  return {
    /** A script took `ms`. */
    committed(ms: number): void {
      times[commits.count++ % recent] = ms / 1000
      commits.seconds += ms / 1000
    },
    tookOver: () => void takeovers++,
    async claimed(claim: Promise<boolean>): Promise<boolean> {
      const isWon = await claim
      if (isWon) claims.won++
      else claims.refused++
      return isWon
    },
    async read(): Promise<StoreStatus> {
      const sorted = times.toSorted((a, b) => a - b)
      const at = (share: number) => sorted[Math.floor(sorted.length * share)] ?? 0
      const used = await memory().catch(() => undefined)
      return {
        connected: connection.isWhole(),
        awayMs: awaySince === undefined ? 0 : Math.round(performance.now() - awaySince),
        patienceMs: connection.timeoutMs,
        reconnects,
        clockAheadMs: Math.round(clock.ahead()),
        claims: { ...claims },
        takeovers,
        pending: pending(),
        commits: { ...commits, p50Seconds: at(0.5), p99Seconds: at(0.99) },
        ...(used && { memory: used }),
      }
    },
  }
}
