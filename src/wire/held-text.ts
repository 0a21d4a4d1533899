/**
 * The text of an answer that is JSON, held back until it is known to be the answer. What a model says before it calls a tool,
 * and a try that does not fit, cannot be taken back by any protocol once it was sent. So text under a step with
 * `object: true` waits for the end of its model call: it is dropped when the call made tool calls of ours, when a `retry`
 * asks for another try, and when the call failed; else it goes out as one block with the JSON alone. Held in memory: the text of one
 * model call.
 */
import type { Entry, EntryOf } from '../part/entry.ts'
import { isUnder, parentPath } from '../part/path.ts'
import { jsonOf } from '../part/read-json.ts'
import { badOutput } from '../part/turn-messages.ts'

export interface HeldText {
  /** What to say instead of an entry; undefined for the entry itself, as nearly always. */
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
  const roots = new Set<string>()
  /** By the path of the model call. */
  const calls = new Map<string, Held>()

  function heldAt(path: string): Held {
    let held = calls.get(path)
    if (held === undefined) calls.set(path, (held = { text: '', dropped: false }))
    return held
  }

  function keep(entry: TextEntry): void {
    const held = heldAt(entry.step)
    if (entry.type === 'text-start') held.start ??= entry
    else if (entry.type === 'text-end') held.end ??= entry
    else {
      held.delta ??= entry
      held.text += entry.delta
    }
  }

  function release(entry: EntryOf<'step-finish'>): Entry[] | undefined {
    const held = calls.get(entry.step)
    if (held === undefined) return undefined
    calls.delete(entry.step)
    const { start, delta, end, text, dropped } = held
    if (dropped || entry.error !== undefined || !start || !delta || !end) return undefined
    const { id } = start
    return [start, { ...delta, id, delta: jsonOf(text) }, { ...end, id }, entry]
  }

  return {
    take(entry) {
      if (entry.type === 'step-start' && entry.object === true) roots.add(entry.step)
      if (roots.size === 0) return undefined
      switch (entry.type) {
        case 'text-start':
        case 'text-delta':
        case 'text-end':
          if (!roots.has(parentPath(entry.step))) return undefined
          keep(entry)
          return []
        case 'tool-call':
          if (entry.providerExecuted !== true && roots.has(parentPath(entry.step))) heldAt(entry.step).dropped = true
          return undefined
        case 'retry':
          if (entry.error.code === badOutput && roots.has(parentPath(entry.step))) heldAt(entry.step).dropped = true
          return undefined
        case 'step-finish':
          return release(entry)
        case 'step-reset':
          for (const path of calls.keys()) if (isUnder(path, entry.step)) calls.delete(path)
          for (const path of roots) if (path !== entry.step && isUnder(path, entry.step)) roots.delete(path)
          return undefined
        default:
          return undefined
      }
    },
  }
}
