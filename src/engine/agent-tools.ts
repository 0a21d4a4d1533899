/**
 * Agents that a model calls as tools. A call runs the agent's pipeline below the path of the call, as `call-agent` does, and its value is the result
 * for the model. A failure of the agent is a result, too: only a limit around the call ends more than the call.
 */
import { messageOf, MillraceError } from '../part/error.ts'
import { isUnder } from '../part/path.ts'
import type { Message } from '../part/message.ts'
import { isOpenTo } from '../part/principal.ts'
import { loopMessages, type ModelReply } from '../fold/reply-messages.ts'
import { textOf } from '../fold/run-view.ts'
import { parseInput } from '../fold/tool-loop.ts'
import { agentInput, agentParameters } from '../pipeline/agent-parameters.ts'
import { checkInput } from '../pipeline/check-input.ts'
import { resolve } from '../pipeline/evaluate.ts'
import { parsePipeline } from '../pipeline/parse.ts'
import type { AgentToolUse, Pipeline } from '../pipeline/pipeline.ts'
import { runCalledAgent } from './called-agent.ts'
import type { StepOutcome } from './container.ts'
import { msOf, withLimit } from './limits.ts'
import { closeUnder, Suspended, toError, valuesOf, within, type Scope } from './scope.ts'
import type { OfferedTool } from './tool-call.ts'

/** How many agent tools one run may call, and how many of them work at the same time, if the agent sets no limits. */
export const defaultAgentCalls = 16
export const defaultParallelAgents = 4

/** Maximum characters of what a failed agent has said, for the model that called it. */
const mostTextSoFar = 20_000

/** An agent that a loop offers to its model. */
export interface OfferedAgent {
  use: AgentToolUse
  /** Absent if there is no such agent any more: calls that have started continue with the text in the log. */
  pipeline: Pipeline | undefined
}

/** Agents that the run's user may not use are left out. Throws `unknown-agent`, unless the loop has offered the agent before. */
export function offeredAgents(scope: Scope, path: string, uses: readonly AgentToolUse[]): OfferedTool[] {
  const recorded = scope.state.loopAt(path).base?.tools
  return uses.flatMap((use): OfferedTool[] => {
    const pipeline = scope.agent(use.agent)
    const { name, approval, input: fixed } = use
    const agent: OfferedAgent = { use, pipeline }
    const approves = approval === undefined ? {} : { approval }
    if (pipeline === undefined) {
      const spec = recorded?.find((each) => each.name === name)
      if (spec === undefined) throw new MillraceError('unknown-agent', `there is no agent "${use.agent}".`)
      return [{ spec, agent, implementation: { parameters: spec.inputSchema }, ...approves }]
    }
    if (!isOpenTo(scope.state.start?.user, pipeline.access)) return []
    const hasMessage = use.handoff !== true
    const inputSchema = { ...agentParameters(pipeline, { fixed, hasMessage, find: scope.agent }) }
    const description = descriptionOf(use, pipeline)
    return [
      { spec: { name, description, inputSchema }, agent, implementation: { parameters: inputSchema }, ...approves },
    ]
  })
}

function descriptionOf({ agent, description, handoff }: AgentToolUse, { metadata }: Pipeline): string {
  const own = description ?? metadata.description
  if (handoff !== true) return own ?? `Asks the agent ${metadata.name ?? agent}.`
  const does = `Hands the conversation over to the agent ${metadata.name ?? agent}, which answers from there on.`
  return own === undefined ? does : `${does} ${own}`
}

/** Why the call must not start: its limit is used up, or there is no such agent. */
export function refusal(scope: Scope, { use, pipeline }: OfferedAgent): string | undefined {
  if (pipeline === undefined) return `There is no agent "${use.agent}" any more.`
  for (const { root, calls } of scope.agentCallLimits) {
    let made = 0
    for (const path of scope.state.agentCalls) if (path !== root && isUnder(path, root)) made++
    if (made >= calls) {
      return `No more agents can be called: this run has made its ${calls} calls (limits.agentCalls). Answer with what you have.`
    }
  }
  return undefined
}

export interface AgentRun {
  offered: OfferedAgent
  /** The conversation so far, if the agent gets it. */
  before?: readonly Message[] | undefined
  /** The arguments of the call, checked. */
  given: unknown
  /** Whether the agent's answer is the answer for the client. */
  answers: boolean
  /** It has ended before, and no limit counts. */
  isOver?: boolean
}

/** Runs the agent of a call whose step is open at `path`. Throws only what ends more than this call. */
export async function runAgentTool(
  scope: Scope,
  path: string,
  run: AgentRun,
): Promise<{ result: unknown; isError: boolean }> {
  try {
    const { said } = await runAgent(scope, path, run)
    return { result: said, isError: false }
  } catch (thrown) {
    if (thrown instanceof Suspended || scope.signal.aborted) throw thrown
    const error = toError(thrown)
    closeUnder(scope, path, error, true)
    const text = textSoFar(scope, path)
    const why = `The agent ${run.offered.use.agent} failed: ${messageOf(error)}`
    return { result: text === '' ? why : `${why}\n\nIt had said so far:\n${text}`, isError: true }
  }
}

/** Runs the agent below the path, with its own limits and those of the call. Throws its failure. */
export async function runAgent(
  scope: Scope,
  path: string,
  { offered: { use, pipeline: found }, before, given, answers, isOver = false }: AgentRun,
): Promise<StepOutcome & { said: unknown }> {
  const recorded = scope.state.calledPipelines.get(path)
  // The agent as it is read now, unless the call began with another text.
  const pipeline = found !== undefined && (recorded ?? found.text) === found.text ? found : parsePipeline(recorded!)
  const { input: fixed, clientTools = false, handoff = false } = use
  const inputAt = (seq: number) => {
    const outer = scope.inputAt(seq)
    const own = fixed === undefined ? undefined : resolve(fixed, { ...valuesOf(scope), input: outer })
    const input = agentInput(pipeline, given, { fixed: own, before })
    const tools = (clientTools || handoff) && outer['tools'] !== undefined ? { tools: outer['tools'] } : undefined
    return checkInput(pipeline.input, { ...tools, ...input })
  }
  const inner = handoff
    ? scope
    : within(scope, {
        handOver: false,
        cannotAsk: scope.handOver || scope.cannotAsk === true,
        offersRequestTools: clientTools,
        handsBackTo: undefined,
      })
  const name = `The agent ${use.agent}`
  const limits = (isOver ? [] : [pipeline, use]).flatMap(({ budget, timeouts }) => {
    const timeout = timeouts?.run === undefined ? undefined : msOf(timeouts.run)
    return budget === undefined && timeout === undefined ? [] : [{ budget, timeout }]
  })
  const limited = (around: Scope, [limit, ...more]: typeof limits): Promise<StepOutcome & { said: unknown }> => {
    if (limit === undefined) return runCalledAgent(around, path, { pipeline, inputAt, answers })
    return withLimit(around, { ...limit, name, root: path, leavesOpen: true }, (within) => limited(within, more))
  }
  return limited(inner, limits)
}

/**
 * Walks once more through the agents whose calls had ended before this process went on with the run: nothing is recorded again, and their `after`
 * is due at the end of the run. `root`: the step whose model called them.
 */
export async function revisitAgents(scope: Scope, root: string, uses: readonly AgentToolUse[]): Promise<void> {
  const { finished, calledPipelines } = scope.state
  const { base, list, early } = scope.state.loopAt(root)
  for (const [i, { calls }] of list.entries()) {
    for (const { startedAt: path = '', toolName, result, edited, input } of calls) {
      const use = uses.find(({ name }) => name === toolName)
      const isOver = use?.handoff === true ? finished.has(path) : result?.isError === false
      if (use === undefined || !isOver || !calledPipelines.has(path)) continue
      const before =
        use.history === true ? conversationOf([...(base?.messages ?? []), ...early], list.slice(0, i)) : undefined
      const given = parseInput(edited ?? input)
      const offered = { use, pipeline: undefined }
      await runAgent(scope, path, { offered, given, before, answers: use.handoff === true, isOver })
    }
  }
}

/** What the agent's last model call has said. */
function textSoFar({ state }: Scope, path: string): string {
  const inner = [...state.calledPipelines.keys()].filter((at) => at !== path && isUnder(at, path))
  let text = ''
  for (const [root, { list }] of state.loops) {
    if (!isUnder(root, path) || root === path || inner.some((at) => isUnder(root, at))) continue
    for (const { content } of list) text = textOf({ role: 'assistant', content }) || text
  }
  return text.length > mostTextSoFar ? `${text.slice(0, mostTextSoFar)}…` : text
}

/** The conversation of a loop, for another agent: without system messages. Each reply names its model, whose signatures no other one gets. */
export function conversationOf(base: readonly Message[], replies: readonly ModelReply[]): Message[] {
  return [...base, ...loopMessages(replies, 'named')].filter(({ role }) => role !== 'system')
}

/** The scope of an agent that has a place among those that work: while it waits, others have the place. */
export async function inSlot<T>(scope: Scope, body: (inner: Scope) => Promise<T>): Promise<T> {
  const around = scope.agentSlot
  around?.pause()
  const slot = await scope.agentSlots.take(scope.signal)
  let result: T
  try {
    result = await body(
      within(scope, {
        agentSlot: slot,
        pass() {
          const held = scope.pass()
          if (held !== undefined) slot.pause()
          return held
        },
        async request(path, request, signal, how) {
          slot.pause()
          const response = await scope.request(path, request, signal, how)
          await slot.resume()
          return response
        },
      }),
    )
  } finally {
    slot.release()
  }
  await around?.resume()
  return result
}
