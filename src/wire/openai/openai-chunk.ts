/** An answer as the chunks of a stream. */
import { omitUndefined } from '../../part/omit-undefined.ts'
import type { ErrorValue } from '../../part/error.ts'
import type { Usage } from '../../part/usage.ts'
import { errorText, type Sink } from '../wire.ts'
import {
  toOpenAiCode,
  toOpenAiUsage,
  type OpenAiAside,
  type OpenAiCall,
  type OpenAiFinish,
  type OpenAiHead,
  type OpenAiOptions,
  type OpenAiOutput,
  type OpenAiPrompt,
  type Signed,
} from './openai-output.ts'

/** A chunk of `chat.completion.chunk` or `text_completion`, a trace, or the error that ends the stream. */
export type OpenAiEvent = { [field: string]: unknown }

export function createChunkOutput(sink: Sink<OpenAiEvent>, options: Partial<OpenAiOptions>): OpenAiOutput {
  return new Chunks(sink, options)
}

/** Class, not closures: one instance per answer (decisions/0028). */
class Chunks implements OpenAiOutput {
  readonly #sink: Sink<OpenAiEvent>
  readonly #object: string
  readonly #isChat: boolean
  readonly #includeUsage: boolean
  readonly #traceKey: string
  #head: OpenAiHead & { object: string }
  #sendText: (words: string) => void = ignore
  #sendReasoning: (words: string) => void = ignore

  constructor(
    sink: Sink<OpenAiEvent>,
    { object = 'chat.completion', includeUsage = false, traceKey = 'bernard' }: Partial<OpenAiOptions>,
  ) {
    this.#sink = sink
    this.#object = object
    this.#isChat = object === 'chat.completion'
    this.#includeUsage = includeUsage
    this.#traceKey = traceKey
    this.#head = { id: '', object, created: 0, model: '' }
  }

  begin({ id, created, model }: OpenAiHead): void {
    const isChat = this.#isChat
    this.#head = { id, object: isChat ? 'chat.completion.chunk' : this.#object, created, model }
    this.#sendText = this.#sink.prepare((text) => (isChat ? this.#delta({ content: text }) : this.#text(text)))
    this.#sendReasoning = this.#sink.prepare((text) => this.#delta({ reasoning_content: text }))
    if (isChat) this.#sink.send(this.#delta({ role: 'assistant', content: '' }))
  }

  text(words: string): void {
    this.#sendText(words)
  }

  reasoning(words: string): void {
    this.#sendReasoning(words)
  }

  call({ index, id, name, arguments: json, signed }: OpenAiCall): void {
    const call = { index, id, type: 'function', function: { name, arguments: json }, ...signed }
    this.#sink.send(this.#delta({ tool_calls: [call] }))
  }

  callArguments(index: number, fragment: string, signed?: Signed): void {
    this.#sink.send(this.#delta({ tool_calls: [{ index, function: { arguments: fragment }, ...signed }] }))
  }

  toolOutput(id: string, content: string): void {
    this.#sink.send(this.#delta({ tool_outputs: [{ id, content }] }))
  }

  prompt(make: () => OpenAiPrompt): void {
    if (!this.#sink.muted) this.#sink.send({ ...this.#head, choices: [], [this.#traceKey]: make(), ...this.#usage() })
  }

  refusal(words: string): void {
    this.#sink.send(this.#isChat ? this.#delta({ refusal: words }) : this.#text(words))
  }

  finish(reason: OpenAiFinish, usage: Usage, aside?: OpenAiAside): void {
    const end = this.#isChat ? { index: 0, delta: {} } : { text: '', index: 0, logprobs: null }
    const frame = this.#chunk({ ...end, finish_reason: reason })
    this.#sink.send(aside === undefined ? frame : { ...frame, millrace: aside })
    if (this.#includeUsage) this.#sink.send({ ...this.#head, choices: [], usage: toOpenAiUsage(usage) })
    this.#sink.end()
  }

  fail(error: ErrorValue): void {
    this.#sink.send({ error: toOpenAiError(error) })
    this.#sink.end()
  }

  #usage(): { usage: null } | undefined {
    return this.#includeUsage ? { usage: null } : undefined
  }

  #chunk(choice: object): OpenAiEvent {
    return { ...this.#head, choices: [choice], ...this.#usage() }
  }

  #delta(delta: object): OpenAiEvent {
    return this.#chunk({ index: 0, delta, finish_reason: null })
  }

  #text(text: string): OpenAiEvent {
    return this.#chunk({ text, index: 0, logprobs: null, finish_reason: null })
  }
}

function ignore(): void {}

/** `retry_after`, in seconds, is our extension: OpenAI uses a header, but headers have already been sent. */
function toOpenAiError(error: ErrorValue): object {
  const { code, retryAfter } = error
  const said = { message: errorText(error), type: 'server_error', code: toOpenAiCode(code), param: null }
  return { ...said, ...omitUndefined({ retry_after: retryAfter === undefined ? undefined : Math.ceil(retryAfter) }) }
}
