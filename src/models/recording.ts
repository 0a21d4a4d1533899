/**
 * `recording:<run>`: replays a recorded run as a model. Call n of a step replays call n of the step with the same path, without delays. For a
 * retried call, only the successful attempt is replayed. Tools run again. If only one step of the recorded run has model calls, any step replays
 * it. Only the positions of the calls are in memory: their parts are read as they are sent.
 */
import type { LanguageModelV4, LanguageModelV4StreamPart } from '@ai-sdk/provider'
import { toModelPart, type Entry, type EntryOf } from '../part/entry.ts'
import { fromErrorValue, MillraceError } from '../part/error.ts'
import type { ModelPart } from '../part/model-part.ts'
import type { Recording } from '../part/recording.ts'
import type { LanguageModel } from './language-model.ts'
import { asFinal } from './model-error.ts'
import { badOutput } from '../fold/reply-messages.ts'
import { isUnder, parentPath } from '../part/path.ts'
import { kindOf } from '../part/step-kind.ts'

/** Identifies a model call: the step whose loop makes it, and its zero-based number in that step. */
export interface CallPlace {
  step: string
  number(): number
}

/** Options of {@link createRecordingModel}. */
export interface RecordingModelOptions {
  /** The usage that calls report: `none`, because replay costs nothing, or the recorded one. Default `none`. */
  usage?: 'none' | 'recorded'
}

const placed = Symbol('a recording at a place')

/**
 * Without a place (a custom step calls the model itself), the call number is the number of assistant messages since the last user
 * message. Calls fail with `unknown-model` if the run does not exist or has no model calls, and with `recording-over` if it has no
 * matching call.
 */
export function createRecordingModel(recording: Recording, options: RecordingModelOptions = {}): LanguageModelV4 {
  const calls = cachedCalls(recording)
  return modelAt(recording, calls, options)
}

function modelAt(
  recording: Recording,
  calls: () => Promise<RecordedCalls>,
  options: RecordingModelOptions,
  place?: CallPlace,
): LanguageModelV4 {
  const { name } = recording
  const model: LanguageModelV4 & { [placed]: (at: CallPlace) => LanguageModelV4 } = {
    specificationVersion: 'v4',
    provider: 'recording',
    modelId: name,
    // The model ignores files, so none needs to be downloaded.
    supportedUrls: { '*/*': [/./] },
    [placed]: (at) => modelAt(recording, calls, options, at),
    doGenerate: () => Promise.reject(new MillraceError('model-failed', `The model "recording:${name}" only streams.`)),
    async doStream({ prompt }) {
      const asked = prompt.findLastIndex(({ role }) => role === 'user')
      const answers = prompt.slice(asked + 1).filter(({ role }) => role === 'assistant').length
      const call = pick((await calls()).steps, name, place ?? { step: '', number: () => answers })
      return { stream: streamOf(recording, call, options) }
    },
  }
  return model
}

/** Binds a recording to a step's calls. Returns any other model unchanged. */
export function atPlace(model: LanguageModel, place: CallPlace): LanguageModel {
  return placed in model ? (model as { [placed]: (at: CallPlace) => LanguageModelV4 })[placed](place) : model
}

/** Caches the positions of the calls if the run has ended: until then it may get more. */
function cachedCalls(recording: Recording): () => Promise<RecordedCalls> {
  let known: Promise<RecordedCalls> | undefined
  return async () => {
    const reading = (known ??= indexCalls(recording))
    const forget = () => {
      if (known === reading) known = undefined
    }
    try {
      const calls = await reading
      if (!calls.isWhole) forget()
      return calls
    } catch (error) {
      forget()
      throw error
    }
  }
}

function pick(steps: RecordedCalls['steps'], run: string, { step, number }: CallPlace): RecordedCall {
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

const said: ReadonlySet<string> = new Set<ModelPart['type']>([
  ...(['stream-start', 'response-metadata', 'text-start', 'text-delta', 'text-end', 'reasoning-start'] as const),
  ...(['reasoning-delta', 'reasoning-end', 'tool-input-start', 'tool-input-delta', 'tool-input-end'] as const),
  ...(['tool-call', 'source', 'file', 'reasoning-file', 'custom', 'finish'] as const),
])

/** A tool result within a model call comes from the provider; one with an `outcome` was added by the runner. */
function isSaid(entry: Entry): entry is EntryOf<ModelPart['type']> {
  return said.has(entry.type) || (entry.type === 'tool-result' && entry.outcome === undefined)
}

function streamOf(
  recording: Recording,
  { path, from, to }: RecordedCall,
  { usage = 'none' }: RecordingModelOptions,
): ReadableStream<LanguageModelV4StreamPart> {
  const entries = recording.read({ after: from, before: to + 1, step: path })[Symbol.asyncIterator]()
  const toStream = (part: ModelPart): LanguageModelV4StreamPart =>
    part.type === 'finish' && usage === 'none' ? toStreamPart({ ...part, usage: nothing }) : toStreamPart(part)
  return new ReadableStream<LanguageModelV4StreamPart>(
    {
      async pull(controller) {
        for (let sent = false; !sent;) {
          const { done, value } = await entries.next()
          if (done) return controller.close()
          for (const entry of value) {
            if (entry.step !== path) continue
            if (isSaid(entry)) controller.enqueue(toStream(toModelPart(entry)))
            else if (entry.type === 'step-finish' && entry.error !== undefined) {
              // Earlier attempts are not replayed, so a retry is pointless.
              controller.enqueue({ type: 'error', error: asFinal(fromErrorValue(entry.error)) })
            } else continue
            sent = true
          }
        }
      },
      async cancel() {
        await entries.return?.()
      },
    },
    { highWaterMark: 0 },
  )
}

const nothing = {
  inputTokens: { total: 0, noCache: 0, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 0, text: 0, reasoning: 0 },
}

function toStreamPart(part: ModelPart): LanguageModelV4StreamPart {
  if (part.type !== 'file' && part.type !== 'reasoning-file') return part as LanguageModelV4StreamPart
  const { data } = part
  const isUrl = typeof data === 'object' && 'url' in data
  return { ...part, data: isUrl ? { type: 'url', url: new URL(data.url) } : { type: 'data', data } }
}

/** The positions of the model calls of a recorded run in its log. Memory grows with the number of calls, not with their content. */
interface RecordedCall {
  path: string
  /** The content of the call comes after this `seq`: after its start, or after the last failed attempt. */
  from: number
  /** The `seq` of its end; Infinity if it has none. */
  to: number
}

interface RecordedCalls {
  /** The calls of each step, in order, by their own paths. Without calls that a `step-reset` discarded. */
  steps: Map<string, Map<string, RecordedCall>>
  /** The run has ended, so no more calls follow. */
  isWhole: boolean
}

/** Entries of other types do not affect the positions of calls. */
const types: readonly Entry['type'][] = ['step-start', 'step-finish', 'step-reset', 'retry', 'run-end']

async function indexCalls(recording: Recording): Promise<RecordedCalls> {
  const calls: RecordedCalls = { steps: new Map(), isWhole: false }
  for await (const batch of recording.read({ types })) for (const entry of batch) note(calls, entry)
  return calls
}

function note(calls: RecordedCalls, entry: Entry): void {
  const { step, seq } = entry
  const { steps } = calls
  switch (entry.type) {
    case 'step-start': {
      if (kindOf(entry) !== 'model-call') return
      const parent = parentPath(step)
      let own = steps.get(parent)
      if (own === undefined) steps.set(parent, (own = new Map()))
      own.set(step, { path: step, from: seq, to: Infinity })
      return
    }
    case 'step-reset':
      for (const [parent, own] of steps) {
        for (const path of own.keys()) if (isUnder(path, step)) own.delete(path)
        if (own.size === 0) steps.delete(parent)
      }
      return
    case 'retry': {
      const call = steps.get(parentPath(step))?.get(step)
      if (call !== undefined && isReplacing(entry)) call.from = seq
      return
    }
    case 'step-finish': {
      const call = steps.get(parentPath(step))?.get(step)
      if (call !== undefined) call.to = seq
      return
    }
    case 'run-end':
      calls.isWhole = true
      return
    default:
  }
}

/** Whether the attempt before a `retry` is discarded. Rejected JSON is not: the next call answers it. */
function isReplacing({ error }: EntryOf<'retry'>): boolean {
  return error.code !== badOutput
}
