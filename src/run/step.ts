/** One step of a pipeline: its config resolved, run by its type, bracketed in the log. */
import type { EntryOf } from '../part/entry.ts'
import { MillraceError, messageOf } from '../part/error.ts'
import type { ToolSpec } from '../part/message.ts'
import { addUsage, noUsage } from '../part/usage.ts'
import type { LlmConfig } from '../pipeline/llm-config.ts'
import type { Step } from '../pipeline/pipeline.ts'
import { resolve } from '../pipeline/resolve.ts'
import { toMessages, toToolSpecs } from './input.ts'
import { joinPath } from '../part/path.ts'
import { inStep, type Scope } from './scope.ts'
import { runCustom } from './steps/custom.ts'
import { llmResult, runLlm } from './steps/llm.ts'
import { generateOutput } from './steps/output-generator.ts'

export interface StepOutcome {
  value: unknown
  /** The step was the answer: nothing after it in the workflow runs. */
  answer?: { finishReason: string }
}

export async function runPipelineStep(
  scope: Scope,
  step: Step,
  path: string,
  { answers = true }: { answers?: boolean } = {},
): Promise<StepOutcome> {
  const values = { input: scope.input, variables: scope.variables, env: scope.env }
  const at = <T>(value: T): T => {
    try {
      return resolve(value, values) as T
    } catch (error) {
      const code = error instanceof MillraceError ? error.code : 'bad-value'
      throw new MillraceError(code, `Step ${step.id} (${step.type}): ${messageOf(error)}`)
    }
  }

  switch (step.type) {
    case 'llm': {
      const answer = step.config.stream && answers
      return inStep(scope, path, { stepType: 'llm', ...(answer ? { answer } : undefined) }, async () => {
        const config = resolveLlm(step.config, at)
        const clientTools: ToolSpec[] = answer ? toToolSpecs(scope.input['tools']) : []
        const result = await runLlm({ scope, path, config, clientTools })
        const { usage, finishReason } = result
        const finish = () => scope.invoke(config.onFinish, result)
        // A slow callback must not hold back the answer's end.
        if (answer) scope.defer(finish)
        else await finish()
        const value: StepOutcome = { value: result, ...(answer ? { answer: { finishReason } } : undefined) }
        return { value, usage, finishReason }
      })
    }
    case 'output-generator':
      return inStep(scope, path, { stepType: step.type }, async () => {
        const result = generateOutput(at(step.config))
        return { value: { value: result }, result }
      })
    case 'custom': {
      const handler = scope.registry.steps.get(step.stepType)
      if (scope.state.open.steps.has(path)) {
        // Nobody knows what the handler had done when its process died.
        const what = `Step ${step.id} (${step.stepType}) was cut off by a crash`
        throw new MillraceError('interrupted', `${what} and is not run a second time.`)
      }
      return inStep(scope, path, { stepType: step.stepType }, async () => {
        if (handler === undefined) {
          const known = [...scope.registry.steps.keys()].join(', ') || 'none'
          throw new MillraceError('unknown-step-type', `Step ${step.id}: no type "${step.stepType}". Known: ${known}.`)
        }
        const { value, answered } = await runCustom(scope, path, handler, at(step.config))
        const outcome: StepOutcome = { value }
        if (answered && answers) outcome.answer = { finishReason: 'stop' }
        return { value: outcome, ...(answered ? undefined : { result: value }) }
      })
    }
    // TEMPORARY: the language knows these types, the engine does not yet.
    case 'call-agent':
    case 'mcp-tool':
    case 'condition':
    case 'loop':
    case 'parallel':
      throw new MillraceError('not-supported', `Step ${step.id} (${step.type}): the engine does not run this type yet.`)
    default:
      return step satisfies never
  }
}

/** The outcome of a step that the log holds finished: an `llm`'s is read off its turns, not kept a second time. */
export function stepValue(scope: Scope, step: Step, path: string, finish: EntryOf<'step-finish'>): StepOutcome {
  if (step.type !== 'llm') {
    const streamed = step.type === 'custom' && scope.state.finished.has(joinPath(path, 1))
    return { value: finish.result, ...(streamed ? { answer: { finishReason: 'stop' } } : undefined) }
  }
  let usage = finish.usage
  if (usage === undefined) {
    for (const [at, { usage: spent }] of scope.state.finished) {
      if (at.startsWith(`${path}/`) && spent) usage = addUsage(usage, spent)
    }
  }
  const value = llmResult(scope.state.turns(path).list, usage ?? noUsage)
  if (!step.config.stream || path.startsWith('after/')) return { value }
  return { value, answer: { finishReason: finish.finishReason ?? 'stop' } }
}

function resolveLlm(config: LlmConfig, at: <T>(value: T) => T) {
  const { system, messages, model, providerOptions, headers } = config
  return {
    ...config,
    messages: toMessages(at(messages), 'messages'),
    ...(system === undefined ? undefined : { system: String(at(system)) }),
    ...(model === undefined ? undefined : { model: String(at(model)) }),
    ...(providerOptions === undefined ? undefined : { providerOptions: at(providerOptions) }),
    ...(headers === undefined ? undefined : { headers: at(headers) }),
  }
}
