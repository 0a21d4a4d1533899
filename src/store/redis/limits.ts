/**
 * Limits over all processes of the store, by the clock of Redis. Places are leased: those of a dead process are free after some seconds. While
 * Redis is unavailable everything is allowed: nothing can start without it anyway, and readers must not be refused.
 */
import type { Limits, Permit } from '../../part/limits.ts'
import { inTime, type RedisConnection } from './connection.ts'
import { partitionOf } from './keys.ts'
import { placeLease } from './limits-script.ts'
import { createOperate } from './orphans.ts'
import { listed } from './script.ts'

export interface RedisLimits extends Limits {
  /** Releases all places. */
  close(): Promise<void>
}

/** Timeout of a request to Redis, in ms. */
const patience = 500

export function createRedisLimits(connection: RedisConnection, process: string): RedisLimits {
  /** Places of this process, by their key. */
  const held = new Map<string, Set<string>>()
  let count = 0
  let renewing: ReturnType<typeof setInterval> | undefined

  const operate = createOperate(connection)
  const ask = (name: string, key: string, ...args: (string | number)[]) =>
    inTime(operate(partitionOf(key), name, key, ...args), patience)

  function renew(): void {
    for (const [key, places] of held) ask('hold', key, ...listed([...places])).catch(() => undefined)
  }

  function hold(key: string, place: string): void {
    const places = held.get(key) ?? new Set()
    held.set(key, places.add(place))
    renewing ??= setInterval(renew, placeLease / 3).unref()
  }

  async function release(key: string, place: string): Promise<void> {
    const places = held.get(key)
    if (places?.delete(place) !== true) return
    if (places.size === 0) held.delete(key)
    if (held.size === 0) stop()
    await ask('vacate', key, place).catch(() => undefined)
  }

  function stop(): void {
    clearInterval(renewing)
    renewing = undefined
  }

  return {
    async take(key, { count: most, perMs }) {
      const wait = await ask('rate', key, perMs / most, perMs).catch(() => 0)
      return typeof wait === 'number' ? wait : 0
    },

    async occupy(key, most): Promise<Permit | undefined> {
      const place = `${process}:${count++}`
      // Places that Redis did not receive are leased when it is back.
      if ((await ask('occupy', key, place, most).catch(() => 1)) === 0) return undefined
      hold(key, place)
      return { leave: () => void release(key, place) }
    },

    async close() {
      await Promise.all([...held].flatMap(([key, places]) => [...places].map((place) => release(key, place))))
    },
  }
}
