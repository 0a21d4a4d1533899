/** The processes that share a store in Redis: the living ones, runs that need an owner, and readers of runs. All of it is a hint. */
import { hostname } from 'node:os'
import type { Fleet, FleetProcess, Introduction } from '../../part/log.ts'
import { createFleet } from '../fleet.ts'
import { createHeartbeats, type HeartbeatOptions, type Heartbeats } from './heartbeat.ts'
import type { Channels } from './channels.ts'
import { type RedisConnection, evenFull } from './connection.ts'
import { format, partitionOf } from './keys.ts'
import { createOperate, createOrphans, everyPartition } from './orphans.ts'
import { damagedIs } from './damage-script.ts'
import { listed } from './script.ts'
import type { StoreClock } from './store-clock.ts'

export interface RedisFleet extends Fleet {
  /** Processes whose runs may be claimed. */
  dead(): string[]
  /** Call this when this process has claimed a run. */
  claimed(run: string): void
  /** Resolves when other processes can see this one. */
  start(): Promise<void>
  /** Ends `wanted`, releases this process's runs and removes it from the list. */
  close(): Promise<void>
}

export interface RedisFleetContext extends HeartbeatOptions {
  connection: RedisConnection
  channels: Channels
  process: string
  clock: StoreClock
  /** Writes it, in order with the writes of this process. Resolves with whether there are unseen messages. */
  want(run: string, at?: number, seen?: number): Promise<boolean>
}

/** Maximum polling interval of each process for due runs, in ms. Longer in a large fleet: other processes poll, too. */
const lookEvery = 500
const mostProcesses = 8
/** Polling interval for the owners of all active runs, in ms. */
const lookForForgotten = 30_000
/** Maximum number of due runs that one process takes from a partition at once. */
const mostTaken = 64

export function createRedisFleet(context: RedisFleetContext): RedisFleet {
  const { connection, channels, process, clock } = context
  const { keys } = connection
  /** Signals of the consumers of `wanted`. */
  const signals = new Set<AbortSignal>()
  let closed = false
  /** A process that releases its runs takes none. */
  const isWatched = () => !closed && [...signals].some(({ aborted }) => !aborted)
  const operate = createOperate(connection)
  const beats = createHeartbeats(connection, channels, process, isWatched, clock, context)
  const orphans = createOrphans(operate, process, beats)
  const attendance = createAttendance(connection, channels, beats)
  /** Found runs, and deadlines of this process's own runs. */
  const local = createFleet({ left: () => [], due: () => [], hasMore: () => false }, clock.now)
  const about: Record<string, string> = { host: hostname(), pid: String(globalThis.process.pid), layout: format }
  let watching: Promise<void> | undefined
  let wake = Promise.withResolvers<void>()
  let ownersAt = -Infinity
  let findsOrphans = false
  let raisesLayout = false

  const announce = (runs: readonly string[]) => {
    for (const run of runs) void local.want(run)
  }

  /** Takes due runs. Returns them with the next moment at which one is due, by the clock of Redis. */
  async function takeDue(): Promise<{ runs: string[]; next: number }> {
    const taken = await Promise.all(everyPartition.map((partition) => operate(partition, 'take', process, mostTaken)))
    const found: [score: number, run: string][] = []
    let next = Infinity
    for (const [soonest, ...pairs] of taken as string[][]) {
      if (soonest !== '') next = Math.min(next, Number(soonest))
      for (let i = 0; i < pairs.length; i += 2) found.push([Number(pairs[i]), pairs[i + 1]!])
    }
    return { runs: found.toSorted(([a], [b]) => a - b).map(([, run]) => run), next }
  }

  async function lookForDue(): Promise<void> {
    while (!closed) {
      const pause = lookEvery * Math.max(1, beats.takers().length / mostProcesses)
      let next = Infinity
      try {
        const due = isWatched() ? await takeDue() : { runs: [], next }
        announce(due.runs)
        next = Math.max(due.next - clock.now(), due.runs.length > 0 ? 5 : 40)
      } catch {
        // Redis is unavailable: later.
      }
      const timer = setTimeout(wake.resolve, Math.min(pause, next))
      timer.unref()
      await wake.promise
      clearTimeout(timer)
      wake = Promise.withResolvers()
    }
  }

  async function lookForOrphans(): Promise<void> {
    if (findsOrphans || !isWatched()) return
    findsOrphans = true
    try {
      announce(await orphans.ofDead())
      if (beats.isSteady() && performance.now() - ownersAt > lookForForgotten) {
        await beats.findForgotten(await orphans.owners())
        ownersAt = performance.now()
      }
    } catch {
      // Redis is unavailable: after the next heartbeat.
    }
    findsOrphans = false
  }

  /** When all processes read the new layout, it is noted: from then on older versions are refused. */
  async function raiseLayout(): Promise<void> {
    const { layout, ask } = connection
    if (layout.sharesTexts || raisesLayout || context.joins === false || !beats.isSteady()) return
    raisesLayout = true
    try {
      const layouts = beats.all().map(async ({ id }) => {
        const key = keys.process(id)
        return (await ask('read a process', key, ['HGET', key, 'layout']).catch(damagedIs(null))) === format
      })
      if ((await Promise.all(layouts)).every(Boolean)) {
        await ask('note the layout', keys.format, ['SET', keys.format, format])
        layout.sharesTexts = true
      }
    } catch {
      // Redis is unavailable, or full: after the next heartbeat.
    }
    raisesLayout = false
  }

  async function watch(): Promise<void> {
    const hear = (message: string) => {
      const [, from, passed] = /^pass (\S+) ([^]+)$/u.exec(message) ?? []
      if (passed === undefined && !message.startsWith('claim ')) wake.resolve()
      if (passed !== undefined && from !== process && isWatched()) announce([passed])
    }
    await Promise.all(everyPartition.map((partition) => channels.open(keys.note(partition), hear)))
    void lookForDue()
  }

  async function left(): Promise<string[]> {
    try {
      const suspended = await orphans.suspended()
      return [...new Set([...suspended, ...(await takeDue()).runs])]
    } catch {
      // The remaining runs are found later.
      return []
    }
  }

  async function introduce(): Promise<void> {
    if (context.joins === false) return
    const key = keys.process(process)
    await connection.ask('introduce this process', key, evenFull('HSET', key, ...Object.entries(about).flat()))
  }

  beats.onBeat(() => {
    void lookForOrphans()
    void raiseLayout()
  })
  connection.onUp(() => {
    wake.resolve()
    void introduce().catch(() => undefined)
  })

  return {
    shared: true,
    dead: beats.dead,
    claimed: local.claimed,
    ...attendance,

    async *wanted(signal) {
      if (closed) return
      const found = local.wanted(signal)[Symbol.asyncIterator]()
      const first = await left()
      const announced = await found.next()
      if (announced.done || closed) return
      signals.add(signal)
      try {
        await (watching ??= watch())
        yield [...new Set([...first, ...announced.value])]
        yield* { [Symbol.asyncIterator]: () => found }
      } finally {
        signals.delete(signal)
      }
    },

    async want(run, at, seen) {
      if (closed) return
      if (at !== undefined) await local.want(run, at)
      const hasUnseen = await context.want(run, at, seen)
      if (at === undefined || hasUnseen) await local.want(run)
    },

    async pass(run) {
      if (!closed) await operate(partitionOf(run), 'pass', run, process)
    },

    async start() {
      await Promise.all([beats.start(), introduce()])
    },

    async introduce({ version, url, draining }: Introduction) {
      if (version !== undefined) about['version'] = version
      if (url !== undefined) about['url'] = url
      if (draining !== undefined) about['draining'] = String(draining)
      await introduce()
    },

    async processes() {
      const all = beats.all()
      const ids = all.map(({ id }) => id)
      const counts = (await Promise.all(
        everyPartition.map((partition) => operate(partition, 'counts', ...listed(ids))),
      )) as number[][]
      const alive = new Set(beats.alive())
      const processes = all.map(async ({ id, age }, i): Promise<FleetProcess> => {
        const key = keys.process(id)
        const flat = await connection.ask('read a process', key, ['HGETALL', key]).catch(damagedIs([]))
        const known = toRecord(flat as string[] | object)
        // Lost, or damaged.
        if (id === process && known['host'] === undefined) await introduce()
        const { host, version, url } = known
        const pid = /^\d{1,10}$/u.exec(known['pid'] ?? '')?.[0]
        return {
          id,
          self: id === process,
          ...(host !== undefined && { host }),
          ...(pid !== undefined && { pid: Number(pid) }),
          ...(version !== undefined && { version }),
          ...(url !== undefined && { url }),
          beatAgeMs: age,
          alive: alive.has(id),
          draining: known['draining'] === 'true',
          runs: counts.reduce((sum, each) => sum + Number(each[i]), 0),
        }
      })
      return (await Promise.all(processes)).toSorted((a, b) => Number(b.self) - Number(a.self))
    },

    async close() {
      closed = true
      beats.stop()
      local.close()
      wake.resolve()
      if (context.joins === false) return
      try {
        await connection.send(keys.beats, ['ZREM', keys.beats, process])
        await Promise.all(everyPartition.map((partition) => operate(partition, 'leave', process)))
        await connection.send(keys.beats, ['DEL', keys.process(process)])
      } catch {
        // Then it dies like a killed process.
      }
    },
  }
}

function toRecord(flat: string[] | object): Record<string, string | undefined> {
  if (!Array.isArray(flat)) return { ...(flat as Record<string, string>) }
  return Object.fromEntries(
    Array.from({ length: flat.length / 2 }, (_, i) => [flat[2 * i]!, flat[2 * i + 1]!] as const),
  )
}

/** The readers of runs, in all processes: a process with readers subscribes to the run's channel, and the subscribers are counted. */
interface Attendance {
  attend(run: string): () => void
  attended(run: string): Promise<boolean>
}

function createAttendance(
  { keys, ask }: RedisConnection,
  channels: Channels,
  beats: Pick<Heartbeats, 'isDisturbed'>,
): Attendance {
  /** Readers here. */
  const readers = new Map<string, number>()
  /** Pending unsubscriptions. */
  const leaving = new Map<string, Promise<void>>()
  /** Counts requested in this tick, by partition. */
  const asked = new Map<number, Map<string, PromiseWithResolvers<number>>>()

  function leave(run: string): void {
    const left = channels.close(keys.readers(run)).finally(() => {
      if (leaving.get(run) === left) leaving.delete(run)
    })
    leaving.set(run, left)
  }

  async function count(partition: number): Promise<void> {
    const questions = asked.get(partition)!
    asked.delete(partition)
    const names = [...questions.keys()].map((run) => keys.readers(run))
    try {
      const args = ['PUBSUB', 'SHARDNUMSUB', ...names]
      const found = (await ask('count readers', names[0]!, args)) as (string | number)[]
      const counts = new Map<unknown, unknown>()
      for (let i = 0; i < found.length; i += 2) counts.set(found[i], found[i + 1])
      for (const [run, { resolve }] of questions) resolve(Number(counts.get(keys.readers(run)) ?? 0))
    } catch (error) {
      for (const { reject } of questions.values()) reject(error)
    }
  }

  function countOf(run: string): Promise<number> {
    const partition = partitionOf(run)
    let questions = asked.get(partition)
    if (questions === undefined) {
      asked.set(partition, (questions = new Map()))
      setImmediate(() => void count(partition))
    }
    let question = questions.get(run)
    if (question === undefined) questions.set(run, (question = Promise.withResolvers()))
    return question.promise
  }

  return {
    attend(run) {
      const before = readers.get(run) ?? 0
      readers.set(run, before + 1)
      if (before === 0) channels.open(keys.readers(run), () => undefined).catch(() => undefined)
      let reads = true
      return () => {
        if (!reads) return
        reads = false
        const left = readers.get(run)! - 1
        if (left > 0) readers.set(run, left)
        else {
          readers.delete(run)
          leave(run)
        }
      }
    },
    async attended(run) {
      if (readers.has(run)) return true
      await leaving.get(run)
      // Other processes may be about to resubscribe.
      if (readers.has(run) || beats.isDisturbed()) return true
      return (await countOf(run)) > 0
    },
  }
}
