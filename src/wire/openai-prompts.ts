/**
 * What each model call was told, whole. The log says only what is new, so the loops under way are folded here: for a
 * client that asked for traces, and at the price of their text in memory.
 */
import type { Entry, EntryOf } from '../part/entry.ts'
import type { Message } from '../part/message.ts'
import { isUnder, parentPath } from '../part/path.ts'
import { loopMessages } from '../part/turn-messages.ts'
import { createTurns, type Turns } from '../part/turns.ts'

export interface Prompts {
  apply(entry: Entry): void
  /** System, history and the loop's earlier turns. Of a prompt that was applied last. */
  messages(prompt: EntryOf<'prompt'>): Message[]
}

export function createPrompts(): Prompts {
  const loops = new Map<string, Turns>()
  return {
    apply(entry) {
      const { type, step } = entry
      if ((type === 'step-finish' || type === 'step-reset') && loops.size > 0) {
        for (const root of loops.keys()) if (isUnder(root, step)) loops.delete(root)
      }
      const root = parentPath(step)
      let loop = loops.get(root)
      if (loop === undefined && type === 'step-start' && entry.stepType === 'model-call') {
        loops.set(root, (loop = createTurns(root)))
      }
      loop?.apply(entry)
    },
    messages(prompt) {
      const { step, system, messages } = prompt
      const { list = [], base } = loops.get(parentPath(step)) ?? {}
      const turns = loopMessages(list)
      const before = base === undefined || base.seq === prompt.seq ? [] : [...base.messages, ...turns]
      return [...(system === undefined ? [] : [{ role: 'system' as const, content: system }]), ...before, ...messages]
    },
  }
}
