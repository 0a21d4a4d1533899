/** The steps of the agents that the conformance suite of MCP calls: each does one thing that it wants to see. */
import type { PrimitiveHandler } from '../../../src/engine/registry.ts'

const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const silence = 'UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAAAAA=='
const base64 = (text: string) => Buffer.from(text).toString('base64')

const fixtures = new Map([
  ['image', { mediaType: 'image/png', data: pixel }],
  ['audio', { mediaType: 'audio/wav', data: silence }],
  ['text', { mediaType: 'text/plain', data: base64('This is the content of the static text resource.') }],
  ['json', { mediaType: 'application/json', data: base64('{"test":"data","value":123}') }],
])

function waited(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms)
    signal.addEventListener('abort', () => {
      clearTimeout(timer)
      reject(signal.reason as Error)
    })
  })
}

interface Config {
  text: string
  texts: string[]
  files: string[]
  ms: number
  seconds: number
  reason?: string
  message: string
  schema: Record<string, unknown>
}

async function* textParts(texts: readonly string[], ms = 0, signal?: AbortSignal) {
  yield { type: 'text-start', id: '0' }
  for (const delta of texts) {
    yield { type: 'text-delta', id: '0', delta }
    if (signal !== undefined) await waited(ms, signal)
  }
  yield { type: 'text-end', id: '0' }
}

async function* fileParts({ text, files }: Config) {
  if (text !== '') yield* textParts([text])
  for (const name of files) yield { type: 'file', ...fixtures.get(name)! }
}

export const steps: Record<string, PrimitiveHandler> = {
  say: ({ text }: Config) => new Response(text),
  // An iterable is the answer.
  files: (config: Config) => fileParts(config),
  slowly: ({ texts, ms }: Config, { signal }) => textParts(texts, ms, signal),
  fail({ text }: Config) {
    throw Object.assign(new Error(text))
  },
  async wait({ seconds }: Config, { signal }) {
    await waited(seconds * 1000, signal)
    return `Waited for ${seconds} s.`
  },
  async ask({ reason, message, schema }: Config, context) {
    const answer = await context.request({ message, schema, ...(reason !== undefined && { reason }) })
    return `Answer: ${JSON.stringify(answer)}`
  },
}
