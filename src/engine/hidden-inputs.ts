/**
 * The inputs of tool calls of which the log hides something, for the tools that run in this process. They are in memory only:
 * after a suspension or a crash, tools get what the log has.
 */
import type { EntryOf } from '../part/entry.ts'
import { parentPath } from '../part/path.ts'
import type { Call } from '../fold/reply.ts'
import type { RunState } from './state.ts'

export function createHiddenInputs(state: RunState) {
  const inputs = new WeakMap<Call, string>()
  let given: string | undefined
  return {
    /** The input of the call that is recorded next. */
    next: (input: string) => void (given = input),
    /** Must be called when the state has the call. */
    keep({ step, toolCallId }: EntryOf<'tool-call'>): void {
      if (given === undefined) return
      const reply = state.loopAt(parentPath(step)).list.findLast(({ path }) => path === step)
      const call = reply?.calls.findLast((each) => each.toolCallId === toolCallId)
      if (call !== undefined) inputs.set(call, given)
      given = undefined
    },
    inputOf: (call: Call) => inputs.get(call) ?? call.input,
  }
}
