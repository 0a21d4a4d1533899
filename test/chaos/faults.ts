/** What happens to the fleet, by a seed: a plan for the instances and one for Redis, which go on side by side. */
import { setTimeout as sleep } from 'node:timers/promises'
import { randomOf } from '../support/random.ts'
import type { Fleet } from './fleet.ts'

export const faultKinds = ['kill', 'stop', 'term', 'redis-kill', 'redis-freeze', 'redis-loss'] as const
export type FaultKind = (typeof faultKinds)[number]

export interface Fault {
  kind: FaultKind
  /** ms since the fault before it of the same plan has passed. */
  after: number
  place: number
  /** ms for which something is away. */
  lasts: number
}

const isOfRedis = (kind: FaultKind) => kind.startsWith('redis')

/** The faults of a seed, without end. */
export function* planOf(seed: number, kinds: readonly FaultKind[], size: number): Generator<Fault> {
  const next = randomOf(seed)
  const between = (least: number, most: number) => Math.floor(least + next() * (most - least))
  let lastKind: FaultKind | undefined
  while (true) {
    // Not the same again at once, so that a short session sees many.
    const others = kinds.length > 1 ? kinds.filter((kind) => kind !== lastKind) : kinds
    const kind = others[between(0, others.length)]!
    lastKind = kind
    const [least, most] = {
      kill: [0, 1500],
      stop: [1000, 5000],
      term: [0, 0],
      'redis-kill': [0, 3000],
      'redis-freeze': [500, 4000],
      'redis-loss': [200, 1000],
    }[kind] as [number, number]
    yield {
      kind,
      after: between(300, isOfRedis(kind) ? 5000 : 2500),
      place: between(0, size),
      lasts: between(least, most),
    }
  }
}

/** ms around a loss in which no owner may be lost: what both had is gone, which is not promised. */
const apartMs = 3500

export interface Faults {
  /** Lets nothing new begin, and resolves when everything runs again. */
  end(): Promise<void>
}

export function wreak(fleet: Fleet, seed: number, kinds: readonly FaultKind[], note: (line: string) => void): Faults {
  const size = fleet.instances.length
  let over = false
  /** Instance faults under way, the end of the last one, and the end of the last loss. */
  let away = 0
  let lastOwner = 0
  let lastLoss = 0
  let losing = false
  const enough = Promise.withResolvers<void>()
  const pause = (ms: number) => Promise.race([sleep(ms), enough.promise])

  async function ofInstance({ kind, place, lasts }: Fault): Promise<void> {
    while (losing || Date.now() - lastLoss < apartMs) await sleep(50)
    away++
    try {
      const server = fleet.instances[place]!
      if (kind === 'stop') {
        server.signal('SIGSTOP')
        await pause(lasts)
        server.signal('SIGCONT')
      } else if (kind === 'kill') {
        fleet.instances[place] = undefined
        await server.kill()
        await pause(lasts)
        await fleet.boot(place)
      } else {
        // As in a deploy: the new one is there before the old one goes.
        await fleet.boot(place)
        fleet.leaving.add(server)
        server.signal('SIGTERM')
        const code = await Promise.race([server.exit, sleep(30_000).then(() => 'did not end')])
        fleet.leaving.delete(server)
        if (code !== 0) note(`FAULT: instance ${place} was told to end: ${code}`)
      }
    } finally {
      away--
      lastOwner = Date.now()
    }
  }

  async function ofRedis({ kind, lasts }: Fault): Promise<void> {
    if (kind === 'redis-freeze') {
      fleet.redis.freeze()
      await pause(lasts)
      fleet.redis.thaw()
    } else if (kind === 'redis-kill') {
      await fleet.redis.kill()
      await pause(lasts)
      await fleet.redis.restart()
    } else {
      losing = true
      try {
        while (away > 0 || Date.now() - lastOwner < apartMs) await sleep(50)
        const lose = fleet.remember()
        await sleep(lasts)
        await lose()
      } finally {
        losing = false
        lastLoss = Date.now()
      }
    }
  }

  async function perform(own: readonly FaultKind[], from: number, act: (fault: Fault) => Promise<void>): Promise<void> {
    if (own.length === 0) return
    for (const fault of planOf(from, own, size)) {
      await pause(fault.after)
      if (over) return
      note(`${fault.kind}${isOfRedis(fault.kind) ? '' : ` of ${fault.place}`}, ${fault.lasts} ms`)
      await act(fault)
      note(`${fault.kind} is over`)
    }
  }

  const plans = Promise.all([
    perform(
      kinds.filter((kind) => !isOfRedis(kind)),
      seed,
      ofInstance,
    ),
    perform(kinds.filter(isOfRedis), seed + 1_000_003, ofRedis),
  ])
  return {
    async end() {
      over = true
      enough.resolve()
      await plans
    },
  }
}
