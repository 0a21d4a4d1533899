/** An answer as the chunks of a stream. */
import { compact } from '../../part/compact.ts'
import type { ErrorValue } from '../../part/error.ts'
import { errorText } from '../error-text.ts'
import type { Sink } from '../wire.ts'
import { toOpenAiCode, toOpenAiUsage, type OpenAiHead, type OpenAiOptions, type OpenAiOutput } from './openai-output.ts'

/** A chunk of `chat.completion.chunk` or `text_completion`, a trace, or the error that ends the stream. */
export type OpenAiEvent = { [field: string]: unknown }

export function createChunkOutput(
  sink: Sink<OpenAiEvent>,
  { object = 'chat.completion', includeUsage = false, traceKey = 'bernard' }: Partial<OpenAiOptions>,
): OpenAiOutput {
  const isChat = object === 'chat.completion'
  const usageNull = includeUsage ? { usage: null } : undefined
  let head: OpenAiHead & { object: string } = { id: '', object, created: 0, model: '' }
  let sendText: (words: string) => void = () => undefined
  let sendReasoning = sendText

  const toChunk = (choice: object): OpenAiEvent => ({ ...head, choices: [choice], ...usageNull })
  const toDelta = (delta: object) => toChunk({ index: 0, delta, finish_reason: null })
  const toText = (text: string) => toChunk({ text, index: 0, logprobs: null, finish_reason: null })

  return {
    begin({ id, created, model }) {
      head = { id, object: isChat ? 'chat.completion.chunk' : object, created, model }
      sendText = sink.prepare(isChat ? (content) => toDelta({ content }) : toText)
      sendReasoning = sink.prepare((text) => toDelta({ reasoning_content: text }))
      if (isChat) sink.send(toDelta({ role: 'assistant', content: '' }))
    },
    text: (words) => sendText(words),
    reasoning: (words) => sendReasoning(words),
    call({ index, id, name, arguments: json }) {
      sink.send(toDelta({ tool_calls: [{ index, id, type: 'function', function: { name, arguments: json } }] }))
    },
    callArguments(index, fragment) {
      sink.send(toDelta({ tool_calls: [{ index, function: { arguments: fragment } }] }))
    },
    toolOutput(id, content) {
      sink.send(toDelta({ tool_outputs: [{ id, content }] }))
    },
    prompt(make) {
      if (!sink.muted) sink.send({ ...head, choices: [], [traceKey]: make(), ...usageNull })
    },
    refusal: (words) => sink.send(isChat ? toDelta({ refusal: words }) : toText(words)),
    finish(reason, usage, aside) {
      const end = isChat ? { index: 0, delta: {} } : { text: '', index: 0, logprobs: null }
      const frame = toChunk({ ...end, finish_reason: reason })
      sink.send(aside === undefined ? frame : { ...frame, millrace: aside })
      if (includeUsage) sink.send({ ...head, choices: [], usage: toOpenAiUsage(usage) })
      sink.end()
    },
    fail(error) {
      sink.send({ error: toOpenAiError(error) })
      sink.end()
    },
  }
}

/** `retry_after`, in seconds, is our extension: OpenAI uses a header, but headers have already been sent. */
function toOpenAiError(error: ErrorValue): object {
  const { code, retryAfter } = error
  const said = { message: errorText(error), type: 'server_error', code: toOpenAiCode(code), param: null }
  return { ...said, ...compact({ retry_after: retryAfter === undefined ? undefined : Math.ceil(retryAfter) }) }
}
