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
  /** Index of the branch whose turn it is. */
  turn: number
  held: Map<string, Spoken[]>
}

export function createDeclaredOrder(): DeclaredOrder {
  return new Branches()
}

/** A class, because an answer has up to two, and most order nothing. */
class Branches implements DeclaredOrder {
  /** Outer steps come before inner ones, which start later. */
  readonly #parallels = new LateMap<string, Parallel>()

  waits(): boolean {
    return this.#parallels.size > 0
  }

  take(event: Spoken): Extract<Spoken, { type: 'say' }>[] {
    for (const [path, { order, turn, held }] of this.#parallels) {
      const name = branchOf(event.path, path)
      if (name === undefined || order.indexOf(name) <= turn) continue
      hold(held, name, event)
      return []
    }
    if (event.type === 'say') return [event]
    if (event.type === 'start') {
      this.#parallels.set(event.path, { order: event.order, turn: 0, held: new Map() })
      return []
    }
    const parallel = this.#parallels.get(parentPath(event.path))
    if (parallel === undefined || !event.path.endsWith(`/${parallel.order[parallel.turn]}`)) return []
    const next = parallel.order[++parallel.turn]
    if (next === undefined) return []
    const waiting = parallel.held.get(next) ?? []
    parallel.held.delete(next)
    // The buffered events may include the end of that branch, which starts the next one.
    return waiting.flatMap((each) => this.take(each))
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

/** `main/all/left/say/1` below `main/all` → `left`. */
function branchOf(path: string, parallel: string): string | undefined {
  if (path.length <= parallel.length || !isUnder(path, parallel)) return undefined
  const end = path.indexOf('/', parallel.length + 1)
  return path.slice(parallel.length + 1, end < 0 ? undefined : end)
}

function hold(held: Map<string, Spoken[]>, name: string, event: Spoken): void {
  const events = held.get(name) ?? []
  const last = events.at(-1)
  if (event.type === 'say' && last?.type === 'say' && last.path === event.path) {
    events[events.length - 1] = { ...event, text: last.text + event.text }
  } else events.push(event)
  held.set(name, events)
}
