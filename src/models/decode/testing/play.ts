/** Plays bytes through a reader, and through the AI SDK's package, and makes the outputs comparable. */
import { createAnthropic } from '@ai-sdk/anthropic'
import { createGoogle } from '@ai-sdk/google'
import { createOpenAI } from '@ai-sdk/openai'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import type { LanguageModelV4, LanguageModelV4CallOptions, LanguageModelV4StreamPart } from '@ai-sdk/provider'
import type { Protocol } from '../../testing/recorded-provider.ts'
import type { EndpointProtocol } from '../../providers.ts'
import type { ProtocolReader } from '../../readers.ts'
import type { ReaderOptions } from '../answer-reader.ts'
import { AnthropicReader } from '../anthropic.ts'
import { ChatReader } from '../chat.ts'
import { GoogleReader } from '../google.ts'
import { ResponsesReader } from '../responses.ts'

type Call = LanguageModelV4CallOptions
export type Part = LanguageModelV4StreamPart

export const protocols: readonly Protocol[] = ['openai-chat', 'anthropic', 'openai-responses', 'google']

/** `tools`: names of the user's functions. */
export function callOf(tools: readonly string[], options: Partial<Call> = {}): Call {
  const inputSchema = { type: 'object' as const, properties: {} }
  return {
    prompt: [{ role: 'user', content: [{ type: 'text', text: 'What now?' }] }],
    ...(tools.length > 0 && { tools: tools.map((name) => ({ type: 'function', name, inputSchema })) }),
    ...options,
  }
}

const tier = { 'x-gemini-service-tier': 'standard' }
const file = (mediaType: string, filename?: string) => ({
  type: 'file' as const,
  mediaType,
  data: { type: 'data' as const, data: 'dGV4dA==' },
  ...(filename !== undefined && { filename }),
  providerOptions: { anthropic: { citations: { enabled: true } } },
})
const documents = [file('application/pdf', 'a.pdf'), file('text/plain'), file('image/png')]

const approved = {
  type: 'tool-call' as const,
  toolCallId: 'approved',
  toolName: 'mcp.x',
  input: {},
  providerOptions: { openai: { approvalRequestId: 'a' } },
}

/** Requests that change the reading of an answer. */
export const otherCalls: Record<Protocol, Partial<Call>> = {
  'openai-chat': { providerOptions: { myServer: {} } },
  anthropic: { prompt: [{ role: 'user', content: documents }] },
  'openai-responses': {
    providerOptions: { openai: { store: true, logprobs: 2 } },
    prompt: [{ role: 'assistant', content: [approved] }],
  },
  google: {},
}

export function readerOf(protocol: EndpointProtocol, options: ReaderOptions): ProtocolReader {
  switch (protocol) {
    case 'openai-chat':
      return new ChatReader(options)
    case 'anthropic':
      return new AnthropicReader(options)
    case 'openai-responses':
      return new ResponsesReader(options)
    case 'google':
      return new GoogleReader(options)
  }
}

export interface Playing {
  reader: ProtocolReader
  parts: Part[]
  push(...lines: (string | object)[]): Part[]
  end(): Part[]
}

/** A reader that collects its parts. Lines become the data of events, texts with a line end are sent unchanged. */
export function playing(protocol: EndpointProtocol, call = callOf([]), limits?: ReaderOptions['limits']): Playing {
  const parts: Part[] = []
  let ids = 0
  const about = { warnings: [], who: 'it:m', provider: 'my-server.chat', headers: new Headers(tier), call, limits }
  const emit = (part: Part) => parts.push(part)
  const reader = readerOf(protocol, { ...about, emit, generateId: () => `new-${ids++}` })
  return {
    reader,
    parts,
    push(...lines) {
      for (const line of lines) {
        const text = typeof line === 'string' ? line : JSON.stringify(line)
        reader.push(Buffer.from(text.includes('\n') ? text : `data: ${text}\n\n`))
      }
      return parts
    },
    end() {
      reader.end()
      return parts
    },
  }
}

export function hear(protocol: EndpointProtocol, pieces: readonly Uint8Array[], call = callOf([])): Part[] {
  const { reader, parts } = playing(protocol, call)
  for (const piece of pieces) reader.push(piece)
  reader.end()
  return parts
}

const base = { apiKey: 'test', baseURL: 'http://127.0.0.1/v1' }

function packageOf(protocol: Protocol, fetch: typeof globalThis.fetch): LanguageModelV4 {
  switch (protocol) {
    case 'openai-chat':
      return createOpenAICompatible({ ...base, name: 'my-server', includeUsage: true, fetch })('m')
    case 'anthropic':
      return createAnthropic({ ...base, fetch })('claude-sonnet-4-5')
    case 'openai-responses':
      return createOpenAI({ ...base, fetch }).responses('gpt-5')
    case 'google':
      return createGoogle({ ...base, fetch })('gemini-3-pro-preview')
  }
}

/** Undefined if the package finds no complete answer in the stream: then it is no reference. */
export async function hearPackage(
  protocol: Protocol,
  bodies: readonly Uint8Array[],
  call = callOf([]),
): Promise<Part[] | undefined> {
  const parts: Part[] = []
  const rest = [...bodies]
  try {
    const fetch = async () => new Response(rest.shift() as never, { headers: tier })
    const { stream } = await packageOf(protocol, fetch).doStream(call)
    for await (const part of stream) parts.push(part)
  } catch {
    return undefined
  }
  const end = parts.at(-1)
  if (end?.type !== 'finish' || parts.some(({ type }) => type === 'error')) return undefined
  const { unified, raw } = end.finishReason
  const isWhole = unified !== 'interrupted' && unified !== 'error' && (unified !== 'other' || raw !== undefined)
  return isWhole ? parts : undefined
}

/** As plain values, without a reader's own additions, and with random ids numbered in order. */
export function comparable(parts: readonly Part[], sent: string): unknown[] {
  const told: Part[] = []
  for (const part of parts) {
    const last = told.at(-1)
    if (part.type === 'ping' || part.type === 'raw' || isEmpty(part)) continue
    // The cuts of an input do not matter.
    if (part.type !== 'tool-input-delta' || last?.type !== part.type || last.id !== part.id) told.push(part)
    else told[told.length - 1] = { ...last, delta: last.delta + part.delta }
  }
  const ids: string[] = []
  const text = JSON.stringify(told).replaceAll(
    /"(new-\d+|[0-9A-Za-z]{16})(?=["\\-])(?!\\?":)/g,
    (quoted, id: string) => {
      if (sent.includes(id)) return quoted
      if (!ids.includes(id)) ids.push(id)
      return `"id ${ids.indexOf(id)}`
    },
  )
  return JSON.parse(text) as unknown[]
}

function isEmpty(part: Part): boolean {
  return part.type === 'tool-input-delta' && part.delta === ''
}

/** The visible text of an answer. */
export function textIn(parts: readonly Part[]): string {
  return parts.map((part) => (part.type === 'text-delta' ? part.delta : '')).join('')
}
