/** An answer as one JSON, for `stream: false`, with the same content as the stream. */
import { objects } from '../framing/objects.ts'
import type { ErrorValue } from '../../part/error.ts'
import { createWire, type Sink } from '../wire.ts'
import { createOpenAiAnswer } from './openai-answer.ts'
import type { OpenAiToolCall } from './to-openai-messages.ts'
import {
  toOpenAiUsage,
  type OpenAiAside,
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
export type OpenAiBody = (ChatCompletion | TextCompletion) & { [traceKey: string]: unknown; millrace?: OpenAiAside }

export interface ChatCompletion extends OpenAiHead {
  object: 'chat.completion'
  choices: [{ index: 0; message: ChatMessage; logprobs: null; finish_reason: OpenAiFinish }]
  usage: OpenAiUsage
}
export interface ChatMessage {
  role: 'assistant'
  /** null when there are only calls. */
  content: string | null
  /** Words beside the answer, for the open requests, if the answer must be JSON. */
  refusal: string | null
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
  let calls: OpenAiToolCall[] = []
  let outputs: { id: string; content: string }[] = []
  let prompts: OpenAiPrompt[] = []
  let head: OpenAiHead = { id: '', created: 0, model: '' }
  let text = ''
  let reasoning = ''
  let refusal: string | null = null

  function message(): ChatMessage {
    return {
      role: 'assistant',
      content: text === '' && (calls.length > 0 || refusal !== null) ? null : text,
      refusal,
      ...(reasoning === '' ? undefined : { reasoning_content: reasoning }),
      ...(calls.length === 0 ? undefined : { tool_calls: calls }),
      ...(outputs.length === 0 ? undefined : { tool_outputs: outputs }),
    }
  }

  return {
    begin(given) {
      head = given
      // The words of an earlier answer stay there.
      calls = []
      outputs = []
      prompts = []
      text = ''
      reasoning = ''
    },
    text: (words) => void (text += words),
    reasoning: (words) => void (reasoning += words),
    call: ({ index, id, name, arguments: json, signed }) => {
      calls[index] = { id, type: 'function', function: { name, arguments: json }, ...signed }
    },
    callArguments: (index, fragment, signed) => {
      const call = calls[index]!
      call.function.arguments += fragment
      Object.assign(call, signed)
    },
    toolOutput: (id, content) => void outputs.push({ id, content }),
    prompt: (make) => void prompts.push(make()),
    refusal(words) {
      if (object === 'chat.completion') refusal = words
      else text += words
    },
    finish(reason, given, aside) {
      const usage = toOpenAiUsage(given)
      const trace = extensions.includes('trace') ? { [traceKey]: prompts } : undefined
      const body =
        object === 'chat.completion'
          ? { ...head, object, choices: [{ index: 0, message: message(), logprobs: null, finish_reason: reason }] }
          : { ...head, object, choices: [{ text, index: 0, logprobs: null, finish_reason: reason }] }
      const open = aside === undefined ? undefined : { millrace: aside }
      sink.send({ body: { ...body, usage, ...trace, ...open } as OpenAiBody })
    },
    fail: (error) => sink.send({ error }),
  }
}
