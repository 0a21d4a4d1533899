/** An answer as one JSON, for `stream: false`, with the same content as the stream. */
import { objects } from '../framing/objects.ts'
import type { ErrorValue } from '../../part/error.ts'
import { createWire, type Sink } from '../wire.ts'
import { createOpenAiAnswer } from './openai-answer.ts'
import type { OpenAiToolCall } from './to-openai-messages.ts'
import {
  toOpenAiUsage,
  type OpenAiFinish,
  type OpenAiHead,
  type OpenAiOptions,
  type OpenAiOutput,
  type OpenAiPrompt,
  type OpenAiUsage,
} from './openai-output.ts'

/** Its one event comes at the end: the body, or the error instead of it. */
export const openaiJsonWire = createWire<OpenAiResult, OpenAiOptions, OpenAiResult[]>({
  name: 'openai-json',
  project: (sink, context, options) => createOpenAiAnswer(context, options, createBodyOutput(sink, options)),
  framing: objects(),
})

export type OpenAiResult = { body: OpenAiBody } | { error: ErrorValue }

/** With the extension `trace`, the prompts are under the trace key. */
export type OpenAiBody = (ChatCompletion | TextCompletion) & { [traceKey: string]: unknown }

export interface ChatCompletion extends OpenAiHead {
  object: 'chat.completion'
  choices: [{ index: 0; message: ChatMessage; logprobs: null; finish_reason: OpenAiFinish }]
  usage: OpenAiUsage
}
export interface ChatMessage {
  role: 'assistant'
  /** null when there are only calls. */
  content: string | null
  refusal: null
  reasoning_content?: string
  tool_calls?: OpenAiToolCall[]
  /** Extension `tools`. */
  tool_outputs?: { id: string; content: string }[]
}
export interface TextCompletion extends OpenAiHead {
  object: 'text_completion'
  choices: [{ text: string; index: 0; logprobs: null; finish_reason: OpenAiFinish }]
  usage: OpenAiUsage
}

function createBodyOutput(sink: Sink<OpenAiResult>, options: Partial<OpenAiOptions>): OpenAiOutput {
  const { object = 'chat.completion', traceKey = 'bernard', extensions = [] } = options
  const calls: OpenAiToolCall[] = []
  const outputs: { id: string; content: string }[] = []
  const prompts: OpenAiPrompt[] = []
  let head: OpenAiHead = { id: '', created: 0, model: '' }
  let text = ''
  let reasoning = ''

  function message(): ChatMessage {
    return {
      role: 'assistant',
      content: text === '' && calls.length > 0 ? null : text,
      refusal: null,
      ...(reasoning === '' ? undefined : { reasoning_content: reasoning }),
      ...(calls.length === 0 ? undefined : { tool_calls: calls }),
      ...(outputs.length === 0 ? undefined : { tool_outputs: outputs }),
    }
  }

  return {
    begin: (given) => void (head = given),
    text: (words) => void (text += words),
    reasoning: (words) => void (reasoning += words),
    call: ({ index, id, name, arguments: json }) => {
      calls[index] = { id, type: 'function', function: { name, arguments: json } }
    },
    callArguments: (index, fragment) => void (calls[index]!.function.arguments += fragment),
    toolOutput: (id, content) => void outputs.push({ id, content }),
    prompt: (make) => void prompts.push(make()),
    finish(reason, given) {
      const usage = toOpenAiUsage(given)
      const trace = extensions.includes('trace') ? { [traceKey]: prompts } : undefined
      const body =
        object === 'chat.completion'
          ? { ...head, object, choices: [{ index: 0, message: message(), logprobs: null, finish_reason: reason }] }
          : { ...head, object, choices: [{ text, index: 0, logprobs: null, finish_reason: reason }] }
      sink.send({ body: { ...body, usage, ...trace } as OpenAiBody })
    },
    fail: (error) => sink.send({ error }),
  }
}
