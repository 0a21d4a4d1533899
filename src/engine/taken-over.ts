/** Whether another agent has taken over the conversation of a tool loop, and what it has said: read from the log. */
import type { ModelReply } from '../fold/reply-messages.ts'
import type { StepFinish } from '../part/part.ts'
import { joinPath } from '../part/path.ts'
import { handBackTool } from '../part/respond.ts'
import type { RunState } from './state.ts'

/** Whether another agent has taken over with this reply. */
export function isHandedOff({ calls }: ModelReply): boolean {
  return calls.some(({ handoff }) => handoff === true)
}

/** What the agent that took over has said, and why it ended. Undefined if none did. */
export function handoffIn(
  state: Pick<RunState, 'finished' | 'takenOver' | 'loopAt'>,
  root: string,
): Pick<StepFinish, 'result' | 'finishReason'> | undefined {
  const { list } = state.loopAt(root)
  const stayed = list.length === 0 && state.takenOver.get(joinPath(root, 1)) !== undefined
  const path = stayed ? joinPath(root, 1) : list.at(-1)?.calls.find(({ handoff }) => handoff === true)?.startedAt
  return path === undefined ? undefined : state.finished.get(path)
}

/** Whether the agent that has the conversation from an earlier run gives it back with this reply. */
export function isHandedBack({ calls }: ModelReply): boolean {
  return calls.some(({ toolName, result }) => toolName === handBackTool && result?.isError === false)
}
