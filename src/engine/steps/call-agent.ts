/**
 * `call-agent`: runs another agent's pipeline under this step's path, with its own variables. The log records the pipeline's text, so that a
 * resumed run calls the same version. A finished call is replayed for its value with its input at that time, not with later input. The call streams
 * the answer if its config says so, or if it is the last step.
 */
import { MillraceError } from '../../part/error.ts'
import { agentIdFault } from '../../pipeline/names.ts'
import { checkInput } from '../../pipeline/check-input.ts'
import { parsePipeline } from '../../pipeline/parse.ts'
import type { CallAgentConfig, Pipeline } from '../../pipeline/pipeline.ts'
import { resolve } from '../../pipeline/evaluate.ts'
import { runCalledAgent } from '../called-agent.ts'
import { inContainer, type Inside, type StepOutcome } from '../container.ts'
import { withLimit, msOf } from '../limits.ts'
import { valuesOf, type Scope } from '../scope.ts'
import { formatStepName } from '../step-name.ts'

export function runCallAgent(
  scope: Scope,
  path: string,
  config: CallAgentConfig,
  { place, at }: Inside,
): Promise<StepOutcome> {
  const { state } = scope
  const recorded = state.calledPipelines.get(path)
  const agent = recorded === undefined ? String(at(config.agent)) : ''
  const pipeline = recorded === undefined ? findAgent(scope, agent) : parsePipeline(recorded)
  const answers = place.answers && (config.stream ?? place.last)
  // An unknown agent fails the step inside its container, so that the log records the agent's name and the error.
  const start = { agent: agent.slice(0, 200), ...(pipeline === undefined ? undefined : { pipeline: pipeline.text }) }
  const run = (limited: Scope) =>
    inContainer(limited, path, { stepType: 'call-agent', kind: 'container', ...start }, () => body(limited))
  const budget = pipeline?.budget
  const timeout = pipeline?.timeouts?.run === undefined ? undefined : msOf(pipeline.timeouts.run)
  if ((budget === undefined && timeout === undefined) || state.finished.has(path)) return run(scope)
  const name = `${scope.step === undefined ? '' : `${formatStepName(scope.step)}: `}the called agent`
  return withLimit(scope, { name, root: path, budget, timeout }, run)

  async function body(scope: Scope): Promise<StepOutcome> {
    if (pipeline === undefined) throw unknownAgent(agent)
    const inputAt = (seq: number) => {
      const input = scope.inputAt(seq)
      return checkInput(pipeline.input, resolve(config.input ?? '$input', { ...valuesOf(scope), input }))
    }
    const { said: _, ...outcome } = await runCalledAgent(scope, path, { pipeline, inputAt, answers })
    return outcome
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
