/**
 * The door to the AI SDK: the only file that imports `ai`. One model call in, our parts out; a tool's schema, in both
 * directions. The SDK's own functions convert prompts and schemas; the stream is read by `model-read.ts`.
 */
import type { JSONSchema7, LanguageModelV4CallOptions } from '@ai-sdk/provider'
import type { ModelMessage, Schema } from 'ai'
import { messageOf, MillraceError } from '../part/error.ts'
import { isDeepText, isRecordable, parseJson } from '../part/json.ts'
import type { Message, ToolSpec } from '../part/message.ts'
import type { ModelPart } from '../part/part.ts'
import type { LlmConfig } from '../pipeline/llm-config.ts'
import { refuseDownloads } from './download.ts'
import { validate } from './json-schema/validate.ts'
import { abortedError, toModelError, type NamedModel } from './model-error.ts'
import { readParts, type Reading } from './model-read.ts'
import type { LanguageModel, ToolImplementation } from './ports.ts'

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
  /** Stops the call: the provider is told, and `streamModel` rejects at once whether it obeys or not. */
  signal: AbortSignal
}

/**
 * Asks a model and calls `onPart` with each part as it comes, in order and synchronously; resolves when the answer is
 * complete. `ready` is asked after each part: while a promise it gave is pending, nothing more is read.
 *
 * An `error` part carries a `MillraceError`; unless the model recovers from it and finishes, the call rejects with that
 * same error. Rejects with a `MillraceError` otherwise too (codes: `model-error.ts`; `invalid-messages` and, for a
 * file that the model cannot be given, `bad-input` before anything is sent), also when the provider's stream ended without its final event; a `finish` part may then have been handed on
 * already, with its usage.
 * After it has settled `onPart` is not called again. What `onPart` or `ready` throw comes out as it is.
 */
export async function streamModel(
  model: LanguageModel,
  call: ModelCall,
  onPart: (part: ModelPart) => void,
  ready?: () => Promise<void> | undefined,
): Promise<void> {
  const { signal } = call
  if (signal.aborted) throw abortedError(signal)
  let reading: Reading | undefined
  const start = async () => {
    const stream = await openStream(model, call)
    reading = readParts(stream, model, onPart, ready)
    if (signal.aborted) reading.cancel(signal.reason)
    await reading.done
  }
  await new Promise<void>((resolve, reject) => {
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

async function openStream(model: LanguageModel, call: ModelCall) {
  const named: NamedModel = model
  const { internal } = await sdk()
  const { system, messages, tools, toolChoice, signal, providerOptions, ...settings } = call
  const resolved = internal.resolveLanguageModel(model)
  const supportedUrls = await resolved.supportedUrls
  let prompt
  try {
    prompt = await internal.convertToLanguageModelPrompt({
      // Our messages are the JSON-safe part of the SDK's; system messages among them were let in by whoever built them.
      prompt: await internal.standardizePrompt({
        system,
        messages: messages as ModelMessage[],
        allowSystemInMessages: true,
      }),
      supportedUrls,
      // The SDK's own would fetch whatever a client names.
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
  try {
    const { stream } = await resolved.doStream({
      ...settings,
      prompt,
      tools: tools?.length
        ? tools.map(({ name, description, inputSchema, strict }) => {
            const how = strict === undefined ? undefined : { strict }
            return { type: 'function', name, description, inputSchema: inputSchema as JSONSchema7, ...how }
          })
        : undefined,
      toolChoice: internal.prepareToolChoice({
        toolChoice: typeof toolChoice === 'object' ? { type: 'tool', toolName: toolChoice.tool } : toolChoice,
      }),
      providerOptions: providerOptions as LanguageModelV4CallOptions['providerOptions'],
      includeRawChunks: false,
      abortSignal: signal,
    })
    return stream
  } catch (error) {
    throw toModelError(error, 'request', named)
  }
}

/** A tool as models are told it. Throws `invalid-tool` when its schema cannot be said as JSON Schema. */
export async function toToolSpec(
  name: string,
  implementation: ToolImplementation,
  description = implementation.description,
): Promise<ToolSpec> {
  try {
    const schema = await toSchema(implementation.parameters)
    const inputSchema = (await schema.jsonSchema) as ToolSpec['inputSchema']
    if (!isRecordable(inputSchema)) throw new Error('it is nested too deep or no JSON')
    return { name, ...(description === undefined ? undefined : { description }), inputSchema }
  } catch (error) {
    throw new MillraceError(
      'invalid-tool',
      `The parameters of tool "${name}" cannot be said as JSON Schema: ${messageOf(error)}. Give an object schema.`,
      { cause: error },
    )
  }
}

/** What can be read of JSON that is still being written; undefined when nothing can. Never throws. */
export async function readPartialJson(text: string): Promise<unknown> {
  if (isDeepText(text)) return undefined
  const { ai } = await sdk()
  return (await ai.parsePartialJson(text)).value
}

export type ParsedInput = { ok: true; value: unknown } | { ok: false; error: string }

/**
 * A model's arguments → what `execute` gets: read as JSON (nothing at all is `{}`) and checked by the tool's schema.
 * Never throws; `error` is written for the model, which is told it as the call's result.
 */
export async function parseToolInput(implementation: ToolImplementation, text: string): Promise<ParsedInput> {
  let input: unknown
  try {
    input = text.trim() === '' ? {} : parseJson(text, refusePrototype)
  } catch (error) {
    return { ok: false, error: `The arguments are not valid JSON: ${messageOf(error)}` }
  }
  try {
    const schema = await toSchema(implementation.parameters)
    if (schema.validate === undefined) {
      // The SDK's `jsonSchema()` describes without checking.
      const faults = validate(await schema.jsonSchema, input)
      return faults.length === 0 ? { ok: true, value: input } : { ok: false, error: misfit(faults.join('; ')) }
    }
    const result = await schema.validate(input)
    if (result.success) return { ok: true, value: result.value }
    return { ok: false, error: misfit(issuesOf(result.error)) }
  } catch (error) {
    return { ok: false, error: `The arguments could not be checked: ${messageOf(error)}` }
  }
}

function misfit(why: string): string {
  return `The arguments do not fit the tool's schema: ${why}`
}

/** `city: expected string, received number; …` from any Standard Schema's issues, wherever the SDK hid them. */
function issuesOf(error: unknown): string {
  for (let at = error; typeof at === 'object' && at !== null; at = (at as { cause?: unknown }).cause) {
    const issues = Array.isArray(at) ? at : (at as { issues?: unknown }).issues
    if (Array.isArray(issues)) return issues.map(issueText).join('; ')
  }
  return messageOf(error)
}

function issueText({
  message,
  path,
}: {
  message: string
  path?: readonly (PropertyKey | { key: PropertyKey })[]
}): string {
  const at = (path ?? []).map((step) => String(typeof step === 'object' ? step.key : step)).join('.')
  return at === '' ? message : `${at}: ${message}`
}

function refusePrototype(key: string, value: unknown): unknown {
  if (key === '__proto__') throw new SyntaxError('the key "__proto__" is not allowed')
  return value
}

async function toSchema(parameters: unknown): Promise<Schema> {
  const { ai } = await sdk()
  const isPlain =
    typeof parameters === 'object' &&
    parameters !== null &&
    !('~standard' in parameters) &&
    !('jsonSchema' in parameters)
  if (isPlain) return ai.jsonSchema(parameters as JSONSchema7)
  return ai.asSchema(parameters as Parameters<typeof ai.asSchema>[0])
}

// Loaded with the first call: the SDK takes longer to load than everything else a command or a server needs to start.
async function loadSdk() {
  const [ai, internal] = await Promise.all([import('ai'), import('ai/internal')])
  return { ai, internal }
}
let loading: ReturnType<typeof loadSdk> | undefined
function sdk(): ReturnType<typeof loadSdk> {
  return (loading ??= loadSdk())
}
