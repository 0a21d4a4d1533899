/**
 * Buffers structured output until it is known to be the answer. No protocol can retract text that a model writes before a tool call, or output that
 * does not match the schema. So text under a step with `object: true` is held until its model call ends. It is dropped if the call made tool calls
 * for us, if a `retry` follows, or if the call failed. Otherwise it is sent as one block that contains only the JSON. Memory: the text of one model
 * call.
 */
import type { Entry, EntryOf } from '../part/entry.ts'
import { isUnder, parentPath } from '../part/path.ts'
import { jsonOf } from '../part/json.ts'
import { badOutput } from '../fold/reply-messages.ts'
import { LazyMap, LazySet } from '../fold/lazy-map.ts'

export interface HeldText {
  /** The entries to encode instead of this one; undefined, as in most cases, for the entry itself. */
  take(entry: Entry): Entry[] | undefined
}

type TextEntry = EntryOf<'text-start'> | EntryOf<'text-delta'> | EntryOf<'text-end'>

interface Held {
  start?: EntryOf<'text-start'>
  delta?: EntryOf<'text-delta'>
  end?: EntryOf<'text-end'>
  text: string
  dropped: boolean
}

export function createHeldText(): HeldText {
  return new HeldCalls()
}

/** A class, not closures: one for each open stream (decisions/0028). */
class HeldCalls implements HeldText {
  readonly #roots = new LazySet<string>()
  /** By the path of the model call. */
  readonly #calls = new LazyMap<string, Held>()

  take(entry: Entry): Entry[] | undefined {
    const roots = this.#roots
    if (entry.type === 'step-start' && entry.object === true) roots.add(entry.step)
    if (roots.size === 0) return undefined
    switch (entry.type) {
      case 'text-start':
      case 'text-delta':
      case 'text-end':
        if (!roots.has(parentPath(entry.step))) return undefined
        this.#keep(entry)
        return []
      case 'tool-call':
        if (entry.providerExecuted !== true && roots.has(parentPath(entry.step))) this.#at(entry.step).dropped = true
        return undefined
      case 'retry':
        if (entry.error.code === badOutput && roots.has(parentPath(entry.step))) this.#at(entry.step).dropped = true
        return undefined
      case 'step-finish':
        return this.#release(entry)
      case 'step-reset':
        for (const path of this.#calls.keys()) if (isUnder(path, entry.step)) this.#calls.delete(path)
        for (const path of roots) if (path !== entry.step && isUnder(path, entry.step)) roots.delete(path)
        return undefined
      default:
        return undefined
    }
  }

  #at(path: string): Held {
    let held = this.#calls.get(path)
    if (held === undefined) this.#calls.set(path, (held = { text: '', dropped: false }))
    return held
  }

  #keep(entry: TextEntry): void {
    const held = this.#at(entry.step)
    if (entry.type === 'text-start') held.start ??= entry
    else if (entry.type === 'text-end') held.end ??= entry
    else {
      held.delta ??= entry
      held.text += entry.delta
    }
  }

  #release(entry: EntryOf<'step-finish'>): Entry[] | undefined {
    const held = this.#calls.get(entry.step)
    if (held === undefined) return undefined
    this.#calls.delete(entry.step)
    const { start, delta, end, text, dropped } = held
    if (dropped || entry.error !== undefined || !start || !delta || !end) return undefined
    const { id } = start
    return [start, { ...delta, id, delta: jsonOf(text) }, { ...end, id }, entry]
  }
}
