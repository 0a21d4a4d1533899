/**
 * `call-agent`: another agent's pipeline under this step's path, with variables of its own. The log holds the text that
 * was called, so that a run that goes on calls the same. One that has finished is walked again for its value with the input
 * that it finished with: what came with a later answer was not for it. It is the answer when the call says so, or when
 * nothing follows.
 */
import { MillraceError } from '../../part/error.ts'
import { agentIdFault } from '../../pipeline/agent-id.ts'
import { checkInput } from '../../pipeline/check-input.ts'
import { parsePipeline } from '../../pipeline/parse.ts'
import type { CallAgentConfig, Pipeline } from '../../pipeline/pipeline.ts'
import { resolve } from '../../pipeline/resolve.ts'
import { inContainer, pipelineValue, type Inside, type StepOutcome } from '../container.ts'
import { withLimit } from '../limits.ts'
import { within, type Scope } from '../scope.ts'
import { formatStepName } from '../step-name.ts'
import { msOf, stricter } from '../time-limits.ts'

/** Calls within calls; deeper is a circle that variables hide. */
const maxDepth = 8

export function runCallAgent(
  scope: Scope,
  path: string,
  config: CallAgentConfig,
  { place, at, runSteps }: Inside,
): Promise<StepOutcome> {
  const { state, variables, env } = scope
  const recorded = state.calledPipelines.get(path)
  const agent = recorded === undefined ? String(at(config.agent)) : ''
  const pipeline = recorded === undefined ? findAgent(scope, agent) : parsePipeline(recorded)
  const answers = place.answers && (config.stream ?? place.last)
  // An agent that cannot be called is a failed step like any other: named in the log, and told there.
  const start = { agent: agent.slice(0, 200), ...(pipeline === undefined ? undefined : { pipeline: pipeline.text }) }
  const run = (limited: Scope) => inContainer(limited, path, { stepType: 'call-agent', ...start }, () => body(limited))
  const budget = pipeline?.budget
  const timeout = pipeline?.timeouts?.run === undefined ? undefined : msOf(pipeline.timeouts.run)
  if ((budget === undefined && timeout === undefined) || state.finished.has(path)) return run(scope)
  const name = `${scope.step === undefined ? '' : `${formatStepName(scope.step)}: `}the called agent`
  return withLimit(scope, { name, root: path, budget, timeout }, run)

  async function body(scope: Scope): Promise<StepOutcome> {
    if (pipeline === undefined) throw unknownAgent(agent)
    if (scope.depth >= maxDepth) {
      throw new MillraceError('too-deep', `agents call agents more than ${maxDepth} deep; is there a circle?`)
    }
    const inputAt = (seq: number) => {
      const input = scope.inputAt(seq)
      return checkInput(pipeline.input, resolve(config.input ?? '$input', { input, variables, env }))
    }
    const input = inputAt(state.finished.get(path)?.seq ?? state.lastSeq)
    const answerChars = pipeline.limits?.answerChars ?? scope.answerChars
    const inner = within(scope, {
      input,
      inputAt,
      variables: new Map(),
      depth: scope.depth + 1,
      answerChars,
      timeouts: pipeline.timeouts ?? {},
      callerTimeouts: stricter(scope.timeouts, scope.callerTimeouts),
    })
    const last = await runSteps(inner, pipeline.workflow, path, { answers, last: answers })
    if (pipeline.after.length > 0) scope.afterwards(inner, pipeline, path)
    const value = pipelineValue(inner, pipeline, last)
    return {
      value: value === undefined ? last.value : value,
      ...(answers && last.answer ? { answer: last.answer } : undefined),
    }
  }
}

function findAgent(scope: Scope, agent: string): Pipeline | undefined {
  return agentIdFault(agent) === undefined ? scope.agent(agent) : undefined
}

function unknownAgent(agent: string): MillraceError {
  const fault = agentIdFault(agent)
  const why = fault === undefined ? `there is no agent "${agent}"` : `${JSON.stringify(agent)} ${fault}`
  return new MillraceError('unknown-agent', `${why}.`)
}
