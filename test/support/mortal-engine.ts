/** A runtime in this process that can die as a process does: it writes nothing any more, and the next one opens the same folder and goes on. */
import { rmSync } from 'node:fs'
import type { Store } from '../../src/part/log.ts'
import { createEngine, newFolder, type Engine, type EngineOptions } from './engine.ts'

export interface MortalEngine {
  /** The one that lives, or lived last. */
  readonly now: Engine
  readonly deaths: number
  /** Not while it is dead. */
  die(): void
  /** Dies behind so many appends. */
  dieBehind(appends: number): void
  /** Nothing dies any more. */
  spare(): void
  /** Resolves when the one that lives now has died. */
  died(): Promise<void>
  /** As a client that sends its request again to the next one, if this one dies meanwhile. */
  living<T>(call: (engine: Engine) => Promise<T>): Promise<T>
  close(): Promise<void>
}

export async function startMortalEngine(options: Omit<EngineOptions, 'dir' | 'keep'>): Promise<MortalEngine> {
  const dir = newFolder()
  const engines: Engine[] = []
  const writes = new Set<Promise<unknown>>()
  const wakes = new Set<() => void>()
  let isDead = false
  let isSpared = false
  let left = Infinity
  let rising = Promise.resolve()

  function open(): Engine {
    const mine = engines.length
    const isAlive = () => mine === engines.length - 1 && !isDead
    const engine = createEngine({ ...options, dir, keep: true, wrapStore: (store) => mortal(store, isAlive) })
    engines.push(engine)
    isDead = false
    return engine
  }

  /** What a dead one was about to write is not written, and what it waits for does not come. */
  function mortal(store: Store, isAlive: () => boolean): Store {
    const within = async <T>(write: () => Promise<T>): Promise<T> => {
      if (!isAlive()) await new Promise(() => undefined)
      const writing = write()
      writes.add(writing)
      const done = await writing.finally(() => writes.delete(writing))
      if (!isAlive()) await new Promise(() => undefined)
      return done
    }
    const { log, runs } = store
    return {
      ...store,
      log: {
        ...log,
        append: (...given) =>
          within(async () => {
            const done = await log.append(...given)
            if (isAlive() && --left <= 0) die()
            return done
          }),
        claim: (...given) => within(() => log.claim(...given)),
        post: (...given) => within(() => log.post(...given)),
        postAll: (...given) => within(() => log.postAll(...given)),
        fork: (...given) => within(() => log.fork(...given)),
      },
      runs: { ...runs, keepView: (...given) => within(() => runs.keepView(...given)) },
    }
  }

  function died(): Promise<void> {
    return isDead ? Promise.resolve() : new Promise((resolve) => void wakes.add(resolve))
  }

  function die(): void {
    if (isDead || isSpared) return
    isDead = true
    left = Infinity
    for (const wake of wakes) wake()
    wakes.clear()
    rising = rise()
  }

  async function rise(): Promise<void> {
    // No write of the old process comes behind the start of the next one.
    while (writes.size > 0) await Promise.allSettled(writes)
    const { runtime } = open()
    await Promise.race([runtime.recover(), died()])
  }

  await open().runtime.recover()
  return {
    get now() {
      return engines.at(-1)!
    },
    get deaths() {
      return engines.length - 1
    },
    die,
    dieBehind: (appends) => void (left = appends),
    spare: () => void (isSpared = true),
    died,
    async living(call) {
      for (;;) {
        for (let waited; waited !== rising;) await (waited = rising)
        const gone = died().then(() => dead)
        const done = await Promise.race([call(engines.at(-1)!), gone])
        if (done !== dead) return done as Awaited<ReturnType<typeof call>>
      }
    },
    async close() {
      isSpared = true
      await rising
      // A dead one waits for ever for what it has not written.
      for (const engine of engines.slice(0, -1)) void engine.close().catch(() => undefined)
      await engines.at(-1)!.close()
      rmSync(dir, { recursive: true, force: true })
    },
  }
}

const dead = Symbol('dead')
