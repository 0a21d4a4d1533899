/**
 * Orders the text of parallel branches for a wire with a single text: one branch after the other, as their `parallel` declares
 * them. Text of later branches is buffered in memory, with its deltas joined. (The log contains it as well. Reading it
 * back would bound the memory, but needs a reader.)
 */
import { LateMap } from '../fold/late-map.ts'
import { isUnder, parentPath } from '../part/path.ts'

export type Spoken =
  | { type: 'say'; path: string; text: string }
  | { type: 'finish'; path: string }
  | { type: 'start'; path: string; order: readonly string[] }

export interface DeclaredOrder {
  /** Whether any branches are being ordered. If not, all text can be sent at once. */
  waits(): boolean
  /** The text to send now, in order. */
  take(event: Spoken): Extract<Spoken, { type: 'say' }>[]
  /** Drops the buffered text of an attempt that a crash superseded. */
  forget(path: string): void
}

interface Parallel {
  order: readonly string[]
  /** Of each branch: its first index. */
  places: ReadonlyMap<string, number>
  /** Index of the branch whose turn it is. */
  turn: number
  held: Map<string, Spoken[]>
}

export function createDeclaredOrder(): DeclaredOrder {
  return new Branches()
}

/** A class, because an answer has up to two, and most order nothing. */
class Branches implements DeclaredOrder {
  readonly #parallels = new LateMap<string, Parallel>()

  waits(): boolean {
    return this.#parallels.size > 0
  }

  take(event: Spoken): Extract<Spoken, { type: 'say' }>[] {
    const said: Extract<Spoken, { type: 'say' }>[] = []
    // What a branch has held back may end it, which begins the next one. The last of the list comes first.
    const next = [event]
    for (let each = next.pop(); each !== undefined; each = next.pop()) {
      if (this.#holds(each)) continue
      if (each.type === 'say') said.push(each)
      else if (each.type === 'start') this.#begin(each)
      else for (const held of this.#finish(each.path).toReversed()) next.push(held)
    }
    return said
  }

  #begin({ path, order }: Extract<Spoken, { type: 'start' }>): void {
    const places = new Map<string, number>()
    for (const [i, name] of order.entries()) if (!places.has(name)) places.set(name, i)
    this.#parallels.set(path, { order, places, turn: 0, held: new Map() })
  }

  /** What the branch after the one that has finished has said. */
  #finish(path: string): readonly Spoken[] {
    const parallel = this.#parallels.get(parentPath(path))
    if (parallel === undefined || !path.endsWith(`/${parallel.order[parallel.turn]}`)) return []
    const next = parallel.order[++parallel.turn]
    if (next === undefined) return []
    const waiting = parallel.held.get(next) ?? []
    parallel.held.delete(next)
    return waiting
  }

  /** Whether it waits for the turn of its branch, in the outermost step in which it has to. */
  #holds(event: Spoken): boolean {
    const { path } = event
    if (this.#parallels.size === 0) return false
    for (let end = path.indexOf('/'); end >= 0; end = path.indexOf('/', end + 1)) {
      const parallel = this.#parallels.get(path.slice(0, end))
      if (parallel === undefined) continue
      const name = path.slice(end + 1).split('/', 1)[0]!
      if ((parallel.places.get(name) ?? -1) <= parallel.turn) continue
      hold(parallel.held, name, event)
      return true
    }
    return false
  }

  forget(path: string): void {
    for (const [at, { held }] of this.#parallels) {
      if (isUnder(at, path)) this.#parallels.delete(at)
      for (const [name, events] of held) {
        held.set(
          name,
          events.filter((event) => !isUnder(event.path, path)),
        )
      }
    }
  }
}

function hold(held: Map<string, Spoken[]>, name: string, event: Spoken): void {
  const events = held.get(name) ?? []
  const last = events.at(-1)
  if (event.type === 'say' && last?.type === 'say' && last.path === event.path) {
    events[events.length - 1] = { ...event, text: last.text + event.text }
  } else events.push(event)
  held.set(name, events)
}
