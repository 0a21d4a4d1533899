/** Adapts LangChain chat models. They are recognised by their methods; LangChain is not imported. */
import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4StreamPart,
  SharedV4Warning,
  LanguageModelV4FinishReason,
  LanguageModelV4Usage,
} from '@ai-sdk/provider'
import { omitUndefined } from '../../part/omit-undefined.ts'
import { MillraceError } from '../../part/error.ts'
import { toGenerated } from '../generated.ts'
import { metadataKey, toLangChainMessages } from './messages.ts'
import { recordable } from '../../part/json.ts'

/** A LangChain chat model such as `ChatOpenAI` or `ChatAnthropic`, or any object with these methods. */
export interface LangChainChatModel {
  stream(input: any, options?: any): Promise<AsyncIterable<any>>
  /** Only needed for steps with tools. */
  bindTools?(tools: any[], options?: any): { stream(input: any, options?: any): Promise<AsyncIterable<any>> }
}

/**
 * Makes a LangChain chat model available to agents:
 * `models: { providers: { chain: (model) => fromLangChain(new ChatOpenAI({ model, maxRetries: 0 })) } }`, then
 * `model: "chain:gpt-5"`. Set `maxRetries: 0`: a step's own `retries` are recorded in the log.
 *
 * LangChain accepts tools, stop sequences and a JSON format per call. Set the temperature and the like in the constructor of the
 * LangChain model; if a step sets them, they are ignored with a warning in the log. `providerOptions: { langchain: … }` is
 * passed as call options. Errors are rethrown unchanged.
 */
export function fromLangChain(chatModel: LangChainChatModel): LanguageModelV4 {
  const named = chatModel as { model?: unknown; modelName?: unknown; getName?: () => string }
  const name = [named.model, named.modelName].find((each) => typeof each === 'string') ?? named.getName?.()
  const model: LanguageModelV4 = {
    specificationVersion: 'v4',
    provider: metadataKey,
    modelId: typeof name === 'string' ? name : 'chat-model',
    supportedUrls: { 'image/*': [/^https?:\/\//u] },
    async doStream(options) {
      const { bound, call, warnings } = prepare(chatModel, model.modelId, options)
      const chunks = await bound.stream(toLangChainMessages(options.prompt), call)
      return { stream: toStream(chunks as AsyncIterable<LangChainChunk>, warnings) }
    },
    async doGenerate(options) {
      const { stream } = await model.doStream(options)
      const parts: LanguageModelV4StreamPart[] = []
      for await (const part of stream) parts.push(part)
      const result = toGenerated(parts)
      if (result !== undefined) return result
      throw new MillraceError('model-incomplete', `The answer of ${model.modelId} ended without its final event.`)
    },
  }
  return model
}

function prepare(chatModel: LangChainChatModel, modelId: string, options: LanguageModelV4CallOptions) {
  const { tools = [], toolChoice, abortSignal: signal, stopSequences: stop, responseFormat, providerOptions } = options
  const functions = tools.filter((tool) => tool.type === 'function')
  if (functions.length > 0 && chatModel.bindTools === undefined) {
    const cure = 'Use a model that has bindTools, or remove the tools from the step.'
    throw new MillraceError('model-refused', `The LangChain model ${modelId} does not support tools. ${cure}`)
  }
  const choice = toolChoice && toToolChoice(toolChoice)
  const schemas = functions.map(({ name, description, inputSchema }) => {
    // Without a `type`, LangChain would not treat it as a JSON Schema.
    return { name, description: description ?? '', schema: { type: 'object', ...inputSchema } }
  })
  const bound =
    functions.length > 0
      ? chatModel.bindTools!(schemas, choice === undefined ? undefined : { tool_choice: choice })
      : chatModel
  const given = omitUndefined({
    signal,
    stop: stop?.length === 0 ? undefined : stop,
    response_format: responseFormat?.type === 'json' ? toFormat(responseFormat) : undefined,
  })
  const call = { ...providerOptions?.[metadataKey], ...given }
  return { bound, call, warnings: warningsOf(options) }
}

/** The tool choices that all integrations support. */
function toToolChoice(choice: NonNullable<LanguageModelV4CallOptions['toolChoice']>): string {
  if (choice.type === 'tool') return choice.toolName
  return choice.type === 'required' ? 'any' : choice.type
}

function toFormat({ schema, name = 'answer' }: { schema?: object; name?: string }) {
  return schema === undefined ? { type: 'json_object' } : { type: 'json_schema', json_schema: { name, schema } }
}

const settings = [
  'temperature',
  'maxOutputTokens',
  'topP',
  'topK',
  'seed',
  'presencePenalty',
  'frequencyPenalty',
] as const

function warningsOf(options: LanguageModelV4CallOptions): SharedV4Warning[] {
  const { reasoning, headers = {}, tools = [] } = options
  const features: string[] = settings.filter((key) => options[key] !== undefined)
  if (reasoning !== undefined && reasoning !== 'provider-default') features.push('reasoning')
  if (Object.values(headers).some((value) => value !== undefined)) features.push('headers')
  if (tools.some(({ type }) => type !== 'function')) features.push('provider tools')
  const details = 'Pass it to the constructor of the LangChain model, or set it in providerOptions.langchain.'
  return features.map((feature) => ({ type: 'unsupported', feature, details }))
}

function toStream(
  chunks: AsyncIterable<LangChainChunk>,
  warnings: SharedV4Warning[],
): ReadableStream<LanguageModelV4StreamPart> {
  const iterator = chunks[Symbol.asyncIterator]()
  const parts = createLangChainParts()
  const ready: LanguageModelV4StreamPart[] = [{ type: 'stream-start', warnings }]
  let ended = false
  return new ReadableStream<LanguageModelV4StreamPart>(
    {
      async pull(controller) {
        while (ready.length === 0 && !ended) {
          const { done, value } = await iterator.next()
          ended = done === true
          ready.push(...(ended ? parts.end() : parts.push(value)))
        }
        for (const part of ready.splice(0)) controller.enqueue(part)
        if (ended) controller.close()
      },
      async cancel() {
        await iterator.return?.()
      },
    },
    { highWaterMark: 0 },
  )
}

/**
 * Converts the message chunks of a LangChain chat model to AI SDK parts. A synchronous state machine: it passes on text and
 * reasoning, assembles tool calls by `index`, adds up usage, and reports the finish reason at the end.
 */
type StreamPart = LanguageModelV4StreamPart

/** The keys of a chunk that are read. */
interface LangChainChunk {
  id?: string
  content?: string | LangChainBlock[]
  tool_call_chunks?: { id?: string; name?: string; args?: string; index?: number }[]
  tool_calls?: { id?: string; name?: string; args?: unknown }[]
  invalid_tool_calls?: { id?: string; name?: string; args?: string }[]
  usage_metadata?: {
    input_tokens?: number
    output_tokens?: number
    input_token_details?: { cache_read?: number; cache_creation?: number }
    output_token_details?: { reasoning?: number }
  }
  additional_kwargs?: Record<string, unknown>
  response_metadata?: Record<string, unknown>
}
interface LangChainBlock {
  type?: string
  text?: string
  thinking?: string
  reasoning?: string
  signature?: string
  data?: string
  [key: string]: unknown
}

interface LangChainCall {
  id: string
  name: string
  input: string
  begun: boolean
}

/** Keys under which integrations report the finish reason. */
const reasonKeys = ['finish_reason', 'stop_reason', 'finishReason', 'stopReason', 'done_reason']
const reasons = new Map<string, LanguageModelV4FinishReason['unified']>([
  ['stop', 'stop'],
  ['end_turn', 'stop'],
  ['stop_sequence', 'stop'],
  ['eos', 'stop'],
  ['completed', 'stop'],
  ['length', 'length'],
  ['max_tokens', 'length'],
  ['max_output_tokens', 'length'],
  ['model_length', 'length'],
  ['tool_calls', 'tool-calls'],
  ['tool_use', 'tool-calls'],
  ['function_call', 'tool-calls'],
  ['content_filter', 'content-filter'],
  ['content_filtered', 'content-filter'],
  ['guardrail_intervened', 'content-filter'],
  ['safety', 'content-filter'],
  ['recitation', 'content-filter'],
  ['prohibited_content', 'content-filter'],
  ['refusal', 'content-filter'],
])

function createLangChainParts() {
  let block: { type: 'text' | 'reasoning'; id: string; signature?: string } | undefined
  let blocks = 0
  const calls: LangChainCall[] = []
  const byIndex = new Map<number, LangChainCall>()
  const spent = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, reasoning: 0 }
  const seen = { usage: false, id: false, model: undefined as string | undefined }
  let reason: string | undefined
  let provider: string | undefined

  function closeBlock(): StreamPart[] {
    if (block === undefined) return []
    const { type, id, signature } = block
    block = undefined
    if (type === 'text' || signature === undefined) return [{ type: `${type}-end`, id }]
    return [{ type: 'reasoning-end', id, providerMetadata: { [metadataKey]: { signature } } }]
  }

  function emit(type: 'text' | 'reasoning', delta: string): StreamPart[] {
    const parts: StreamPart[] = []
    if (block?.type !== type) {
      parts.push(...closeBlock())
      block = { type, id: `${type}-${++blocks}` }
      parts.push({ type: `${type}-start`, id: block.id })
    }
    parts.push({ type: `${type}-delta`, id: block.id, delta })
    return parts
  }

  function content(value: LangChainChunk['content']): StreamPart[] {
    if (typeof value === 'string') return value === '' ? [] : emit('text', value)
    return (value ?? []).flatMap((each) => {
      const thought = each.thinking ?? each.reasoning
      const parts: StreamPart[] = []
      if (typeof each.text === 'string' && each.text !== '') parts.push(...emit('text', each.text))
      else if (typeof thought === 'string' && thought !== '') parts.push(...emit('reasoning', thought))
      // A signature follows the reasoning that it signs.
      if (typeof each.signature === 'string' && block?.type === 'reasoning') block.signature = each.signature
      return parts
    })
  }

  /** Appends a piece to the call with its index, or starts a new call. */
  function piece({ id, name, args, index }: NonNullable<LangChainChunk['tool_call_chunks']>[number]): StreamPart[] {
    const known = index === undefined ? (id === undefined ? calls.at(-1) : undefined) : byIndex.get(index)
    const parts: StreamPart[] = []
    let call = known
    // Some servers send index 0 for every call: a different id starts a new one.
    if (call === undefined || (id !== undefined && id !== '' && call.id !== id)) {
      parts.push(...closeBlock())
      call = { id: id || `call_${crypto.randomUUID()}`, name: '', input: '', begun: false }
      calls.push(call)
      if (index !== undefined) byIndex.set(index, call)
    }
    if (!call.begun) call.name += name ?? ''
    if (!call.begun && call.name !== '') {
      call.begun = true
      parts.push({ type: 'tool-input-start', id: call.id, toolName: call.name })
    }
    if (args) {
      call.input += args
      if (call.begun) parts.push({ type: 'tool-input-delta', id: call.id, delta: args })
    }
    return parts
  }

  function note({
    usage_metadata: usage,
    additional_kwargs: extra = {},
    response_metadata: about = {},
  }: LangChainChunk) {
    if (usage !== undefined) {
      seen.usage = true
      spent.input += usage.input_tokens ?? 0
      spent.output += usage.output_tokens ?? 0
      spent.cacheRead += usage.input_token_details?.cache_read ?? 0
      spent.cacheWrite += usage.input_token_details?.cache_creation ?? 0
      spent.reasoning += usage.output_token_details?.reasoning ?? 0
    }
    provider ??= textOf(about['model_provider'])
    for (const record of [about, extra, recordOf(about['messageStop'])]) {
      for (const key of reasonKeys) reason = textOf(record[key]) ?? reason
    }
    // OpenAI's Responses API reports a status, and details if the answer is incomplete.
    const status = textOf(about['status'])
    if (status === 'completed') reason ??= status
    else if (status === 'incomplete') reason ??= textOf(recordOf(about['incomplete_details'])['reason']) ?? status
  }

  return {
    push(chunk: LangChainChunk): StreamPart[] {
      const parts: StreamPart[] = []
      const { id, response_metadata: about = {}, additional_kwargs: extra = {} } = chunk
      if (!seen.id && typeof id === 'string') {
        seen.id = true
        parts.push({ type: 'response-metadata', id })
      }
      seen.model ??= textOf(about['model_name']) ?? textOf(about['model'])
      note(chunk)
      // Some servers send reasoning outside of content blocks.
      const thought = textOf(extra['reasoning_content'])
      if (thought !== undefined && thought !== '') parts.push(...emit('reasoning', thought))
      parts.push(...content(chunk.content))
      const pieces = chunk.tool_call_chunks ?? []
      for (const each of pieces) parts.push(...piece(each))
      // Models that do not stream send whole calls. With streaming, `tool_calls` only repeats the pieces.
      if (pieces.length === 0) {
        for (const { id: callId, name, args } of chunk.tool_calls ?? []) {
          parts.push(
            ...piece({ id: callId || crypto.randomUUID(), name, args: JSON.stringify(recordable(args) ?? {}) }),
          )
        }
        for (const { id: callId, name, args } of chunk.invalid_tool_calls ?? []) {
          parts.push(...piece({ id: callId || crypto.randomUUID(), name, args: args ?? '' }))
        }
      }
      return parts
    },

    /** The last parts. Without `finish` if tool calls were lost, or if OpenAI reported no finish reason: the answer was cut off. */
    end(): StreamPart[] {
      const parts = closeBlock()
      let unified = reasons.get(reason?.toLowerCase() ?? '') ?? 'other'
      // Integrations may drop calls, for example if the server's first chunk has no role.
      const lost = unified === 'tool-calls' && calls.length === 0
      if (lost || (reason === undefined && provider === 'openai')) return parts
      for (const { id, name, input, begun } of calls) {
        if (!begun) parts.push({ type: 'tool-input-start', id, toolName: name })
        parts.push({ type: 'tool-input-end', id }, { type: 'tool-call', toolCallId: id, toolName: name, input })
      }
      if (seen.model !== undefined) parts.push({ type: 'response-metadata', modelId: seen.model })
      // Google and others report the same finish reason with and without tool calls.
      if (calls.length > 0 && (unified === 'stop' || unified === 'other')) unified = 'tool-calls'
      parts.push({ type: 'finish', finishReason: { unified, raw: reason }, usage: usageOf() })
      return parts
    },
  }

  function usageOf(): LanguageModelV4Usage {
    const { input, output, cacheRead, cacheWrite, reasoning } = spent
    const known = (tokens: number) => (seen.usage ? tokens : undefined)
    return {
      inputTokens: {
        total: known(input),
        noCache: known(input - cacheRead - cacheWrite),
        cacheRead: known(cacheRead),
        cacheWrite: known(cacheWrite),
      },
      outputTokens: { total: known(output), text: known(output - reasoning), reasoning: known(reasoning) },
    }
  }
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

function recordOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
}
