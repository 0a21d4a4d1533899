/** Runs one step of a pipeline: resolves its config, runs it by type, and emits its start and finish. */
import { isSigningIn, signIn } from './mcp-sign-in.ts'
import { omitUndefined } from '../part/omit-undefined.ts'
import { mcpOf, valuesOf, inStep, Suspended, toFailure, asRecorded, unheld, within, type Scope } from './scope.ts'
import { MillraceError } from '../part/error.ts'
import type { ContextConfig } from '../pipeline/context-config.ts'
import type { BuiltinStep, ClientToolUse, Step, ToolLoopConfig } from '../pipeline/pipeline.ts'
import { resolve } from '../pipeline/evaluate.ts'
import { toToolSpecs, toMessages, toolItems } from './input.ts'
import type { StepRole, StepOutcome } from './container.ts'
import { builtinValue, isWrapped } from './finished-step.ts'
import { withLimit } from './limits.ts'
import { formatStepName, toStepName } from './step-name.ts'
import { answersBy, runCliAgent } from './steps/cli-agent.ts'
import { runCallAgent } from './steps/call-agent.ts'
import { runCondition } from './steps/condition.ts'
import { runCustom } from './steps/custom.ts'
import { holdsText, runLlm, type LlmResult } from './steps/llm.ts'
import { runLoop } from './steps/loop.ts'
import { generateOutput } from './steps/output-generator.ts'
import { runMemory } from './steps/memory.ts'
import { runMcpCall } from './mcp-call.ts'
import { runParallel } from './steps/parallel.ts'
import { refuseLeftOut } from '../tools/mcp/mcp-tool.ts'
import { runRouter } from './steps/router.ts'
import { runScriptStep } from './steps/script.ts'
import { runWrapped } from './steps/wrapped.ts'

/** Throws a `MillraceError` that names the step, unless the run itself ends or a limit around the step is exceeded. */
export async function runPipelineStep(outer: Scope, step: Step, path: string, place: StepRole): Promise<StepOutcome> {
  const name = toStepName(outer.step, step, path)
  const scope = within(outer, { step: name })
  const { budget, timeouts } = step
  const run = () => {
    const ofFile = outer.timeouts.step
    if (budget === undefined && timeouts === undefined && ofFile === undefined) {
      return runByType(scope, step, path, place)
    }
    const limit = { name: formatStepName(name), root: path, budget, timeout: timeouts?.step ?? ofFile }
    return withLimit(scope, limit, (inner) =>
      runByType(within(inner, { timeouts: { ...inner.timeouts, ...timeouts, step: ofFile } }), step, path, place),
    )
  }
  try {
    return await scope.attribute({ run: scope.runId, step: name }, run)
  } catch (error) {
    if (error instanceof Suspended || scope.signal.aborted) throw error
    // A failure before the step's start is not named yet.
    throw toFailure(scope, path, error)
  }
}

/**
 * Runs the program's handler if it has replaced this type. The handler may call the built-in step. Not `async`, like `runBuiltin`: each pending
 * frame costs memory per open stream.
 */
function runByType(scope: Scope, step: Step, path: string, place: StepRole): Promise<StepOutcome> {
  if (!isWrapped(scope, step)) return runBuiltin(scope, step, path, place)
  const values = valuesOf(scope)
  const at = <T>(value: T): T => resolve(value, values) as T
  // Never resolve a value twice: a user's text must stay text. Containers resolve their config as they run.
  const isResolved = !lazy.has(step.type)
  const config =
    step.type === 'llm' || step.type === 'router'
      ? resolveToolLoop(step.config, at)
      : isResolved
        ? at(step.config)
        : step.config
  const original = async (changed: BuiltinStep, inner: string): Promise<StepOutcome> => {
    const named = within(unheld(scope), { step: scope.step && { ...scope.step, path: inner } })
    const finished = containers.has(step.type) ? undefined : scope.state.finished.get(inner)
    if (finished?.error !== undefined) throw asRecorded(finished.error)
    if (finished !== undefined) return builtinValue(named, changed, inner, finished, place)
    return runBuiltin(named, changed, inner, place, isResolved)
  }
  const handler = scope.registry.steps.get(step.type)!
  return runWrapped(scope, path, { step, handler, config, answers: place.answers, original })
}

/** Types that resolve the references in their config only when they need them. */
const lazy: ReadonlySet<string> = new Set(['call-agent', 'condition', 'loop', 'parallel', 'script'])
/** Steps whose value is not recorded: it is computed again from the steps inside. */
export const containers: ReadonlySet<string> = new Set(['call-agent', 'condition', 'loop', 'parallel'])

function runBuiltin(scope: Scope, step: Step, path: string, place: StepRole, isResolved = false): Promise<StepOutcome> {
  const { answers } = place
  const values = valuesOf(scope)
  const at = <T>(value: T): T => (isResolved ? value : (resolve(value, values) as T))
  const inside = { place, at }

  switch (step.type) {
    case 'llm': {
      const answer = step.config.stream && answers
      const asked = answer ? scope.state.start?.settings : undefined
      const held =
        answer && holdsText({ ...asked, ...step.config }, offersTools(step.config, scope.input['tools']))
          ? ({ object: true } as const)
          : undefined
      return inStep(
        scope,
        path,
        { stepType: 'llm', kind: 'tool-loop', ...(answer ? { answer } : undefined), ...held },
        async () => {
          const config = { ...asked, ...resolveToolLoop(step.config, at) }
          const fromClient = answer || scope.offersRequestTools === true ? toToolSpecs(scope.input['tools']) : []
          const clientTools: ClientToolUse[] = [...fromClient, ...(config.clientTools ?? [])]
          let result: LlmResult
          try {
            result = await runLlm({ scope, path, config, clientTools, answer })
          } catch (thrown) {
            return reportError(scope, path, config, thrown)
          }
          const { usage, finishReason } = result
          if (config.onFinish !== undefined) {
            const finish = () => scope.invoke(config.onFinish, result)
            // A slow callback must not delay the end of the answer.
            if (answer) scope.defer(finish)
            else await finish()
          }
          const value: StepOutcome = { value: result, ...(answer ? { answer: { finishReason } } : undefined) }
          return { value, usage, finishReason }
        },
      )
    }
    case 'router':
      return inStep(scope, path, { stepType: step.type, kind: 'router' }, async () => {
        const config = resolveToolLoop(step.config, at)
        const fromClient = config.requestTools ? toToolSpecs(scope.input['tools']) : []
        const clientTools: ClientToolUse[] = [...fromClient, ...(config.clientTools ?? [])]
        const run = runRouter({ scope, path, config, clientTools })
        const result = await run.catch((thrown: unknown) => reportError(scope, path, config, thrown))
        await scope.invoke(config.onFinish, result)
        const { usage, finishReason } = result
        return { value: { value: result }, usage, finishReason }
      })
    case 'memory':
      return inStep(scope, path, { stepType: step.type, kind: 'memory' }, async () => {
        const result = await runMemory(scope, step.config, at)
        return { value: { value: result }, result }
      })
    case 'output-generator':
      return inStep(scope, path, { stepType: step.type, kind: 'task' }, async () => {
        const result = generateOutput(at(step.config))
        return { value: { value: result }, result }
      })
    case 'custom': {
      const handler = scope.registry.steps.get(step.stepType)
      refuseSecondRun(scope, path)
      return inStep(scope, path, { stepType: step.stepType, kind: 'custom' }, async () => {
        await recorded(scope)
        if (handler === undefined) {
          const known = [...scope.registry.steps.keys()].join(', ') || 'none'
          throw new MillraceError('unknown-step-type', `there is no such type. Known: ${known}.`)
        }
        const { value, answered } = await runCustom(unheld(scope), path, handler, at(step.config))
        const outcome: StepOutcome = { value }
        if (answered && answers) outcome.answer = { finishReason: 'stop' }
        return { value: outcome, ...(answered ? undefined : { result: value }) }
      })
    }
    case 'call-agent':
      return runCallAgent(scope, path, step.config, inside)
    case 'condition':
      return runCondition(scope, path, step.config, inside)
    case 'loop':
      return runLoop(scope, path, step.config, inside)
    case 'parallel':
      return runParallel(scope, path, step.config, inside)
    case 'mcp-tool': {
      // What goes on is what its answers below say: see `runMcpCall`.
      const resumed = scope.state.open.steps.has(path) && !isSigningIn(scope, path)
      return inStep(scope, path, { stepType: step.type, kind: 'task' }, async () => {
        await recorded(scope)
        const { server, tool, input, timeout } = step.config
        const why = await signIn(scope, path, server)
        if (why !== undefined) throw new MillraceError('mcp-unauthorized', why)
        // After a crash the call is not repeated.
        await recorded(scope)
        if (!resumed) await refuseLeftOut(mcpOf(scope), server, tool, scope.signal)
        const result = await runMcpCall(scope, path, {
          server,
          tool,
          input: at(input),
          timeout,
          forModel: false,
          resumed,
        })
        return { value: { value: result }, result }
      })
    }
    case 'script':
      return runScriptStep(scope, path, step.config)
    case 'cli-agent':
      return runCliAgent(scope, path, step.config, at, answersBy(step.config, place))
    default:
      return step satisfies never
  }
}

/** Waits until the step's start is stored. Otherwise a crash could make it run a second time. */
async function recorded(scope: Scope): Promise<void> {
  await scope.stored()
  if (scope.signal.aborted) throw scope.signal.reason
}

/** Custom code may have had effects before a crash, so it is not run again. */
function refuseSecondRun(scope: Scope, path: string): void {
  // A handler that has made a request expects to be called again.
  if (!scope.state.open.steps.has(path) || scope.state.asked.has(path)) return
  throw new MillraceError('interrupted', 'it was interrupted by a crash and is not run a second time.')
}

/** Calls `onError` if the step itself failed, and rethrows the error. */
async function reportError(scope: Scope, path: string, { onError }: ToolLoopConfig, thrown: unknown): Promise<never> {
  if (thrown instanceof Suspended || scope.signal.aborted) throw thrown
  const error = toFailure(scope, path, thrown)
  await scope.invoke(onError, { error })
  throw error
}

/** Whether the config of an `llm` or `router` step offers any tools. */
function offersTools(
  { tools, toolSources = [], clientTools = [], agentTools = [], codeTools = [], skills = [] }: ToolLoopConfig,
  fromClient: unknown,
): boolean {
  const lists = [tools, toolSources, clientTools, agentTools, codeTools, skills, toolItems(fromClient) ?? []]
  return lists.some(({ length }) => length > 0)
}

/** A model name from a request must not open the log of another client's run. */
function ownModel(written: string, model: string): string {
  if (model === written || !/^\s*recording\s*:/u.test(model)) return model
  throw new MillraceError('bad-input', 'Only the agent file can name a recording. A reference cannot.', {
    status: 400,
  })
}

function resolveSummary({ model, system }: NonNullable<ContextConfig['summary']>, at: <T>(value: T) => T) {
  return omitUndefined({
    model: model === undefined ? undefined : ownModel(model, String(at(model))),
    system: system === undefined ? undefined : String(at(system)),
  })
}

function resolveToolLoop<C extends ToolLoopConfig>(config: C, at: <T>(value: T) => T) {
  const { system, messages, model, providerOptions, headers, context } = config
  return {
    ...config,
    messages: toMessages(at(messages), 'messages'),
    ...omitUndefined({
      system: system === undefined ? undefined : String(at(system)),
      model: model === undefined ? undefined : ownModel(model, String(at(model))),
      providerOptions: at(providerOptions),
      headers: at(headers),
      context: context && { ...context, ...(context.summary && { summary: resolveSummary(context.summary, at) }) },
    }),
  }
}
