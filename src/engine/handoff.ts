/**
 * A handoff: an agent that a model has called takes over the conversation, and its answer is the answer of the step. The call gets its result before
 * the agent begins, so that the conversation is one that every provider accepts.
 */
import type { ModelToolCall } from '../fold/reply-messages.ts'
import { handBackTool } from '../part/respond.ts'
import { isUnder, joinPath } from '../part/path.ts'
import { type AgentRun, type OfferedAgent, refusal, runAgent } from './agent-tools.ts'
import { inStep, within, type Finished, type NewStep, type Scope } from './scope.ts'
import { isHandedBack } from './taken-over.ts'
import type { CallingLoop, OfferedTool } from './tool-call.ts'

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
    return answerOf(scope, path, { offered, given, before, answers: loop.answers })
  })
}

/** Runs the agent that has taken over. What it has to say, but has not streamed, is the answer in one piece. */
async function answerOf(scope: Scope, path: string, run: AgentRun): Promise<Finished<undefined>> {
  const { said, answer } = await runAgent(scope, path, run)
  if (run.answers && answer === undefined) {
    const at = joinPath(path, wholeAnswer)
    if (!scope.state.finished.has(at)) {
      if (scope.state.open.steps.has(at)) scope.emit(at, { type: 'step-reset', attempt: 1 })
      await inStep(scope, at, { stepType: 'answer', kind: 'task', answer: true }, async () => {
        const id = scope.newId()
        scope.emit(at, { type: 'text-start', id })
        scope.emit(at, { type: 'text-delta', id, delta: typeof said === 'string' ? said : JSON.stringify(said) })
        scope.emit(at, { type: 'text-end', id })
        return { value: undefined }
      })
    }
  }
  return { value: undefined, result: said, finishReason: answer?.finishReason ?? 'stop' }
}

/** No id of a step has these characters. */
const wholeAnswer = '(answer)'

/* `sticky`: a thread stays with the agent that has answered last. */

/** A tool for the agent that has the conversation from an earlier run. */
export function handBack(agent: string): OfferedTool {
  const description = `Gives the conversation back to ${agent}. Call it when the user wants something else.`
  const inputSchema = { type: 'object', properties: {} }
  const execute = () => `The conversation is with ${agent} again.`
  return {
    spec: { name: handBackTool, description, inputSchema },
    implementation: { parameters: inputSchema, execute, idempotent: true },
  }
}

/** Begins with the agent that answered the last run of the thread, if this loop could hand over to it. Resolves with whether it has answered. */
export async function stayWithAgent(scope: Scope, loop: CallingLoop): Promise<boolean> {
  const { state } = scope
  const path = joinPath(loop.root, 1)
  const isNew = state.loopAt(loop.root).children === 0
  const before = isNew ? await scope.answeredBefore?.() : undefined
  const begun = isNew ? before : state.takenOver.get(path)
  const offered = [...loop.tools.values()].find(({ agent }) => agent?.use.handoff === true && agent.use.agent === begun)
  if (begun === undefined || offered?.agent === undefined) return false
  const { agent } = offered
  if (isNew && agent.pipeline === undefined) return false
  const inner = within(scope, { handsBackTo: state.start?.agent ?? 'the first agent' })
  if (!state.finished.has(path)) {
    const start: NewStep = { stepType: 'call-agent', kind: 'container', handoff: true, ...agentStep(agent) }
    await inStep(scope, path, start, async () => {
      return answerOf(inner, path, { offered: agent, given: {}, before: loop.before(), answers: loop.answers })
    })
  }
  for (const [root, { list }] of state.loops) {
    if (isUnder(root, path) && list.length > 0 && isHandedBack(list.at(-1)!)) return false
  }
  return true
}
