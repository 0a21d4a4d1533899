import type { InboxMessage, Posted } from '../part/log.ts'
import { createBell, type Bell } from './bell.ts'
import { encodeMessage } from './encode.ts'

/** Messages of runs, in memory: kept as JSON text, so that nobody shares an object with the poster. */
export interface KeptInbox {
  readonly bell: Bell
  post(run: string, key: string, message: unknown): Posted
  next(run: string, after: number): InboxMessage | undefined
  drop(run: string): void
}

export function createKeptInbox(): KeptInbox {
  const runs = new Map<string, Map<string, string>>()
  const bell = createBell()
  return {
    bell,
    post(run, key, message) {
      const messages = runs.get(run) ?? new Map<string, string>()
      runs.set(run, messages)
      const winner = messages.get(key)
      if (winner !== undefined) return { first: false, message: JSON.parse(winner) }
      messages.set(key, encodeMessage(run, key, message))
      bell.ring(run)
      return { first: true, message }
    },
    next(run, after) {
      const found = [...(runs.get(run) ?? [])][after]
      return found && { n: after + 1, key: found[0], message: JSON.parse(found[1]) }
    },
    drop(run) {
      runs.delete(run)
    },
  }
}
