/**
 * The beats of the processes, by the clock of Redis, and who is dead. A beat waits for nothing but Redis: neither for runs that are
 * taken over nor for writes. Whoever did not beat steadily himself judges nobody, because to him all others look dead.
 */
import type { Channels } from './channels.ts'
import type { Connection } from './connection.ts'
import type { StoreClock } from './store-clock.ts'

export interface BeatOptions {
  /** ms between beats. Default 300. */
  beatMs?: number
  /**
   * A process that is connected and whose last beat is older is dead, in ms. Default 2000: it may be paused, or just busy. One that is
   * not connected any more, because it was killed, is dead after two beats.
   */
  leaseMs?: number
  /** Whether the others see this process. Not needed to read, or to post to runs. Default true. */
  joins?: boolean
}

export interface Beat {
  id: string
  /** ms since it. */
  age: number
}

export interface Beats {
  /** Resolves when others can see this process. */
  start(): Promise<void>
  /** Those whose runs may be taken; none if this process cannot tell. */
  dead(): string[]
  /** Of processes that own runs, those that Redis has forgotten are dead as well, until the next call. Call it when all owners are known. */
  findForgotten(owners: ReadonlySet<string>): Promise<void>
  alive(): string[]
  /** The living ones that take runs over. */
  takers(): string[]
  /** Dead ones included. Of others as of the last beat of this process; its own age is that of its last beat that was answered. */
  all(): Beat[]
  /** Whether this process may judge. */
  isSteady(): boolean
  /** Redis was away, or this process was paused, so that what it knows of others may be wrong. */
  isDisturbed(): boolean
  /** Calls back after each beat. */
  onBeat(listener: () => void): void
  stop(): void
}

/** Who has beaten for so long without a gap may judge, in ms. */
const steadyAfter = 2000
/** A longer time between two beats of this process is a gap, in ms. */
const gap = 1000
/** A disturbance is over after so long, in ms. */
const calm = 3000
/** Redis forgets dead processes after so long, in ms. */
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

export function createBeats(
  connection: Connection,
  channels: Channels,
  process: string,
  takes: () => boolean,
  clock: StoreClock,
  { beatMs = 300, leaseMs = 2000, joins = true }: BeatOptions = {},
): Beats {
  const { keys } = connection
  const listeners = new Set<() => void>()
  /** Of all processes, by the clock of Redis. */
  let beats = new Map<string, number>()
  /** Processes that take runs over. */
  let takers: string[] = []
  /** Processes that are not connected any more. */
  let gone = new Set<string>()
  /** Processes that own runs, but whose last beat is so old that Redis has forgotten them. */
  let forgotten: string[] = []
  /** Beats that were sent, and the one that was answered last: answers may overtake each other. */
  let sent = 0
  let answered = 0
  /** By the clock of Redis: this process's last beat, and since when it beats without a gap. */
  let last = 0
  let steadySince = Infinity
  /** By the clock of this process: when the last beat was answered, and when something was wrong. */
  let answeredAt = -Infinity
  let disturbedAt = -Infinity
  let timer: ReturnType<typeof setInterval> | undefined
  let extra: ReturnType<typeof setTimeout> | undefined

  const isFresh = () => performance.now() - answeredAt < gap
  const isDead = (id: string, age: number) => id !== process && (age > leaseMs || (gone.has(id) && age > 2 * beatMs))

  /** Asks which processes that missed a beat are still connected: a killed one is not. */
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
      // Looks again when the first of them is dead for certain.
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
      // Asked now, because one may have come since the last beat. Each beats before it owns a run.
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
