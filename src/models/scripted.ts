/**
 * A model that plays a script, for tests. Each model call plays one list of steps; `calls` records the options of each call and
 * whether it was aborted or cancelled.
 */
import type { LanguageModelV4, LanguageModelV4CallOptions, LanguageModelV4StreamPart } from '@ai-sdk/provider'
import { toGenerated } from './generated.ts'
import { finish, type Delay, type Latch, type PlainStep, type ScriptStep } from './script.ts'

/** A call to the scripted model. */
export interface PlayedCall {
  /** Prompt, tools and settings, as the AI SDK passes them to a model. */
  options: LanguageModelV4CallOptions
  /** Whether the signal of the call has fired. */
  readonly aborted: boolean
  /** Whether the reader has cancelled the stream. */
  readonly cancelled: boolean
}

/** A model for `models.providers` of a runtime or a config. */
export interface ScriptedModel extends LanguageModelV4 {
  /** All calls so far, oldest first. */
  readonly calls: PlayedCall[]
}

/** The steps of each call in order. For parallel calls, a function of the call and its number (from 1). */
export type Script = ScriptStep[][] | ((call: PlayedCall, n: number) => ScriptStep[])

/** How the script is played. */
export interface ScriptedOptions {
  /** Add a missing `finish` to each call. With `false`, an answer without one counts as cut off. Default true. */
  autoFinish?: boolean
  /** Ignore the signal of the call, as some providers do. Default false. */
  deaf?: boolean
}

/**
 * A model that plays a script: `createScriptedModel([[toolCall('weather', { city: 'Rome' })], [text('It is ', 'sunny.')]])`.
 * Calls beyond the end of the script fail.
 */
export function createScriptedModel(
  script: Script,
  { autoFinish = true, deaf = false }: ScriptedOptions = {},
): ScriptedModel {
  const calls: PlayedCall[] = []

  function stepsOf(call: PlayedCall): PlainStep[] {
    const n = calls.push(call)
    const steps = typeof script === 'function' ? script(call, n) : script[n - 1]
    if (steps === undefined) throw new Error(`this is call ${n}, but the script has only ${script.length} call(s)`)
    const plain = named(steps.flat(10) as PlainStep[], n)
    return autoFinish ? finished(plain) : plain
  }

  const model: ScriptedModel = {
    specificationVersion: 'v4',
    provider: 'scripted',
    modelId: 'script',
    supportedUrls: {},
    calls,
    async doStream(options) {
      const state = { cancelled: false }
      const steps = stepsOf({
        options,
        get aborted() {
          return options.abortSignal?.aborted === true
        },
        get cancelled() {
          return state.cancelled
        },
      })
      const signal = deaf ? undefined : options.abortSignal
      const first = steps.find((step) => !isWait(step))
      if (first !== undefined && 'fault' in first && first.fault === 'throw') {
        for (const step of steps) if (isWait(step)) await pass(step, signal)
        throw first.error
      }
      return { stream: play(steps, signal, () => (state.cancelled = true)) }
    },
    async doGenerate(options) {
      const { stream } = await model.doStream(options)
      const parts: LanguageModelV4StreamPart[] = []
      for await (const part of stream) parts.push(part)
      const result = toGenerated(parts)
      if (result === undefined) throw new Error('the scripted answer has no finish()')
      return result
    },
  }
  return model
}

/** Adds missing ids to blocks and tool calls. */
function named(steps: PlainStep[], n: number): PlainStep[] {
  let blocks = 0
  let tools = 0
  return steps.map((step) => {
    if (!('type' in step)) return step
    if (step.type === 'text-start' || step.type === 'reasoning-start') blocks++
    if (step.type === 'tool-input-start') tools++
    if (step.type === 'tool-call') return step.toolCallId === '' ? { ...step, toolCallId: `call_${n}_${tools}` } : step
    if (!('id' in step) || step.id !== '') return step
    return { ...step, id: step.type.startsWith('tool-') ? `call_${n}_${tools}` : `block-${blocks}` }
  })
}

function finished(steps: PlainStep[]): PlainStep[] {
  const isEnd = (step: PlainStep) => 'fault' in step || ('type' in step && ['finish', 'error'].includes(step.type))
  if (steps.some(isEnd)) return steps
  const callsTools = steps.some((step) => 'type' in step && step.type === 'tool-call')
  return [...steps, finish(callsTools ? 'tool-calls' : 'stop')]
}

function isWait(step: PlainStep): step is Latch | Delay {
  return 'opened' in step || 'delayMs' in step
}

async function pass(step: Latch | Delay, signal: AbortSignal | undefined): Promise<void> {
  if ('opened' in step) {
    step.arrive()
    return step.opened
  }
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, step.delayMs)
  signal?.addEventListener('abort', () => resolve(), { once: true })
  await promise
  clearTimeout(timer)
}

function play(
  steps: readonly PlainStep[],
  signal: AbortSignal | undefined,
  onCancel: () => void,
): ReadableStream<LanguageModelV4StreamPart> {
  let at = 0
  return new ReadableStream<LanguageModelV4StreamPart>(
    {
      start(controller) {
        signal?.addEventListener('abort', () => controller.error(signal.reason), { once: true })
      },
      async pull(controller) {
        for (;;) {
          const step = steps[at++]
          if (step === undefined) return controller.close()
          if (isWait(step)) {
            await pass(step, signal)
            if (signal?.aborted) return
            continue
          }
          return 'fault' in step ? controller.error(step.error) : controller.enqueue(step)
        }
      },
      cancel: onCancel,
    },
    // No read-ahead: a latch is reached only when the reader gets there.
    { highWaterMark: 0 },
  )
}
