/**
 * A handoff: an agent that a model has called takes over the conversation, and its answer is the answer of the step. The call gets its result before
 * the agent begins, so that the conversation is one that every provider accepts.
 */
import type { ModelReply, ModelToolCall } from '../fold/reply-messages.ts'
import type { StepFinish } from '../part/part.ts'
import { joinPath } from '../part/path.ts'
import { type OfferedAgent, refusal, runAgent } from './agent-tools.ts'
import { inStep, type NewStep, type Scope } from './scope.ts'
import type { RunState } from './state.ts'
import type { CallingLoop } from './tool-call.ts'

/** The fields of the step of an agent's call. */
export function agentStep({ use, pipeline }: OfferedAgent): Partial<NewStep> {
  return { stepType: 'call-agent', agent: use.agent, ...(pipeline !== undefined && { pipeline: pipeline.text }) }
}

/** Begins a handoff, or goes on with one after a pause. A failure of the agent is one of the step. */
export async function settleHandoff(
  scope: Scope,
  loop: CallingLoop,
  call: ModelToolCall,
  { offered, given }: { offered: OfferedAgent; given: unknown },
): Promise<void> {
  const { toolCallId, toolName } = call
  const { use } = offered
  const path = call.startedAt ?? joinPath(loop.root, scope.state.loopAt(loop.root).children + 1)
  if (scope.state.finished.has(path)) return
  const refused = call.startedAt === undefined ? refusal(scope, offered) : undefined
  if (!scope.state.has(path)) for (const limit of scope.limits) limit.checkStep()
  const more = refused === undefined ? { ...agentStep(offered), handoff: true as const } : {}
  const tell = (result: string, isError: boolean) =>
    scope.emit(path, { type: 'tool-result', toolCallId, toolName, result, isError })
  await inStep(scope, path, { stepType: 'tool-call', kind: 'tool-call', toolCallId, toolName, ...more }, async () => {
    if (refused !== undefined) {
      tell(refused, true)
      return { value: undefined }
    }
    if (call.result === undefined) tell(`The conversation is with ${use.agent} now.`, false)
    const before = loop.before('handoff')
    const { said, answer } = await runAgent(scope, path, { offered, given, before, answers: loop.answers })
    return { value: undefined, result: said, finishReason: answer?.finishReason ?? 'stop' }
  })
}

/** Whether another agent has taken over with this reply. */
export function isHandedOff({ calls }: ModelReply): boolean {
  return calls.some(({ handoff }) => handoff === true)
}

/** What the agent that took over has said, and why it ended. Undefined if none did. */
export function handoffIn(
  { finished }: Pick<RunState, 'finished'>,
  list: readonly ModelReply[],
): Pick<StepFinish, 'result' | 'finishReason'> | undefined {
  const path = list.at(-1)?.calls.find(({ handoff }) => handoff === true)?.startedAt
  return path === undefined ? undefined : finished.get(path)
}
