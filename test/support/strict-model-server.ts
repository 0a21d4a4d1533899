/**
 * A model server over a real socket that speaks chat completions, Responses, Anthropic's Messages and Gemini, and refuses as the services do: requests
 * in a wrong order (`strict-requests.ts`), foreign signatures, and prompts that do not fit its window. It counts tokens with a tokenizer, and
 * answers may wait for latches.
 */
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { countTokens as tokensOf } from 'gpt-tokenizer/encoding/o200k_base'
import type { EndpointProtocol } from '../../src/models/providers.ts'
import type { Latch } from '../../src/models/testing/scripted-model.ts'
import { faultIn, systemOf, turnsOf, type ToldTurn } from './strict-requests.ts'

type Json = Record<string, unknown>

export const strictProtocols: readonly EndpointProtocol[] = ['openai-chat', 'openai-responses', 'anthropic', 'google']

/** One request that was accepted, in terms of all protocols. */
export interface AskedModel {
  protocol: EndpointProtocol
  model: string
  /** From 1, over all requests, refused ones included. */
  n: number
  body: Json
  system: string
  turns: ToldTurn[]
  /** Names of the declared tools. */
  tools: string[]
  /** Of the prompt. */
  tokens: number
  /** Resolves when the client has closed the connection before the answer was complete. */
  left: Promise<void>
}

/** What the model says: a thought that it signs, a text in pieces, calls. A latch holds the answer where it stands. */
export interface StrictAnswer {
  thinks?: string
  text?: string | readonly (string | Latch)[]
  calls?: readonly { name: string; input?: object; id?: string }[]
  /** The reason at the end, in the protocol's words. Default: of a complete answer. */
  finish?: string
  /** Tokens that the report says the prompt had. Default: as counted. */
  reports?: number
}

export interface Refusal {
  status: number
  body: Json
  headers?: Record<string, string>
}

export interface StrictServer {
  /** For endpoints of any protocol, and for the addresses of the providers themselves. */
  baseURL: string
  /** Accepted ones, in order. */
  requests: AskedModel[]
  /** Why requests were refused, in order. */
  refused: { n: number; protocol: EndpointProtocol; status: number; why: string }[]
  close(): Promise<void>
}

export interface StrictOptions {
  /** Tokens of the window. A longer prompt is refused in the words of the protocol's service. Default: no limit. */
  window?: number
  answer(request: AskedModel): StrictAnswer | Refusal | Promise<StrictAnswer | Refusal>
  /** Replaces the refusal of a prompt that is too long. */
  tooLong?(protocol: EndpointProtocol, tokens: number, window: number): Refusal
}

export async function startStrictServer({
  window,
  answer,
  tooLong = refuseLong,
}: StrictOptions): Promise<StrictServer> {
  const requests: AskedModel[] = []
  const refused: StrictServer['refused'] = []
  let count = 0
  const server = createServer((incoming, response) => {
    void (async () => {
      const text = await incoming
        .setEncoding('utf8')
        .toArray()
        .catch(() => [])
      if (text.length === 0) return void response.destroy()
      const n = ++count
      const body = JSON.parse(text.join('')) as Json
      const { protocol, model } = placeOf(incoming.url ?? '', body)
      const refuse = (why: string, { status, body: said, headers = {} }: Refusal) => {
        refused.push({ n, protocol, status, why })
        response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(said))
      }
      const isOwn = (signature: string) => signature.startsWith(signatureOf(model))
      const fault = faultIn({ protocol, body, isOwn })
      if (fault !== undefined) return refuse(fault, refusalOf(protocol, fault))
      const tokens = countPrompt(body)
      if (window !== undefined && tokens > window) return refuse('too long', tooLong(protocol, tokens, window))
      const left = new Promise<void>((resolve) =>
        response.on('close', () => {
          if (!response.writableFinished) resolve()
        }),
      )
      const asked: AskedModel = {
        protocol,
        model,
        n,
        body,
        system: systemOf({ protocol, body }),
        turns: turnsOf({ protocol, body }),
        tools: toolNames(body),
        tokens,
        left,
      }
      requests.push(asked)
      const said = await answer(asked)
      if ('status' in said) return refuse(JSON.stringify(said.body), said)
      await speak(response, asked, said)
    })().catch((error: unknown) => response.destroy(error as Error))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    baseURL: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    requests,
    refused,
    async close() {
      const closed = new Promise((resolve) => server.close(resolve))
      server.closeAllConnections()
      await closed
    },
  }
}

function placeOf(url: string, body: Json): { protocol: EndpointProtocol; model: string } {
  const { pathname } = new URL(url, 'http://here')
  const google = /\/models\/([^/:]+):/u.exec(pathname)
  if (google) return { protocol: 'google', model: decodeURIComponent(google[1]!) }
  const model = String(body['model'])
  if (pathname.endsWith('/messages')) return { protocol: 'anthropic', model }
  return { protocol: pathname.endsWith('/responses') ? 'openai-responses' : 'openai-chat', model }
}

function signatureOf(model: string): string {
  return `signed-by-${model}-`
}

function toolNames({ tools }: Json): string[] {
  return ((tools ?? []) as Json[]).flatMap((tool) => {
    const inner = (tool['functionDeclarations'] ?? [tool['function'] ?? tool]) as { name: string }[]
    return inner.map(({ name }) => name)
  })
}

/* Counting. Texts of a conversation are sent again and again, so each is counted once. */

const counted = new Map<string, number>()

function countText(text: string): number {
  let tokens = counted.get(text)
  if (tokens === undefined) {
    tokens = tokensOf(text)
    if (counted.size > 20_000) counted.clear()
    counted.set(text, tokens)
  }
  return tokens
}

/** Tokens of an image, at most 1,600 at each of these services. */
const imageTokens = 1600

/** All that a model reads of a request, and 4 for each message. */
export function countPrompt(body: Json): number {
  let sum = 0
  for (const key of ['messages', 'input', 'contents']) {
    for (const message of (body[key] ?? []) as Json[]) sum += 4 + countValue(message)
  }
  for (const key of ['system', 'systemInstruction']) if (body[key] !== undefined) sum += countValue(body[key])
  if (body['tools'] !== undefined) sum += countText(JSON.stringify(body['tools']))
  return sum
}

function countValue(value: unknown, key?: string): number {
  if (typeof value === 'string') return hidden.has(key ?? '') ? 0 : countText(value)
  if (typeof value !== 'object' || value === null) return 0
  if (Array.isArray(value)) return value.reduce((sum: number, each) => sum + countValue(each), 0)
  const fields = value as Json
  if (isImage(fields)) return imageTokens
  if (key === 'args' || key === 'response' || (key === 'input' && fields['role'] === undefined)) {
    return countText(JSON.stringify(value))
  }
  return Object.entries(fields).reduce((sum, [name, each]) => sum + countValue(each, name), 0)
}

function isImage({ type, inlineData }: Json): boolean {
  return type === 'image' || type === 'image_url' || type === 'input_image' || inlineData !== undefined
}

/** Fields that are no words. */
const hidden: ReadonlySet<string> = new Set([
  'type',
  'role',
  'id',
  'call_id',
  'tool_call_id',
  'tool_use_id',
  'signature',
  'encrypted_content',
  'thoughtSignature',
])

/* Refusals. */

function refusalOf(protocol: EndpointProtocol, message: string): Refusal {
  switch (protocol) {
    case 'anthropic':
      return { status: 400, body: { type: 'error', error: { type: 'invalid_request_error', message } } }
    case 'google':
      return { status: 400, body: { error: { code: 400, message, status: 'INVALID_ARGUMENT' } } }
    default:
      return { status: 400, body: { error: { message, type: 'invalid_request_error', param: null, code: null } } }
  }
}

function refuseLong(protocol: EndpointProtocol, tokens: number, window: number): Refusal {
  switch (protocol) {
    case 'openai-chat': {
      const message = `This model's maximum context length is ${window} tokens. However, your messages resulted in ${tokens} tokens. Please reduce the length of the messages.`
      const error = { message, type: 'invalid_request_error', param: 'messages', code: 'context_length_exceeded' }
      return { status: 400, body: { error } }
    }
    case 'openai-responses': {
      const message = 'Your input exceeds the context window of this model. Please adjust your input and try again.'
      const error = { message, type: 'invalid_request_error', param: 'input', code: 'context_length_exceeded' }
      return { status: 400, body: { error } }
    }
    case 'anthropic':
      return refusalOf(protocol, `prompt is too long: ${tokens} tokens > ${window} maximum`)
    case 'google':
      return refusalOf(
        protocol,
        `The input token count (${tokens}) exceeds the maximum number of tokens allowed (${window}).`,
      )
  }
}

/* Answers. */

async function speak(response: ServerResponse, asked: AskedModel, answer: StrictAnswer): Promise<void> {
  const { protocol, n, model, tokens } = asked
  const { thinks, text = '', calls = [], finish, reports = tokens } = answer
  const pieces = typeof text === 'string' ? (text === '' ? [] : [text]) : text
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  response.flushHeaders()
  const written: string[] = []
  const send = (event: Json) => {
    const name = protocol === 'anthropic' ? `event: ${String(event['type'])}\n` : ''
    response.write(`${name}data: ${JSON.stringify(event)}\n\n`)
  }
  const voice = voices[protocol](send, { n, model, signature: `${signatureOf(model)}${n}`, input: reports })
  voice.begin()
  if (thinks !== undefined) voice.think(thinks)
  for (const piece of pieces) {
    if (typeof piece !== 'string') {
      piece.arrive()
      await piece.opened
    } else {
      written.push(piece)
      voice.say(piece)
    }
  }
  voice.said()
  for (const [i, { name, input = {}, id = `call_${n}_${i + 1}` }] of calls.entries()) voice.call(id, name, input)
  const output = countText(written.join('')) + countText(JSON.stringify(calls)) + countText(thinks ?? '')
  voice.end({ output, calls: calls.length > 0, ...(finish !== undefined && { finish }) })
  response.end(protocol === 'openai-chat' ? 'data: [DONE]\n\n' : '')
}

interface Voice {
  begin(): void
  think(text: string): void
  say(text: string): void
  /** The text is complete. */
  said(): void
  call(id: string, name: string, input: object): void
  end(how: { output: number; calls: boolean; finish?: string }): void
}

interface VoiceOptions {
  n: number
  model: string
  signature: string
  input: number
}

type Send = (event: Json) => void

const voices: Record<EndpointProtocol, (send: Send, options: VoiceOptions) => Voice> = {
  'openai-chat': chatVoice,
  'openai-responses': responsesVoice,
  anthropic: anthropicVoice,
  google: googleVoice,
}

function chatVoice(send: Send, { n, model, signature, input }: VoiceOptions): Voice {
  const base = { id: `c${n}`, object: 'chat.completion.chunk', created: 1, model }
  const chunk = (delta: Json, finish_reason: string | null = null) =>
    send({ ...base, choices: [{ index: 0, delta, finish_reason }] })
  let index = 0
  return {
    begin: () => undefined,
    think: (text) => {
      chunk({ reasoning: text, reasoning_details: [{ type: 'reasoning.text', text, signature }] })
    },
    say: (content) => chunk({ role: 'assistant', content }),
    said: () => undefined,
    call: (id, name, args) =>
      chunk({
        tool_calls: [{ index: index++, id, type: 'function', function: { name, arguments: JSON.stringify(args) } }],
      }),
    end({ output, calls, finish = calls ? 'tool_calls' : 'stop' }) {
      chunk({}, finish)
      const usage = { prompt_tokens: input, completion_tokens: output, total_tokens: input + output }
      send({ ...base, choices: [], usage })
    },
  }
}

function responsesVoice(send: Send, { n, model, signature, input }: VoiceOptions): Voice {
  let index = 0
  let isOpen = false
  let text = ''
  const item = (type: 'added' | 'done', made: Json) =>
    send({ type: `response.output_item.${type}`, output_index: index, item: made })
  return {
    begin: () => send({ type: 'response.created', response: { id: `r${n}`, created_at: 1, model } }),
    think(thought) {
      const made = { type: 'reasoning', id: `rs_${n}`, encrypted_content: signature, summary: [] as Json[] }
      item('added', made)
      const place = { item_id: made.id, output_index: index, summary_index: 0 }
      send({ type: 'response.reasoning_summary_part.added', ...place, part: { type: 'summary_text', text: '' } })
      send({ type: 'response.reasoning_summary_text.delta', ...place, delta: thought })
      item('done', { ...made, summary: [{ type: 'summary_text', text: thought }] })
      index++
    },
    say(delta) {
      if (!isOpen) item('added', { type: 'message', id: `msg_${n}`, role: 'assistant', content: [] })
      isOpen = true
      text += delta
      send({ type: 'response.output_text.delta', item_id: `msg_${n}`, output_index: index, content_index: 0, delta })
    },
    said() {
      if (!isOpen) return
      const content = [{ type: 'output_text', text, annotations: [] }]
      item('done', { type: 'message', id: `msg_${n}`, role: 'assistant', status: 'completed', content })
      index++
    },
    call(id, name, args) {
      const made = { type: 'function_call', id: `fc_${id}`, call_id: id, name, arguments: JSON.stringify(args) }
      item('added', { ...made, arguments: '' })
      item('done', { ...made, status: 'completed' })
      index++
    },
    end({ output, finish }) {
      const usage = { input_tokens: input, output_tokens: output, total_tokens: input + output }
      const type = finish === undefined ? 'response.completed' : 'response.incomplete'
      const reason = finish === undefined ? {} : { incomplete_details: { reason: finish } }
      send({ type, response: { id: `r${n}`, usage, ...reason } })
    },
  }
}

function anthropicVoice(send: Send, { n, model, signature, input }: VoiceOptions): Voice {
  let index = 0
  let isOpen = false
  const block = (content_block: Json, ...deltas: Json[]) => {
    send({ type: 'content_block_start', index, content_block })
    for (const delta of deltas) send({ type: 'content_block_delta', index, delta })
    send({ type: 'content_block_stop', index: index++ })
  }
  return {
    begin() {
      const usage = {
        input_tokens: input,
        output_tokens: 1,
        cache_creation_input_tokens: 0,
        cache_read_input_tokens: 0,
      }
      const message = { id: `m${n}`, type: 'message', role: 'assistant', model, content: [], usage }
      send({ type: 'message_start', message })
    },
    think: (thinking) =>
      block(
        { type: 'thinking', thinking: '', signature: '' },
        { type: 'thinking_delta', thinking },
        { type: 'signature_delta', signature },
      ),
    say(text) {
      if (!isOpen) send({ type: 'content_block_start', index, content_block: { type: 'text', text: '' } })
      isOpen = true
      send({ type: 'content_block_delta', index, delta: { type: 'text_delta', text } })
    },
    said() {
      if (isOpen) send({ type: 'content_block_stop', index: index++ })
    },
    call: (id, name, args) =>
      block(
        { type: 'tool_use', id, name, input: {} },
        { type: 'input_json_delta', partial_json: JSON.stringify(args) },
      ),
    end({ output, calls, finish = calls ? 'tool_use' : 'end_turn' }) {
      const usage = { input_tokens: input, output_tokens: output }
      send({ type: 'message_delta', delta: { stop_reason: finish, stop_sequence: null }, usage })
      send({ type: 'message_stop' })
    },
  }
}

function googleVoice(send: Send, { n, model, signature, input }: VoiceOptions): Voice {
  let isSigned = false
  const parts = (...made: Json[]) =>
    send({
      responseId: `g${n}`,
      modelVersion: model,
      candidates: [{ index: 0, content: { role: 'model', parts: made } }],
    })
  // The first call of a reply is signed, or its text.
  const sign = () => {
    const isFirst = !isSigned
    isSigned = true
    return isFirst ? { thoughtSignature: signature } : {}
  }
  let thinks = false
  return {
    begin: () => undefined,
    think(text) {
      thinks = true
      parts({ text, thought: true })
    },
    say: (text) => parts({ text }),
    said: () => undefined,
    call: (id, name, args) => parts({ functionCall: { id, name, args }, ...(thinks && sign()) }),
    end({ output, finish = 'STOP' }) {
      const usageMetadata = {
        promptTokenCount: input,
        candidatesTokenCount: output,
        totalTokenCount: input + output,
      }
      const content = { role: 'model', parts: [{ text: '' }] }
      send({ responseId: `g${n}`, candidates: [{ index: 0, content, finishReason: finish }], usageMetadata })
    },
  }
}
