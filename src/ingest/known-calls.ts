/**
 * The ids of a transcript's calls, as the normaliser asks for them. They are unique already, so none is renamed. Only the last ones are
 * remembered, to drop a result that comes twice: a transcript may be of any length.
 */
import type { Entry } from '../part/entry.ts'
import type { CallIds } from '../fold/call-ids.ts'

const most = 1000

export function createKnownCalls(): CallIds {
  const called = new Set<string>()
  return {
    apply(entry: Entry) {
      if (entry.type !== 'tool-call') return
      called.add(entry.toolCallId)
      if (called.size <= most) return
      for (const first of called) {
        called.delete(first)
        break
      }
    },
    toLog: (_, part) => part,
    hasCall: (_, id) => called.has(id),
  }
}
