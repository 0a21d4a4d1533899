/**
 * `recording:<run>`: replays a recorded run as a model. Call n of a step replays call n of the step with the same path, without
 * delays and with zero usage. Tools run again. If only one step of the recorded run has model calls, any step replays it.
 */
import type { LanguageModelV4, LanguageModelV4StreamPart } from '@ai-sdk/provider'
import { toModelPart, type Entry, type EntryOf } from '../part/entry.ts'
import { fromErrorValue, MillraceError, type ErrorValue } from '../part/error.ts'
import type { Log } from '../part/log.ts'
import type { ModelPart } from '../part/model-part.ts'
import { isUnder, parentPath } from '../part/path.ts'
import { kindOf } from '../part/step-kind.ts'
import type { LanguageModel } from './language-model.ts'

/** Identifies a model call: the step whose loop makes it, and its zero-based number in that step. */
export interface CallPlace {
  step: string
  number(): number
}

interface Call {
  parts: ModelPart[]
  error?: ErrorValue
}

const placed = Symbol('a recording at a place')

/**
 * Without a `place` (a custom step calls the model itself), the call number is the number of assistant messages since the
 * last user message. Calls fail with `unknown-model` if the run does not exist or has no model calls, and with
 * `recording-over` if it has no matching call.
 */
export function createRecordingModel(log: Log, run: string, place?: CallPlace): LanguageModelV4 {
  const model: LanguageModelV4 & { [placed]: (at: CallPlace) => LanguageModelV4 } = {
    specificationVersion: 'v4',
    provider: 'recording',
    modelId: run,
    // The model ignores files, so none needs to be downloaded.
    supportedUrls: { '*/*': [/./] },
    [placed]: (at) => createRecordingModel(log, run, at),
    doGenerate: () => Promise.reject(new MillraceError('model-failed', `The model "recording:${run}" only streams.`)),
    async doStream({ prompt }) {
      const asked = prompt.findLastIndex(({ role }) => role === 'user')
      const answers = prompt.slice(asked + 1).filter(({ role }) => role === 'assistant').length
      const call = pick(await readCalls(log, run), run, place ?? { step: '', number: () => answers })
      return { stream: streamOf(call) }
    },
  }
  return model
}

/** Binds a recording to a step's calls. Returns any other model unchanged. */
export function atPlace(model: LanguageModel, place: CallPlace): LanguageModel {
  return placed in model ? (model as { [placed]: (at: CallPlace) => LanguageModelV4 })[placed](place) : model
}

/** The calls of every step, without those that a `step-reset` discarded. */
async function readCalls(log: Log, run: string): Promise<Map<string, Map<string, Call>>> {
  const steps = new Map<string, Map<string, Call>>()
  for await (const batch of log.read(run)) for (const entry of batch) note(steps, entry)
  return steps
}

function note(steps: Map<string, Map<string, Call>>, entry: Entry): void {
  const { step } = entry
  const calls = steps.get(parentPath(step))
  if (entry.type === 'step-start' && kindOf(entry) === 'model-call') {
    if (calls === undefined) steps.set(parentPath(step), new Map([[step, { parts: [] }]]))
    else calls.set(step, { parts: [] })
  } else if (entry.type === 'step-reset') {
    for (const each of steps.values()) for (const path of each.keys()) if (isUnder(path, step)) each.delete(path)
  } else {
    const call = calls?.get(step)
    if (call === undefined) return
    if (entry.type === 'step-finish') {
      if (entry.error !== undefined) call.error = entry.error
    } else if (isSaid(entry)) call.parts.push(toModelPart(entry))
  }
}

const said: ReadonlySet<string> = new Set<ModelPart['type']>([
  ...(['stream-start', 'response-metadata', 'text-start', 'text-delta', 'text-end', 'reasoning-start'] as const),
  ...(['reasoning-delta', 'reasoning-end', 'tool-input-start', 'tool-input-delta', 'tool-input-end'] as const),
  ...(['tool-call', 'source', 'file', 'reasoning-file', 'custom', 'finish'] as const),
])

/** A tool result within a model call comes from the provider; one with an `outcome` was added by the runner. */
function isSaid(entry: Entry): entry is EntryOf<ModelPart['type']> {
  return said.has(entry.type) || (entry.type === 'tool-result' && entry.outcome === undefined)
}

function pick(steps: Map<string, Map<string, Call>>, run: string, { step, number }: CallPlace): Call {
  if (steps.size === 0) {
    throw new MillraceError(
      'unknown-model',
      `Cannot replay the model "recording:${run}": the log has no run ${run} with model calls.`,
    )
  }
  const calls = steps.get(step) ?? (steps.size === 1 ? [...steps.values()][0] : undefined)
  if (calls === undefined) {
    const known = [...steps.keys()].join(', ')
    throw new MillraceError(
      'recording-over',
      `Run ${run} has no model calls in step ${step || '(none)'}. Steps with model calls: ${known}.`,
    )
  }
  const call = [...calls.values()][number()]
  if (call === undefined) {
    const cure = 'This run makes more calls than the recorded one, because its input or tool results differ.'
    throw new MillraceError('recording-over', `Run ${run} has only ${calls.size} model call(s) in this step. ${cure}`)
  }
  return call
}

function streamOf({ parts, error }: Call): ReadableStream<LanguageModelV4StreamPart> {
  return new ReadableStream<LanguageModelV4StreamPart>({
    start(controller) {
      for (const part of parts) controller.enqueue(toStreamPart(part))
      if (error !== undefined) controller.enqueue({ type: 'error', error: fromErrorValue(error) })
      controller.close()
    },
  })
}

const nothing = {
  inputTokens: { total: 0, noCache: 0, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 0, text: 0, reasoning: 0 },
}

function toStreamPart(part: ModelPart): LanguageModelV4StreamPart {
  if (part.type === 'finish') return { ...part, usage: nothing } as LanguageModelV4StreamPart
  if (part.type !== 'file' && part.type !== 'reasoning-file') return part as LanguageModelV4StreamPart
  const { data } = part
  const isUrl = typeof data === 'object' && 'url' in data
  return { ...part, data: isUrl ? { type: 'url', url: new URL(data.url) } : { type: 'data', data } }
}
