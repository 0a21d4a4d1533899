/** The steps of the agents that the conformance suite of MCP calls: each does one thing that it wants to see. */
import type { PrimitiveHandler } from '../../../src/engine/registry.ts'
import type { LanguageModel } from '../../../src/models/language-model.ts'
import { createScriptedModel, delay, finish, text, type ScriptStep } from '../../../src/models/scripted.ts'

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
  seconds: number
  reason?: string
  message: string
  schema: Record<string, unknown>
}

const file = (name: string): ScriptStep => {
  const { mediaType, data } = fixtures.get(name)!
  return { type: 'file', mediaType, data: { type: 'data', data } }
}
const always = (...reply: ScriptStep[]) => createScriptedModel(() => [...reply, finish()])

/** Models with one answer each. */
export const scripts: Record<string, LanguageModel> = {
  image: always(file('image')),
  audio: always(file('audio')),
  text: always(file('text')),
  mixed: always(text('Multiple content types test:'), file('image'), file('json')),
  files: always(text('Here are the files.'), file('text'), file('image')),
  slowly: always(...['One ', 'two ', 'three ', 'four.'].flatMap((word) => [text(word), delay(300)])),
}

export const steps: Record<string, PrimitiveHandler> = {
  say: ({ text }: Config) => new Response(text),
  fail({ text }: Config) {
    throw new Error(text)
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
