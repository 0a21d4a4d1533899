/** Runs the pipeline of a called agent below the path of its call: for `call-agent`, and for agents that a model calls. */
import { MillraceError } from '../part/error.ts'
import { checkOutput } from '../pipeline/check-input.ts'
import type { Pipeline } from '../pipeline/pipeline.ts'
import { pipelineValue, type StepOutcome } from './container.ts'
import { stricter } from './limits.ts'
import { within, type Scope } from './scope.ts'

/** Maximum nesting of calls. Deeper nesting is taken for a cycle, which variable agent names can hide from the parser. */
const maxDepth = 8

export interface CalledAgent {
  pipeline: Pipeline
  /** The agent's `$input` as of an entry, checked. */
  inputAt(seq: number): Record<string, unknown>
  /** Whether its answer is the answer for the client. */
  answers: boolean
}

/** `said`: the value for a model that has called it. The call's step is open at `path`. A call that has finished in the log is replayed for its value, with its input at that time. */
export async function runCalledAgent(
  scope: Scope,
  path: string,
  { pipeline, inputAt, answers }: CalledAgent,
): Promise<StepOutcome & { said: unknown }> {
  const { state } = scope
  if (scope.depth >= maxDepth) {
    const cure = 'Check whether the agents call each other in a cycle.'
    throw new MillraceError('too-deep', `agent calls are nested more than ${maxDepth} levels deep. ${cure}`)
  }
  const input = inputAt(state.finished.get(path)?.seq ?? state.lastSeq)
  const { limits = {}, timeouts = {} } = pipeline
  const { answerChars = scope.answerChars, toolCalls = scope.toolCalls, agentCalls } = limits
  const own = agentCalls === undefined ? [] : [{ root: path, calls: agentCalls }]
  const inner = within(scope, {
    input,
    inputAt,
    variables: new Map(),
    depth: scope.depth + 1,
    answerChars,
    toolCalls,
    agentCallLimits: [...scope.agentCallLimits, ...own],
    timeouts,
    answeredBefore: undefined,
    steering: undefined,
    callerTimeouts: stricter(scope.timeouts, scope.callerTimeouts),
  })
  const last = await scope.runSteps(inner, pipeline.workflow, path, { answers, last: answers })
  if (pipeline.after.length > 0) scope.afterwards(inner, pipeline, path)
  const said = agentValue(inner, pipeline, last)
  const value = pipeline.output === undefined ? (pipelineValue(inner, pipeline, last) ?? last.value) : said
  return { value, said, ...(answers && last.answer ? { answer: last.answer } : undefined) }
}

/**
 * The value of an agent for whoever has asked it, checked against its `output`: `return`, or else what its last step has said, as text or JSON, if a
 * model made it.
 */
export function agentValue(scope: Scope, pipeline: Pipeline, last: StepOutcome): unknown {
  const { return: template, output } = pipeline
  const said = template === undefined ? saidBy(last.value) : undefined
  const value = said ?? pipelineValue(scope, pipeline, last) ?? last.value ?? null
  return output === undefined ? value : checkOutput(output, value)
}

/** The text or the JSON in the value of a step that runs a model. */
function saidBy(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return undefined
  const { text, object, finishReason, steps } = value as Record<string, unknown>
  const isModels = typeof text === 'string' && typeof finishReason === 'string' && Array.isArray(steps)
  return isModels ? (object ?? text) : undefined
}
