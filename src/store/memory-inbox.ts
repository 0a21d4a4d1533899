import type { InboxMessage, Posted } from '../part/log.ts'
import { createBell, type Bell } from './bell.ts'
import { decodeMessage } from './encode.ts'
import type { EncodedMessage } from './post-all.ts'

/** Inboxes of runs, in memory. Messages are stored as JSON text, so that no object is shared with the poster. */
export interface KeptInbox {
  readonly bell: Bell
  post(run: string, message: EncodedMessage): Posted
  next(run: string, after: number): InboxMessage | undefined
  has(run: string, key: string): boolean
  drop(run: string): void
}

/** Maximum number of idempotency keys to keep. They belong to no run, so they are not dropped with one. */
const keptKeys = 10_000

export function createKeptInbox(): KeptInbox {
  const keys = new Set<string>()
  const runs = new Map<string, { byKey: Map<string, string>; keys: string[] }>()
  const bell = createBell()
  return {
    bell,
    post(run, { key, message, text }) {
      const messages = runs.get(run) ?? { byKey: new Map<string, string>(), keys: [] }
      runs.set(run, messages)
      if (run.startsWith('key:')) keys.add(run)
      if (keys.size > keptKeys) {
        const [oldest] = keys
        keys.delete(oldest!)
        runs.delete(oldest!)
      }
      const winner = messages.byKey.get(key)
      if (winner !== undefined) return { first: false, message: decodeMessage(winner) }
      messages.byKey.set(key, text)
      messages.keys.push(key)
      bell.ring(run)
      return { first: true, message }
    },
    next(run, after) {
      const messages = runs.get(run)
      const key = messages?.keys[after]
      return key === undefined ? undefined : { n: after + 1, key, message: decodeMessage(messages!.byKey.get(key)!) }
    },
    has: (run, key) => runs.get(run)?.byKey.has(key) ?? false,
    drop(run) {
      runs.delete(run)
    },
  }
}
