/**
 * Removes secrets from recorded entries. Each entry stays, with its `seq`: text that was held back, because it might begin a secret,
 * goes into the entry that it comes from, not into another one. So what follows such an entry waits until it is known.
 */
import type { Entry, EntryOf, RecordedPart } from '../../part/entry.ts'
import type { Redactor } from '../../fold/redact.ts'
import { callKey } from '../../fold/open-items.ts'

type Delta = EntryOf<'text-delta' | 'reasoning-delta' | 'tool-input-delta'>

export interface EntryCleaner {
  clean(entries: readonly Entry[]): Entry[]
  /** What waits still. */
  end(): Entry[]
}

export function createEntryCleaner(redactor: Redactor | undefined): EntryCleaner {
  if (redactor === undefined) return { clean: (entries) => [...entries], end: () => [] }
  let waiting: Entry[] = []
  /** Block → its last delta, if text of it may be held back. */
  const held = new Map<string, Delta>()

  function cleanOne(entry: Entry): Entry {
    const { seq, timestamp, step, ...rest } = entry
    const part = rest as RecordedPart
    const found = redactor!.redact(step, part)
    const key = keyOf(entry)
    const cleaned = found.at(-1)
    if (cleaned === part && found.length === 1) {
      held.delete(key)
      return entry
    }
    const at = { seq, timestamp, step }
    if (!isDelta(entry)) {
      release(key, found)
      return { ...at, ...cleaned } as Entry
    }
    const delta = { ...at, ...(cleaned ?? { ...part, delta: '' }) } as Delta
    held.set(key, delta)
    return delta
  }

  /** At the end of a block. */
  function release(key: string, found: readonly RecordedPart[]): void {
    const [rest] = found
    const last = held.get(key)
    held.delete(key)
    if (found.length > 1 && last !== undefined) last.delta += (rest as Delta).delta
  }

  function take(): Entry[] {
    const ready = waiting
    waiting = []
    return ready
  }

  return {
    clean(entries) {
      for (const entry of entries) waiting.push(cleanOne(entry))
      return held.size === 0 ? take() : []
    },
    end() {
      for (const [key, { step, id, type }] of held) {
        release(
          key,
          redactor!.redact(step, {
            type: type.replace('delta', 'end'),
            id,
          } as RecordedPart),
        )
      }
      return take()
    },
  }
}

function isDelta(entry: Entry): entry is Delta {
  return entry.type === 'text-delta' || entry.type === 'reasoning-delta' || entry.type === 'tool-input-delta'
}

/** The block of its delta or end. */
function keyOf(entry: Entry): string {
  const [kind] = /^(?:text|reasoning|tool-input)-(?=delta$|end$)/u.exec(entry.type) ?? []
  return kind === undefined ? '' : `${kind}\n${callKey(entry.step, (entry as Delta).id)}`
}
