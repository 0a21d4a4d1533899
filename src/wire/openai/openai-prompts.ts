/**
 * Rebuilds the full prompt of each model call. The log contains only new messages, so active loops are folded here. Used only
 * for clients that ask for traces, because it keeps their text in memory.
 */
import type { Entry, EntryOf } from '../../part/entry.ts'
import type { Message } from '../../part/message.ts'
import { isUnder, parentPath } from '../../part/path.ts'
import { kindOf } from '../../part/step-kind.ts'
import { loopMessages } from '../../fold/reply-messages.ts'
import { withShortened } from '../../fold/long-results.ts'
import { markOfRun } from '../../fold/result-handle.ts'
import { createToolLoop, type ToolLoop } from '../../fold/tool-loop.ts'

export interface Prompts {
  apply(entry: Entry): void
  /** System prompt, history and earlier replies of the loop. Call it right after the prompt was applied. */
  messages(prompt: EntryOf<'prompt'>): Message[]
}

export function createPrompts(): Prompts {
  const loops = new Map<string, ToolLoop>()
  let mark: string | undefined
  return {
    apply(entry) {
      const { type, step } = entry
      if (type === 'run-start') mark = markOfRun(entry)
      if ((type === 'step-finish' || type === 'step-reset') && loops.size > 0) {
        for (const root of loops.keys()) if (isUnder(root, step)) loops.delete(root)
      }
      const root = parentPath(step)
      let loop = loops.get(root)
      if (loop === undefined && type === 'step-start' && kindOf(entry) === 'model-call') {
        loops.set(root, (loop = createToolLoop(root, mark)))
      }
      loop?.apply(entry)
    },
    messages(prompt) {
      const { step, system, messages } = prompt
      const loop = loops.get(parentPath(step))
      const lead = system === undefined ? [] : [{ role: 'system' as const, content: system }]
      if (loop?.base === undefined) return [...lead, ...messages]
      const { list, base, early, shortened } = loop
      if (base.seq === prompt.seq) return [...lead, ...messages, ...early]
      const told = [...lead, ...base.messages, ...early, ...loopMessages(list), ...messages]
      return withShortened(told, shortened)
    },
  }
}
