/**
 * How many items are open at or below each path, kept entry by entry. Whether anything is left below a step is then one
 * look: a message with thousands of tool calls would otherwise cost thousands of looks at thousands of items.
 */
import type { Entry } from '../part/entry.ts'
import { callKey, type OpenItems } from './open-items.ts'
import { parentPath } from '../part/path.ts'

export interface OpenCounts {
  /** Items open at or below a path, the step at that path included. */
  at(path: string): number
  /** Applies the entry to the open items and counts what that changed. */
  apply(entry: Entry): void
}

interface Place {
  count: number
  above: Place | undefined
}

export function createOpenCounts(open: OpenItems): OpenCounts {
  const places = new Map<string, Place>()

  /** The place of a path. It knows the one above, so that the names in between are not put together anew for each entry. */
  function placeAt(path: string): Place {
    const known = places.get(path)
    if (known !== undefined) return known
    const made: Place = { count: 0, above: undefined }
    places.set(path, made)
    for (let [below, at] = [made, path]; at !== '';) {
      at = parentPath(at)
      const above = places.get(at)
      below.above = above ?? { count: 0, above: undefined }
      if (above !== undefined) break
      places.set(at, below.above)
      below = below.above
    }
    return made
  }

  function add(path: string, change: number): void {
    for (let at: Place | undefined = placeAt(path); at !== undefined; at = at.above) at.count += change
  }

  function recount(): void {
    places.clear()
    for (const path of [...open.steps.keys(), ...open.texts.values(), ...open.reasonings.values()]) add(path, 1)
    for (const items of [open.inputs, open.calls, open.requests]) for (const { step } of items.values()) add(step, 1)
  }

  return {
    at: (path) => places.get(path)?.count ?? 0,
    apply(entry) {
      const closes = closedBy(open, entry)
      const before = sizeOf(open)
      open.apply(entry)
      const change = sizeOf(open) - before
      // An entry that opens what is open already is a fault, and may have moved it.
      if (entry.type === 'step-reset' || (change === 0 && opening.has(entry.type))) recount()
      else if (change > 0) add(entry.step, 1)
      else if (change < 0 && closes !== undefined) add(closes, -1)
    },
  }
}

const opening: ReadonlySet<string> = new Set([
  'step-start',
  'text-start',
  'reasoning-start',
  'tool-input-start',
  'tool-call',
  'request',
])

function sizeOf({ steps, texts, reasonings, inputs, calls, requests }: OpenItems): number {
  return steps.size + texts.size + reasonings.size + inputs.size + calls.size + requests.size
}

/** The path of the item that an entry closes: not always its own, because a call is closed by a step beside it. */
function closedBy(open: OpenItems, entry: Entry): string | undefined {
  switch (entry.type) {
    case 'step-finish':
      return entry.step
    case 'text-end':
      return open.texts.get(entry.id)
    case 'reasoning-end':
      return open.reasonings.get(entry.id)
    case 'tool-input-end':
      return open.inputs.get(callKey(entry.step, entry.id))?.step
    case 'tool-result':
      return open.calls.get(callKey(entry.step, entry.toolCallId))?.step
    case 'response':
      return open.requests.get(entry.requestId)?.step
    default:
      return undefined
  }
}
