/** Plays the same bytes through the AI SDK's package and through a decoder, and makes what they say comparable. */
import type { LanguageModelV4, LanguageModelV4CallOptions, LanguageModelV4StreamPart } from '@ai-sdk/provider'
import type { DecoderOptions, RequestFacts, StreamDecoder } from '../decoder.ts'
import type { GoogleDecoder } from '../google/decoder.ts'

export interface Setting {
  name: string
  /** `fetch` is the fake server's. */
  model(fetch: typeof globalThis.fetch): LanguageModelV4
  call: LanguageModelV4CallOptions
  headers?: Record<string, string>
  decoder(options: DecoderOptions & { request: RequestFacts }): StreamDecoder & Partial<GoogleDecoder>
}

export interface Answer {
  /** More than one: answers to the further requests that an answer may take; they are empty from then on. */
  bodies: readonly Uint8Array[]
  /** The connection fails after the last byte. */
  isBroken?: boolean
}

export type Cut = (bytes: Uint8Array) => Uint8Array[]

export interface Heard {
  /** As texts. */
  parts: string[]
  /** Why `doStream` rejected or its stream broke off. */
  error?: string
  isRefused?: boolean
}

export async function playBoth(setting: Setting, answer: Answer, cuts: readonly Cut[]): Promise<[Heard, Heard[]]> {
  const sent = answer.bodies.map((body) => new TextDecoder().decode(body)).join('')
  const theirs = await hearPackage(setting, answer)
  if (!requests.has(setting)) requests.set(setting, requestOf(setting))
  const request = await requests.get(setting)!
  const ours = cuts.map((cut) => hearDecoder(setting, request, answer, cut))
  return [withoutChance(theirs, sent), ours.map((heard) => withoutChance(heard, sent))]
}

/** Numbers the random ids in the order in which they come. */
function withoutChance(heard: Heard, sent: string): Heard {
  const ids: string[] = []
  const parts = heard.parts.map((part) =>
    part.replaceAll(/"([0-9A-Za-z]{16})(?=["\\-])/g, (quoted, id: string) => {
      if (sent.includes(id)) return quoted
      if (!ids.includes(id)) ids.push(id)
      return `"id ${ids.indexOf(id)}`
    }),
  )
  return { ...heard, parts }
}

/**
 * Where a package fails by itself, its stream drops the parts that nobody has read yet: how many depends on timing. The decoder has
 * emitted them.
 */
export function isSame(ours: Heard, theirs: Heard): boolean {
  if (ours.error !== theirs.error) return false
  const hasFailed = theirs.error !== undefined && theirs.isRefused === false
  if (!hasFailed && ours.isRefused !== theirs.isRefused) return false
  const parts = hasFailed ? ours.parts.slice(0, theirs.parts.length) : ours.parts
  return parts.join('\n') === theirs.parts.join('\n')
}

const lost = new Error('connection lost')

async function hearPackage(setting: Setting, answer: Answer): Promise<Heard> {
  const parts: string[] = []
  let isRefused = true
  try {
    const { stream } = await setting.model(answering(setting, answer)).doStream(setting.call)
    isRefused = false
    for await (const part of stream) parts.push(said(settled(part)))
    return { parts }
  } catch (error) {
    // A decoder hears nothing of this.
    if (isLost(error)) return { parts }
    return { parts, error: said(error), isRefused }
  }
}

function isLost(error: unknown): boolean {
  return error === lost || (error instanceof Error && isLost(error.cause))
}

type Request = Pick<DecoderOptions, 'warnings'> & { request: RequestFacts }

const requests = new WeakMap<Setting, Promise<Request>>()

/** An empty answer is never an error: `doStream` then tells what it has sent. */
async function requestOf(setting: Setting): Promise<Request> {
  let url = ''
  const fetch = answering(setting, { bodies: [] }, (at) => (url = at))
  const { request, response, stream } = await setting.model(fetch).doStream(setting.call)
  const reader = stream.getReader()
  const { value } = await reader.read()
  await reader.cancel()
  const warnings = value?.type === 'stream-start' ? value.warnings : []
  return { request: { url, body: request?.body, responseHeaders: response?.headers ?? {} }, warnings }
}

function answering({ headers = {} }: Setting, { bodies, isBroken = false }: Answer, onUrl?: (url: string) => void) {
  let next = 0
  const fetch: typeof globalThis.fetch = async (url) => {
    onUrl?.(url instanceof Request ? url.url : url.toString())
    const body = bodies[next++] ?? new Uint8Array()
    return new Response(streamOf(body, isBroken && next === bodies.length), { headers })
  }
  return fetch
}

/** Fails only when everything before has been read: a stream drops what nobody has read yet. */
function streamOf(bytes: Uint8Array, isBroken: boolean): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>({
    start(controller) {
      if (bytes.length > 0) controller.enqueue(bytes)
      if (!isBroken) controller.close()
    },
    async pull(controller) {
      await new Promise(setImmediate)
      controller.error(lost)
    },
  })
}

function hearDecoder(
  setting: Setting,
  { request, warnings }: Request,
  { bodies, isBroken = false }: Answer,
  cut: Cut,
): Heard {
  const parts: string[] = []
  const emit = (part: LanguageModelV4StreamPart) => parts.push(said(settled(part)))
  const decoder = setting.decoder({ request, warnings, emit, who: setting.name })
  try {
    for (let i = 0; i === 0 || decoder.continuation?.() !== undefined; i++) {
      if (i > 0) decoder.continued?.()
      for (const piece of cut(bodies[i] ?? new Uint8Array())) decoder.push(piece)
      if (isBroken && i === bodies.length - 1) return { parts }
    }
    decoder.end()
    return { parts }
  } catch (error) {
    return { parts, error: said(error), isRefused: parts.length === 0 }
  }
}

/** Without what `@ai-sdk/anthropic` changes after it has sent it: see `decoder.ts`. */
function settled(part: LanguageModelV4StreamPart): LanguageModelV4StreamPart {
  if (part.type !== 'finish' || part.providerMetadata?.['anthropic']?.['usage'] !== null) return part
  return { ...part, usage: { ...part.usage, raw: undefined } }
}

/** With what JSON cannot say. The order of fields counts: parts become lines of a log. */
function said(value: unknown): string {
  // Dates are texts already when they come as an argument.
  return JSON.stringify(value, function (this: Record<string, unknown>, key: string) {
    return sayable(this[key])
  })
}

function sayable(value: unknown): unknown {
  if (typeof value === 'number') return Number.isFinite(value) ? value : `number ${value}`
  if (typeof value !== 'object' || value === null) return value
  if (value instanceof Date) return `date ${value.getTime()}`
  const symbols = Object.getOwnPropertySymbols(value).map(String)
  if (!(value instanceof Error) && symbols.length === 0) return value
  const { name, message, cause } = value as Error
  return { name, message, cause, ...value, symbols }
}
