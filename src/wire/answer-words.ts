/**
 * Merges an answer into one text (and its reasoning into another), for wires with a single text: parallel branches in file
 * order, and a blank line before the text of each further model call, unless the text so far ends in a newline.
 */
import { LazySet, LazyMap } from '../fold/lazy-map.ts'
import type { EntryOf } from '../part/entry.ts'
import { isUnder, parentPath } from '../part/path.ts'

type ShownDelta = EntryOf<'text-delta'> | EntryOf<'reasoning-delta'>

export interface AnswerWords {
  /** The text to send now, blank lines included; `''` for none. Pass only text that belongs to the answer. */
  add(entry: ShownDelta | EntryOf<'step-start'> | EntryOf<'step-finish'>): string
  /** Drops the held text of a superseded attempt. True if some of its text was already sent and cannot be retracted. */
  reset(path: string): boolean
  /** Starts a new text: no blank line before the next one. */
  restart(): void
}

export function createAnswerWords(): AnswerWords {
  return new Words()
}

/** Classes, not closures: an answer has up to two (decisions/0028). */
class Words implements AnswerWords {
  readonly #order = createDeclaredOrder()
  readonly #paragraphs = new Paragraphs()

  add(entry: ShownDelta | EntryOf<'step-start'> | EntryOf<'step-finish'>): string {
    switch (entry.type) {
      case 'text-delta':
      case 'reasoning-delta':
        if (!this.#order.waits()) return this.#paragraphs.add(entry.step, entry.delta)
        return this.#take({ type: 'say', path: entry.step, text: entry.delta })
      case 'step-start':
        return entry.order === undefined ? '' : this.#take({ type: 'start', path: entry.step, order: entry.order })
      case 'step-finish':
        return this.#order.waits() ? this.#take({ type: 'finish', path: entry.step }) : ''
    }
  }

  #take(event: Spoken): string {
    let words = ''
    for (const { path, text } of this.#order.take(event)) words += this.#paragraphs.add(path, text)
    return words
  }

  reset(path: string): boolean {
    this.#order.forget(path)
    return this.#paragraphs.has(path)
  }

  restart(): void {
    this.#paragraphs.restart()
  }
}

class Paragraphs {
  readonly #begun = new LazySet<string>()
  #last: string | undefined = undefined
  #isAtLineStart = true

  /** The text, with a blank line before it if this path starts after another path's text. */
  add(path: string, text: string): string {
    if (text === '') return ''
    const gap = path === this.#last || this.#isAtLineStart || this.#begun.has(path) ? '' : '\n\n'
    this.#isAtLineStart = text.endsWith('\n')
    if (path !== this.#last) this.#begun.add((this.#last = path))
    return gap + text
  }

  /** Whether any text came from this path or below. */
  has(root: string): boolean {
    for (const path of this.#begun) if (isUnder(path, root)) return true
    return false
  }

  restart(): void {
    this.#isAtLineStart = true
  }
}

/** The output of a run in which no step answered, as text. */
export function outputText(output: unknown): string {
  return typeof output === 'string' ? output : (JSON.stringify(output) ?? '')
}

/**
 * Orders the text of parallel branches for a wire with a single text: one branch after the other, as their `parallel` declares them. Text of later
 * branches is buffered in memory, with its deltas joined. (Reading it back from the log would bound the memory, but needs a reader.)
 */
type Spoken =
  | { type: 'say'; path: string; text: string }
  | { type: 'finish'; path: string }
  | { type: 'start'; path: string; order: readonly string[] }

interface DeclaredOrder {
  /** Whether any branches are being ordered. If not, all text can be sent at once. */
  waits(): boolean
  /** The text to send now, in order. */
  take(event: Spoken): Extract<Spoken, { type: 'say' }>[]
  /** Drops the buffered text of an attempt that a crash superseded. */
  forget(path: string): void
}

interface Parallel {
  order: readonly string[]
  /** The first index of each branch. */
  places: ReadonlyMap<string, number>
  /** Index of the branch whose turn it is. */
  turn: number
  held: Map<string, Spoken[]>
}

function createDeclaredOrder(): DeclaredOrder {
  return new Branches()
}

/** A class, not closures: one for each open stream (decisions/0028). */
class Branches implements DeclaredOrder {
  readonly #parallels = new LazyMap<string, Parallel>()

  waits(): boolean {
    return this.#parallels.size > 0
  }

  take(event: Spoken): Extract<Spoken, { type: 'say' }>[] {
    const said: Extract<Spoken, { type: 'say' }>[] = []
    // A branch's buffered events may end it, which begins the next one. A stack: the last item comes first.
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

  /** The buffered text of the branch after the finished one. */
  #finish(path: string): readonly Spoken[] {
    const parallel = this.#parallels.get(parentPath(path))
    if (parallel === undefined || !path.endsWith(`/${parallel.order[parallel.turn]}`)) return []
    const next = parallel.order[++parallel.turn]
    if (next === undefined) return []
    const waiting = parallel.held.get(next) ?? []
    parallel.held.delete(next)
    return waiting
  }

  /** Whether an event waits for its branch's turn, in the outermost parallel step that delays it. */
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
