/**
 * The adapter to the AI SDK, and the only file that imports `ai`. It makes model calls and converts tool schemas. The SDK's own
 * functions convert prompts and schemas; `model-read.ts` reads the stream.
 */
import type { JSONSchema7, LanguageModelV4, LanguageModelV4CallOptions } from '@ai-sdk/provider'
import type { ModelMessage, Schema } from 'ai'
import { messageOf, MillraceError } from '../part/error.ts'
import { isDeepText } from '../part/json.ts'
import type { Message, ToolSpec } from '../part/message.ts'
import type { ModelPart } from '../part/model-part.ts'
import type { LlmConfig } from '../pipeline/pipeline.ts'
import { hasFiles, withTakenFiles } from './files.ts'
import { abortedError, toModelError, type NamedModel } from './model-error.ts'
import type { LazyModel, LanguageModel } from './language-model.ts'
import { createReading, readStream, type ModelListener, type Reading } from './model-read.ts'
import { isDirect, isShaped } from './part-sink.ts'
import { cacheOptions, type PromptCache } from './prompt-cache.ts'
import { placeToolFiles, protocolOf } from './tool-files.ts'

export { isRetryable } from './model-error.ts'

export interface ModelCall extends Pick<
  LlmConfig,
  'temperature' | 'maxOutputTokens' | 'topP' | 'stopSequences' | 'seed' | 'reasoning' | 'headers' | 'toolChoice'
> {
  system?: string
  messages: Message[]
  tools?: ToolSpec[]
  providerOptions?: Record<string, Record<string, unknown>>
  responseFormat?: LanguageModelV4CallOptions['responseFormat']
  presencePenalty?: number
  frequencyPenalty?: number
  /** Replace the files of earlier turns by words: the server has refused one of them. */
  bareFiles?: boolean
  /** Tells servers that another call with the same beginning is likely. */
  cache?: PromptCache
  /** Stops the call: the provider's request is aborted, and `streamModel` rejects at once even if the provider ignores that. */
  signal: AbortSignal
}

/**
 * Calls a model and passes each part to `onPart`, synchronously and in order. Resolves when the answer is complete. `ready` is called after each
 * batch of parts; while the promise that it returns is pending, nothing more is read. `onAlive` is called when a server shows that it is working
 * without content: it is still reading the prompt. `written`: how the agent names the model, for messages.
 *
 * Rejects with a `MillraceError`: the codes are in `model-error.ts`; before anything is sent also `invalid-messages`, and `bad-input` for a file
 * that the model does not accept. An `error` part contains such an error, and the call rejects with it unless the model recovers and finishes. The
 * call also rejects when the stream ends without its final event; a `finish` part with its usage may have been delivered by then.
 *
 * Errors of `onPart` and `ready` are passed on unchanged. `onPart` is never called after the promise has settled.
 */
export function streamModel(
  model: LanguageModel,
  call: ModelCall,
  onPart: (part: ModelPart) => void,
  { ready, onAlive, written }: Omit<ModelListener, 'onPart'> & Pick<NamedModel, 'written'> = {},
): Promise<void> {
  const { signal } = call
  const { provider, modelId, keyVariables } = model as NamedModel
  const named: NamedModel = { provider, modelId, written, ...(keyVariables && { keyVariables }) }
  if (signal.aborted) return Promise.reject(abortedError(signal))
  let reading: Reading | undefined
  const start = async () => {
    const { target, options } = await prepareCall(model, call)
    if (signal.aborted) return
    let stop: ((reason: unknown) => void) | undefined
    reading = createReading(named, { onPart, ready, onAlive }, (reason) => stop?.(reason))
    stop = isDirect(target)
      ? target.readInto(options, reading)
      : readStream(await openStream(target, options, named), reading)
    if (signal.aborted) stop(signal.reason)
    // Returned, not awaited: an open answer must not retain its inputs.
    return reading.done
  }
  return new Promise<void>((resolve, reject) => {
    const stop = () => {
      reading?.cancel(signal.reason)
      reject(abortedError(signal))
    }
    signal.addEventListener('abort', stop, { once: true })
    start()
      .then(resolve, reject)
      .finally(() => signal.removeEventListener('abort', stop))
  })
}

async function prepareCall(model: LanguageModel, call: ModelCall) {
  const { internal } = await sdk()
  const { system, messages: _, bareFiles: __, cache, tools, toolChoice, signal, providerOptions, ...settings } = call
  const resolved = internal.resolveLanguageModel(model)
  const target = 'load' in resolved ? await (resolved as LazyModel).load() : resolved
  const supportedUrls = await target.supportedUrls
  let prompt
  try {
    prompt = await internal.convertToLanguageModelPrompt({
      // Our messages are the JSON-safe subset of the SDK's. Their author has allowed the system messages.
      prompt: await internal.standardizePrompt({
        system,
        messages: (await sayableFiles(model, call)) as ModelMessage[],
        allowSystemInMessages: true,
      }),
      supportedUrls,
      // The SDK's own function would fetch any URL that a client sends.
      download: refuseDownloads,
      abortSignal: signal,
      provider: resolved.provider.split('.')[0],
    })
  } catch (error) {
    if (error instanceof MillraceError) throw error
    throw new MillraceError('invalid-messages', `The messages cannot be sent to the model: ${messageOf(error)}`, {
      status: 400,
      cause: error,
    })
  }
  // The models of servers do it themselves, by their protocol.
  const shapes = isShaped(target)
  const way = cache && shapes ? target.cacheWay : undefined
  const ours = cache && way && (await cacheOptions(cache, way))
  const options: LanguageModelV4CallOptions = {
    ...settings,
    prompt: shapes ? prompt : placeToolFiles(prompt, protocolOf(target.provider)),
    tools: tools?.length
      ? tools.map(({ name, description, inputSchema, strict }) => {
          const how = strict === undefined ? undefined : { strict }
          return { type: 'function', name, description, inputSchema: inputSchema as JSONSchema7, ...how }
        })
      : undefined,
    toolChoice: internal.prepareToolChoice({
      toolChoice: typeof toolChoice === 'object' ? { type: 'tool', toolName: toolChoice.tool } : toolChoice,
    }),
    providerOptions: (ours === undefined
      ? providerOptions
      : { ...providerOptions, ...ours }) as LanguageModelV4CallOptions['providerOptions'],
    includeRawChunks: false,
    abortSignal: signal,
  }
  return { target, options }
}

/** The call's messages with their files adapted to the model. Throws `bad-input` for a file of this turn that the model cannot read. */
export async function sayableFiles(
  model: LanguageModel,
  { messages, providerOptions, bareFiles }: Pick<ModelCall, 'messages' | 'providerOptions' | 'bareFiles'>,
): Promise<Message[]> {
  if (!hasFiles(messages)) return messages
  const { internal, utils } = await sdk()
  const supportedUrls = await internal.resolveLanguageModel(model).supportedUrls
  // An option of OpenAI's package makes it send every file.
  const sendsAll = providerOptions?.['openai']?.['passThroughUnsupportedFiles'] === true
  const { takes } = model as NamedModel
  return withTakenFiles(messages, model, {
    takes: sendsAll ? undefined : takes,
    fetches: (mediaType, url) => utils.isUrlSupported({ mediaType, url, supportedUrls }),
    ...(bareFiles === true && { bare: true }),
  })
}

async function openStream(target: LanguageModelV4, options: LanguageModelV4CallOptions, model: NamedModel) {
  try {
    return (await target.doStream(options)).stream
  } catch (error) {
    throw toModelError(error, 'request', model)
  }
}

/** Parses incomplete JSON as far as possible. Undefined if nothing can be parsed. Never throws. */
export async function readPartialJson(text: string): Promise<unknown> {
  if (isDeepText(text)) return undefined
  const { ai } = await sdk()
  return (await ai.parsePartialJson(text)).value
}

/** Converts a tool's parameters into the SDK's schema. */
export async function toSchema(parameters: unknown): Promise<Schema> {
  const { ai } = await sdk()
  const isPlain =
    typeof parameters === 'object' &&
    parameters !== null &&
    !('~standard' in parameters) &&
    !('jsonSchema' in parameters)
  if (isPlain) return ai.jsonSchema(parameters as JSONSchema7)
  return ai.asSchema(parameters as Parameters<typeof ai.asSchema>[0])
}

// Loaded with the first call: the SDK takes longer to load than everything else in a command or a server.
async function loadSdk() {
  const [ai, internal, utils] = await Promise.all([
    import('ai'),
    import('ai/internal'),
    import('@ai-sdk/provider-utils'),
  ])
  return { ai, internal, utils }
}
let loading: ReturnType<typeof loadSdk> | undefined
function sdk(): ReturnType<typeof loadSdk> {
  return (loading ??= loadSdk())
}

/** Handles files that a message references by URL. */
interface Wanted {
  url: URL
  isUrlSupportedByModel: boolean
}

/**
 * URLs that the model supports are fetched by its provider. All others are refused: the URLs come from clients, and fetching
 * them here would let clients reach anything this machine can reach. `data:` URLs are handled before this.
 */
async function refuseDownloads(wanted: readonly Wanted[]): Promise<null[]> {
  if (wanted.every(({ isUrlSupportedByModel }) => isUrlSupportedByModel)) return wanted.map(() => null)
  const message = 'The model does not accept files by URL. Send the file as a data: URL.'
  throw new MillraceError('bad-input', message, { status: 400 })
}
