/**
 * `call-agent`: another agent's pipeline under this step's path, with variables of its own. The log holds the text that
 * was called, so that a run that goes on calls the same. It is the answer when the call says so, or when nothing follows.
 */
import { MillraceError } from '../../part/error.ts'
import { agentIdFault } from '../../pipeline/agent-id.ts'
import { checkInput } from '../../pipeline/check-input.ts'
import { parsePipeline } from '../../pipeline/parse.ts'
import type { CallAgentConfig, Pipeline } from '../../pipeline/pipeline.ts'
import type { Scope } from '../scope.ts'
import type { StepOutcome } from '../step.ts'
import { inContainer, pipelineValue, runSteps, within, type Place } from '../walk.ts'

/** Calls within calls; deeper is a circle that variables hide. */
const maxDepth = 8

export function runCallAgent(
  scope: Scope,
  path: string,
  config: CallAgentConfig,
  { place, at }: { place: Place; at: <T>(value: T) => T },
): Promise<StepOutcome> {
  const agent = String(at(config.agent))
  const pipeline = findPipeline(scope, path, agent)
  const answers = place.answers && (config.stream ?? place.last)
  return inContainer(scope, path, { stepType: 'call-agent', agent, pipeline: pipeline.text }, async () => {
    if (scope.depth >= maxDepth) {
      throw new MillraceError('too-deep', `Agents call agents more than ${maxDepth} deep; is there a circle?`)
    }
    const given = config.input === undefined ? scope.input : at(config.input)
    const input = checkInput(pipeline.input, given)
    const inner = within(scope, { input, variables: new Map(), depth: scope.depth + 1 })
    const last = await runSteps(inner, pipeline.workflow, path, { answers, last: answers })
    if (pipeline.after.length > 0) scope.afterwards(inner, pipeline, path)
    const value = pipelineValue(inner, pipeline, last)
    return {
      value: value === undefined ? last.value : value,
      ...(answers && last.answer ? { answer: last.answer } : undefined),
    }
  })
}

function findPipeline(scope: Scope, path: string, agent: string): Pipeline {
  const recorded = scope.state.calledPipelines.get(path)
  if (recorded !== undefined) return parsePipeline(recorded)
  const fault = agentIdFault(agent)
  if (fault !== undefined) throw new MillraceError('unknown-agent', `"${agent}" is no agent's name: ${fault}.`)
  const pipeline = scope.agent(agent)
  if (pipeline === undefined) throw new MillraceError('unknown-agent', `There is no agent "${agent}".`)
  return pipeline
}
