/** Plays the same bytes through the AI SDK's package and through a decoder, and makes the parts of both comparable. */
import type { LanguageModelV4, LanguageModelV4CallOptions, LanguageModelV4StreamPart } from '@ai-sdk/provider'
import type { StreamDecoder } from '../decoder.ts'

export interface Heard {
  parts: LanguageModelV4StreamPart[]
  /** What the stream, or the request, failed with. */
  error?: unknown
  /** The request's body. */
  body?: unknown
}

export const prompt: LanguageModelV4CallOptions['prompt'] = [
  { role: 'user', content: [{ type: 'text', text: 'What now?' }] },
]

export const url = 'http://127.0.0.1/v1'

export const responseHeaders = { 'content-type': 'text/event-stream' }

/** `createModel` gets the `fetch` that answers with the pieces. */
export async function hearPackage(
  pieces: readonly Uint8Array[],
  createModel: (answer: typeof fetch) => LanguageModelV4,
  options: Partial<LanguageModelV4CallOptions> = {},
): Promise<Heard> {
  const heard: Heard = { parts: [], body: undefined }
  const model = createModel((_url, init) => {
    heard.body = JSON.parse(init?.body as string)
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        for (const piece of pieces) if (piece.length > 0) controller.enqueue(piece)
        controller.close()
      },
    })
    return Promise.resolve(new Response(body, { headers: responseHeaders }))
  })
  try {
    const { stream } = await model.doStream({ prompt, ...options })
    const reader = stream.getReader()
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return heard
      heard.parts.push(value)
    }
  } catch (error) {
    return { ...heard, error }
  }
}

export function hearDecoder(
  pieces: readonly Uint8Array[],
  create: (emit: (part: LanguageModelV4StreamPart) => void) => StreamDecoder,
): Heard {
  const parts: LanguageModelV4StreamPart[] = []
  try {
    const decoder = create((part) => parts.push(part))
    for (const piece of pieces) decoder.push(piece)
    decoder.end()
    return { parts }
  } catch (error) {
    return { parts, error }
  }
}

/**
 * Values without undefined fields, with errors as objects and random ids numbered. If the stream failed, only the parts that the
 * package could deliver are compared: its stream drops what it had queued.
 */
export function createComparison(theirs: Heard, sent: string): (ours: Heard) => [unknown, unknown] {
  const their = plainOf(theirs, sent)
  return (ours) => {
    const parts = ours.error === undefined ? ours.parts : ours.parts.slice(0, theirs.parts.length)
    return [plainOf({ ...ours, parts }, sent), their]
  }
}

function plainOf({ parts, error }: Heard, sent: string): unknown {
  const invented = new Map<string, string>()
  const rename = (id: unknown) => {
    if (typeof id !== 'string' || !/^[0-9A-Za-z]{16}(-\d+)?$/.test(id) || sent.includes(id)) return id
    invented.set(id, invented.get(id) ?? `invented-${invented.size}`)
    return invented.get(id)
  }
  const renamed = parts.map((part) =>
    Object.fromEntries(
      Object.entries(part).map(([key, value]) => [key, key === 'id' || key === 'toolCallId' ? rename(value) : value]),
    ),
  )
  return plain({ parts: renamed, error })
}

function plain(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (value instanceof Date) return { date: value.getTime() }
  if (Array.isArray(value)) return value.map(plain)
  const fields = value instanceof Error ? { ...value, ...errorFields(value) } : value
  return Object.fromEntries(
    Object.entries(fields)
      .filter(([, field]) => field !== undefined)
      .map(([key, field]) => [key, plain(field)]),
  )
}

function errorFields({ name, message, cause }: Error): object {
  return { name, message, cause }
}

/** Frames of JSON texts, as servers send them. */
export function frames(lines: readonly string[], { events = false, done = false } = {}): string {
  const texts = lines.map((line) => {
    const type = events ? /"type":"(\w+)"/.exec(line)?.[1] : undefined
    return `${type === undefined ? '' : `event: ${type}\n`}data: ${line}\n\n`
  })
  return texts.join('') + (done ? 'data: [DONE]\n\n' : '')
}

export function piecesOf(bytes: Uint8Array, size: number): Uint8Array[] {
  const pieces: Uint8Array[] = []
  for (let at = 0; at < bytes.length; at += size) pieces.push(bytes.subarray(at, at + size))
  return pieces
}
