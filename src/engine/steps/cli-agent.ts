/** `cli-agent`: Claude Code, Codex, Gemini CLI or Qwen Code as a child process. Its parts stream into the run (`engine/cli/`). */
import { omitUndefined } from '../../part/omit-undefined.ts'
import type { EntryOf } from '../../part/entry.ts'
import { isUnder } from '../../part/path.ts'
import { addUsage, noUsage, type Usage } from '../../part/usage.ts'
import type { CliAgentConfig } from '../../pipeline/pipeline.ts'
import { commandOf, clis, toModelName } from '../cli/arguments.ts'
import { runCli, type CliEnd } from '../cli/run-cli.ts'
import { toPrompt } from '../cli/prompt.ts'
import { workingFolder } from '../cli/working-folder.ts'
import type { StepRole, StepOutcome } from '../container.ts'
import { refuseUnpriced } from '../model-call.ts'
import { inStep, type Scope } from '../scope.ts'
import { toolLoopResult, type LlmStepResult, type ToolLoopResult } from '../tool-loop.ts'

/** The value of `result` after a `cli-agent` step. */
export interface CliAgentResult extends Omit<ToolLoopResult, 'steps'> {
  /** The output of each of its model calls. Only the total of their usage is known. */
  steps: Omit<LlmStepResult, 'usage'>[]
  sessionId?: string
  model?: string
  /** In USD, if it is known. */
  cost?: number
  /** `null` if the process was stopped after its result. */
  exitCode: number | null
  /** The answer as JSON, if the agent was asked for a schema. */
  object?: unknown
}

/** Whether the step is the answer. */
export function answersBy({ stream }: CliAgentConfig, { answers, last }: StepRole): boolean {
  return answers && (stream ?? last)
}

export async function runCliAgent(
  scope: Scope,
  path: string,
  config: CliAgentConfig,
  at: <T>(value: T) => T,
  answer: boolean,
): Promise<StepOutcome> {
  const attempt = scope.state.open.steps.get(path)?.attempt
  // Its server crashed while it ran. Half an answer cannot be continued, so the step begins again.
  if (attempt !== undefined) scope.emit(path, { type: 'step-reset', attempt })
  const start = { stepType: 'cli-agent', kind: 'tool-loop' as const, ...(answer ? { answer } : undefined) }
  return inStep(scope, path, start, async () => {
    await scope.stored()
    if (scope.signal.aborted) throw scope.signal.reason
    const model = config.model === undefined ? undefined : toModelName(at(config.model))
    if (scope.limits.some(({ counts }) => counts)) refuseUnpriced(scope, model ?? `of ${clis[config.cli].name}`)
    const { text: prompt, hasFiles } = toPrompt(at(config.prompt))
    const stage = 'response'
    scope.emit(path, {
      type: 'prompt',
      stage,
      model: model ?? config.cli,
      messages: [{ role: 'user', content: prompt }],
    })
    if (hasFiles) scope.emit(path, filesLeftOut)
    const end = await runCli(scope, path, {
      ...config,
      ...omitUndefined({ model }),
      prompt,
      command: commandOf({ ...config, ...omitUndefined({ model }) }),
      ...workingFolder(config.cwd, at),
    })
    const result = exitFields(end)
    const usage = spent(scope, path).usage ?? noUsage
    const value = resultOf(scope, path, { result, usage })
    const { finishReason } = value
    return { value: toStepOutcome(value, answer), result, usage, finishReason }
  })
}

const filesLeftOut = {
  type: 'warning',
  code: 'files-left-out',
  message: 'A CLI agent gets text only: the files of the messages were left out.',
} as const

/** The fields that the log has nowhere else. */
function exitFields({ outcome, exitCode }: CliEnd): object {
  const { sessionId, model, structuredOutput: object } = outcome
  return { ...omitUndefined({ sessionId, model, object }), exitCode }
}

/** The outcome of a step that has finished in the log. */
export function cliAgentOutcome(
  scope: Scope,
  path: string,
  finish: Pick<EntryOf<'step-finish'>, 'result' | 'usage'>,
  answer: boolean,
): StepOutcome {
  return toStepOutcome(resultOf(scope, path, finish), answer)
}

function resultOf(
  scope: Scope,
  path: string,
  { result, usage }: Pick<EntryOf<'step-finish'>, 'result' | 'usage'>,
): CliAgentResult {
  const { cost } = spent(scope, path)
  const { list } = scope.state.loopAt(path)
  const all = toolLoopResult(list, usage ?? noUsage)
  const steps = all.steps.map(({ text, reasoning, finishReason, toolCalls, toolResults }) => {
    return { text, reasoning, finishReason, toolCalls, toolResults }
  })
  return { ...all, steps, exitCode: null, ...(result as object), ...omitUndefined({ cost }) }
}

function toStepOutcome(value: CliAgentResult, answer: boolean): StepOutcome {
  return { value, ...(answer ? { answer: { finishReason: value.finishReason } } : undefined) }
}

function spent({ state }: Scope, path: string): { usage?: Usage; cost?: number } {
  let usage: Usage | undefined
  let cost: number | undefined = 0
  for (const call of state.calls) {
    if (!isUnder(call.step, path)) continue
    usage = addUsage(usage, call.usage)
    cost = cost === undefined || call.cost === undefined ? undefined : cost + call.cost
  }
  return usage === undefined ? {} : omitUndefined({ usage, cost })
}
