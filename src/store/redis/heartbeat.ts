/**
 * The heartbeats of the processes, by the clock of Redis, and the list of dead processes. A heartbeat waits only for Redis: not for runs that are
 * taken over, and not for writes. A process whose own heartbeat had gaps must not declare others dead.
 */
import type { Channels } from './channels.ts'
import type { RedisConnection } from './connection.ts'
import type { StoreClock } from './store-clock.ts'

export interface HeartbeatOptions {
  /** ms between heartbeats. Default 300. */
  beatMs?: number
  /**
   * A connected process with an older heartbeat is dead, in ms. Default 2000: it may be paused, or just busy. A killed process is no longer
   * connected, and is dead after two missed heartbeats.
   */
  leaseMs?: number
  /** Whether other processes see this one. Not needed for reading, or for posting to runs. Default true. */
  joins?: boolean
}

export interface Heartbeat {
  id: string
  /** ms since its last heartbeat. */
  age: number
}

export interface Heartbeats {
  /** Resolves when others can see this process. */
  start(): Promise<void>
  /** Dead processes, whose runs may be taken; empty if this process must not judge. */
  dead(): string[]
  /**
   * Finds dead processes that Redis has already forgotten, among the owners of runs; valid until the next call. Call it when all owners are known.
   */
  findForgotten(owners: ReadonlySet<string>): Promise<void>
  alive(): string[]
  /** The living processes that take over runs. */
  takers(): string[]
  /** Including dead ones. Others as of the last heartbeat of this process; its own age is that of its last acknowledged heartbeat. */
  all(): Heartbeat[]
  /** Whether this process may declare others dead. */
  isSteady(): boolean
  /** Whether Redis was unavailable, or this process was paused, so that its data about others may be wrong. */
  isDisturbed(): boolean
  /** Calls back after each heartbeat. */
  onBeat(listener: () => void): void
  stop(): void
}

/** ms of heartbeats without a gap after which a process may declare others dead. */
const steadyAfter = 2000
/** A longer time between two heartbeats of this process is a gap, in ms. */
const gap = 1000
/** Duration of a disturbance, in ms. */
const calm = 3000
/** Redis forgets dead processes after this time, in ms. */
export const forgetAfter = 60_000

const beatScript = `#!lua flags=allow-oom
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
-- What is no list of processes any more is made anew: each that lives beats again.
local healed = 0
for i, type in ipairs({ 'zset', 'set' }) do
  local found = redis.call('TYPE', KEYS[i]).ok
  if found ~= 'none' and found ~= type then healed = redis.call('UNLINK', KEYS[i]) end
end
-- Nobody has beaten in the future.
redis.call('ZREMRANGEBYSCORE', KEYS[1], now + ${forgetAfter}, '+inf')
if ARGV[2] ~= 'look' then redis.call('ZADD', KEYS[1], now, ARGV[1]) end
for _, gone in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now - ${forgetAfter})) do
  redis.call('DEL', string.sub(KEYS[1], 1, -6) .. 'process:' .. gone)
  redis.call('ZREM', KEYS[1], gone)
end
redis.call(ARGV[2] == '1' and 'SADD' or 'SREM', KEYS[2], ARGV[1])
local takers = redis.call('SMEMBERS', KEYS[2])
for _, id in ipairs(takers) do
  if not redis.call('ZSCORE', KEYS[1], id) then redis.call('SREM', KEYS[2], id) end
end
return { now, redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES'), takers, healed }
`

export function createHeartbeats(
  connection: RedisConnection,
  channels: Channels,
  process: string,
  takes: () => boolean,
  clock: StoreClock,
  { beatMs = 300, leaseMs = 2000, joins = true }: HeartbeatOptions = {},
): Heartbeats {
  const { keys } = connection
  const listeners = new Set<() => void>()
  /** Of all processes, by the clock of Redis. */
  let beats = new Map<string, number>()
  /** Processes that take over runs. */
  let takers: string[] = []
  /** Processes that are no longer connected. */
  let gone = new Set<string>()
  /** Owners of runs whose last heartbeat is so old that Redis has forgotten them. */
  let forgotten: string[] = []
  /** The numbers of the last sent and of the last acknowledged heartbeat: replies may overtake each other. */
  let sent = 0
  let answered = 0
  /** By the clock of Redis: this process's last heartbeat, and the start of its heartbeats without a gap. */
  let last = 0
  let steadySince = Infinity
  /** By the clock of this process: the last acknowledgement, and the last disturbance. */
  let answeredAt = -Infinity
  let disturbedAt = -Infinity
  let timer: ReturnType<typeof setInterval> | undefined
  let extra: ReturnType<typeof setTimeout> | undefined

  const isFresh = () => performance.now() - answeredAt < gap
  const isDead = (id: string, age: number) => id !== process && (age > leaseMs || (gone.has(id) && age > 2 * beatMs))

  /** Finds which processes with missed heartbeats are no longer connected: they were killed. */
  async function lookForGone(late: readonly string[]): Promise<Set<string>> {
    const answers = late.map(async (id) => {
      const channel = keys.process(id)
      const [, count] = (await connection.send(channel, ['PUBSUB', 'SHARDNUMSUB', channel])) as [string, number]
      return Number(count) === 0 ? [id] : []
    })
    return new Set((await Promise.all(answers)).flat())
  }

  async function beat(): Promise<void> {
    const n = ++sent
    const sentAt = performance.now()
    const answer = await connection.send(keys.beats, [
      'EVAL',
      beatScript,
      '2',
      keys.beats,
      keys.takers,
      process,
      !joins ? 'look' : takes() ? '1' : '',
    ])
    const [now, flat, taking, healed] = answer as [number, string[], string[], number]
    if (n < answered) return
    answered = n
    clock.heard(sentAt, now)
    // Also when the clock of Redis was set back.
    const isGap = now - last > gap || now < last
    if (last !== 0 && isGap) disturbedAt = performance.now()
    if (isGap || healed === 1) steadySince = now
    last = now
    answeredAt = performance.now()
    takers = taking
    beats = new Map()
    for (let i = 0; i < flat.length; i += 2) beats.set(flat[i]!, Number(flat[i + 1]))
    const late = [...beats].filter(([id, at]) => id !== process && now - at > 2 * beatMs && now - at <= leaseMs)
    if (isJudge() && late.length > 0) {
      gone = await lookForGone(late.map(([id]) => id))
      // Checks again when the first of them is certainly dead.
      const soonest = Math.min(...late.map(([, at]) => at)) + leaseMs + 5 - now
      clearTimeout(extra)
      if (timer !== undefined) extra = setTimeout(tryBeat, Math.max(10, soonest))
    } else gone = new Set()
    for (const listener of listeners) listener()
  }

  function tryBeat(): void {
    beat().catch(() => {
      disturbedAt = performance.now()
    })
  }

  const isJudge = () => last - steadySince >= steadyAfter

  connection.onUp(() => {
    disturbedAt = performance.now()
    steadySince = Infinity
    last = 0
  })

  const alive = () => [...beats].flatMap(([id, at]) => (isDead(id, last - at) ? [] : [id]))

  return {
    async start() {
      if (!joins) return beat()
      await channels.open(keys.process(process), () => undefined)
      await beat()
      timer = setInterval(tryBeat, beatMs)
      timer.unref()
    },
    dead() {
      if (!isJudge() || !isFresh()) return []
      const late = [...beats].flatMap(([id, at]) => (isDead(id, last - at) ? [id] : []))
      return [...late, ...forgotten.filter((id) => !beats.has(id))]
    },
    async findForgotten(owners) {
      // Asked now, because a new process may have sent a heartbeat since. Each does so before it owns a run.
      const unknown = [...owners].filter((id) => id !== process && !beats.has(id))
      const found = await Promise.all(unknown.map((id) => connection.send(keys.beats, ['ZSCORE', keys.beats, id])))
      forgotten = unknown.filter((_, i) => found[i] === null)
    },
    alive,
    takers: () => alive().filter((id) => takers.includes(id)),
    all: () => [...beats].map(([id, at]) => ({ id, age: id === process ? performance.now() - answeredAt : last - at })),
    isSteady: () => isJudge() && isFresh(),
    isDisturbed: () => performance.now() - disturbedAt < calm || (timer !== undefined && !isFresh()),
    onBeat: (listener) => void listeners.add(listener),
    stop() {
      clearInterval(timer)
      clearTimeout(extra)
      timer = undefined
    },
  }
}
