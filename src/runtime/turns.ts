/**
 * What runs have added to their conversations. Turns of runs that have ended stay in memory, so that the next message of a long thread
 * does not read them all.
 */
import { readInput, readKept } from '../fold/read-view.ts'
import { hasEnded, type Store } from '../part/log.ts'
import { messagesOf, type Message } from '../part/message.ts'

export type Runs = Pick<Store, 'log' | 'runs' | 'upkeep'>

/** What a run adds to its conversation. */
export interface Turn {
  asked: Message[]
  messages: Message[]
  characters: number
  previous: string | undefined
}

/** Characters of turns that stay in memory for each store. */
const mostCached = 16_000_000

interface Cached {
  turn: Turn
  /** See `Upkeep.marks`. */
  mark: string
}

interface Cache {
  turns: Map<string, Cached>
  characters: number
}

const caches = new WeakMap<Store['runs'], Cache>()

export interface Turns {
  /** Undefined if the process died before the run's first entry, or the run was deleted. */
  read(run: string): Promise<Turn | undefined>
}

/** For one pass over a conversation: a run that any process deletes before the pass is not in it. */
export function createTurns(store: Runs): Turns {
  const cache: Cache = caches.get(store.runs) ?? { turns: new Map(), characters: 0 }
  caches.set(store.runs, cache)
  const checked = new Set<string>()

  async function marksOf(runs: string[]): Promise<(string | undefined)[]> {
    // Without upkeep nothing is deleted.
    return store.upkeep === undefined ? runs.map(() => '') : store.upkeep.marks(runs)
  }

  /** Forgets what was deleted of a run and of the turns before it, as far as they are in memory: the store is asked once for all of them. */
  async function check(run: string): Promise<void> {
    const known: [run: string, cached: Cached][] = []
    for (let at: string | undefined = run; at !== undefined && !checked.has(at);) {
      const cached = cache.turns.get(at)
      if (cached === undefined) break
      checked.add(at)
      known.push([at, cached])
      at = cached.turn.previous
    }
    if (known.length === 0) return
    const marks = await marksOf(known.map(([each]) => each))
    for (const [i, [each, cached]] of known.entries()) {
      if (cached.mark !== marks[i] && cache.turns.get(each) === cached) forget(cache, each)
    }
  }

  return {
    async read(run) {
      await check(run)
      const known = cache.turns.get(run)
      if (known !== undefined) {
        cache.turns.delete(run)
        cache.turns.set(run, known)
        return known.turn
      }
      // Before it is read: what is deleted meanwhile has another mark.
      const [mark] = await marksOf([run])
      const kept = await readKept(store, run)
      if (kept === undefined) return undefined
      const { messages, previousRunId: previous } = kept
      // Of a run that continues another all messages of the input are new, and kept.
      const asked = previous === undefined ? messagesOf(await readInput(store.log, run)) : kept.asked
      const characters = JSON.stringify(asked).length + JSON.stringify(messages).length
      const turn = { asked, messages, characters, previous }
      if (hasEnded(kept.status) && mark !== undefined) remember(cache, run, { turn, mark })
      checked.add(run)
      return turn
    },
  }
}

function remember(cache: Cache, run: string, cached: Cached): void {
  forget(cache, run)
  cache.turns.set(run, cached)
  cache.characters += cached.turn.characters
  for (const oldest of cache.turns.keys()) {
    if (cache.characters <= mostCached) break
    forget(cache, oldest)
  }
}

function forget(cache: Cache, run: string): void {
  cache.characters -= cache.turns.get(run)?.turn.characters ?? 0
  cache.turns.delete(run)
}
