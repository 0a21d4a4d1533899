/** Adapts LangChain chat models. They are recognised by their methods; LangChain is not imported. */
import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4StreamPart,
  SharedV4Warning,
} from '@ai-sdk/provider'
import { compact } from '../../part/compact.ts'
import { MillraceError } from '../../part/error.ts'
import { toGenerated } from '../generated.ts'
import { metadataKey, toLangChainMessages } from './messages.ts'
import { createLangChainParts, type LangChainChunk } from './parts.ts'

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
  const given = compact({
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
