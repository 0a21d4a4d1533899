/** Plays the same bytes through `doStream` of a real package and through a decoder, and makes what they say comparable. */
import type { LanguageModelV4, LanguageModelV4CallOptions, LanguageModelV4StreamPart } from '@ai-sdk/provider'
import type { StreamDecoder } from '../decoder.ts'
import type { GoogleDecoder } from '../google/decoder.ts'

export interface Heard {
  parts: string[]
  /** Why `doStream` rejected or its stream broke off. */
  error?: string
  isRefused?: boolean
}

export interface Setting {
  /** `fetch` is the fake server's. */
  model(fetch: typeof globalThis.fetch): LanguageModelV4
  call: LanguageModelV4CallOptions
  headers?: Record<string, string>
  decoder(
    request: { url: string; body: unknown; responseHeaders: Record<string, string> },
    emit: (part: LanguageModelV4StreamPart) => void,
  ): StreamDecoder & Partial<Pick<GoogleDecoder, 'continuation' | 'continued'>>
}

type Request = Parameters<Setting['decoder']>[0]

/**
 * `more`: what further requests are answered with, for answers that take several; nothing from then on.
 *
 * Both take their random ids from `Math.random`: with the same seed they are the same.
 */
export async function compare(
  setting: Setting,
  bytes: Uint8Array,
  cuts: readonly number[],
  more: readonly Uint8Array[] = [],
): Promise<[Heard, Heard[]]> {
  const random = Math.random
  try {
    Math.random = seeded()
    const heard = await hearPackage(setting, [bytes, ...more])
    if (!requests.has(setting)) requests.set(setting, requestOf(setting))
    const request = await requests.get(setting)!
    const decoded = cuts.map((cut) => {
      Math.random = seeded()
      return hearDecoder(
        setting,
        request,
        [bytes, ...more].map((body) => pieces(body, cut)),
      )
    })
    return [heard, decoded]
  } finally {
    Math.random = random
  }
}

async function hearPackage(setting: Setting, bodies: readonly Uint8Array[]): Promise<Heard> {
  const parts: string[] = []
  let isRefused = true
  try {
    const { stream } = await setting.model(answering(setting, bodies)).doStream(setting.call)
    isRefused = false
    for await (const part of stream) parts.push(said(part))
    return { parts }
  } catch (error) {
    return { parts, error: said(error), isRefused }
  }
}

const requests = new WeakMap<Setting, Promise<Request>>()

/** An empty answer is never an error: `doStream` then tells what it has sent. */
async function requestOf(setting: Setting): Promise<Request> {
  let url = ''
  const fetch = answering(setting, [], (at) => (url = at))
  const { request, response, stream } = await setting.model(fetch).doStream(setting.call)
  await stream.cancel()
  return { url, body: request?.body, responseHeaders: response?.headers ?? {} }
}

function answering({ headers = {} }: Setting, bodies: readonly Uint8Array[], onUrl?: (url: string) => void) {
  let next = 0
  const fetch: typeof globalThis.fetch = async (url) => {
    onUrl?.(url instanceof Request ? url.url : url.toString())
    return new Response((bodies[next++] ?? new Uint8Array()) as Uint8Array<ArrayBuffer>, { headers })
  }
  return fetch
}

function hearDecoder(setting: Setting, request: Request, bodies: Uint8Array[][]): Heard {
  const parts: string[] = []
  const decoder = setting.decoder(request, (part) => parts.push(said(part)))
  try {
    for (let i = 0; i === 0 || decoder.continuation?.() !== undefined; i++) {
      if (i > 0) decoder.continued?.()
      for (const piece of bodies[i] ?? []) decoder.push(piece)
    }
    decoder.end()
    return { parts }
  } catch (error) {
    return { parts, error: said(error), isRefused: parts.length === 0 }
  }
}

/** A part as a text, with what JSON cannot say. The order of fields counts: parts become lines of a log. */
function said(value: unknown): string {
  return JSON.stringify(plain(value))
}

function plain(value: unknown): unknown {
  if (typeof value === 'number' && (!Number.isFinite(value) || Object.is(value, -0))) return `number ${value}`
  if (value instanceof Date) return `date ${value.getTime()}`
  if (Array.isArray(value)) return value.map(plain)
  if (typeof value !== 'object' || value === null) return value
  const fields = Object.entries(value)
  const { name, message, cause } = value as Error
  const error = value instanceof Error ? { name, message, cause: plain(cause) } : undefined
  const symbols = Object.getOwnPropertySymbols(value).map(String)
  return {
    ...error,
    // A field without a value is no field.
    ...Object.fromEntries(fields.filter(([, field]) => field !== undefined).map(([key, field]) => [key, plain(field)])),
    ...(symbols.length > 0 && { symbols }),
  }
}

/** Pieces of `cut` bytes. 0: one piece. Negative: pieces of random sizes. */
function pieces(bytes: Uint8Array, cut: number): Uint8Array[] {
  if (cut === 0) return [bytes]
  const random = seeded(cut)
  const all: Uint8Array[] = []
  for (let at = 0; at < bytes.length;) {
    const size = cut > 0 ? cut : 1 + Math.floor(random() * 200)
    all.push(bytes.subarray(at, at + size))
    at += size
  }
  return all
}

/** Mulberry32. */
export function seeded(seed = 1): () => number {
  let state = seed | 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
}
