/**
 * `demo:assistant`: an offline model for trying every feature without an API key. It follows fixed rules (`answer.ts`), says
 * that it is a demo, and streams at a readable pace.
 */
import type { LanguageModelV4, LanguageModelV4CallOptions, LanguageModelV4StreamPart } from '@ai-sdk/provider'
import { pause } from '../../async/pause.ts'
import { toGenerated } from '../generated.ts'
import { answerTo } from './answer.ts'

type StreamPart = LanguageModelV4StreamPart

/** `delayMs`: pause before each delta; with 0 there are no timers. Default 30. */
export function createDemoModel({ delayMs = 30 }: { delayMs?: number } = {}): LanguageModelV4 {
  return {
    specificationVersion: 'v4',
    provider: 'demo',
    modelId: 'assistant',
    // The model ignores files, so none needs to be downloaded.
    supportedUrls: { '*/*': [/./] },
    doStream: async (options) => ({ stream: paced(partsOf(options), delayMs, options.abortSignal) }),
    doGenerate: async (options) => toGenerated(partsOf(options))!,
  }
}

function partsOf(options: LanguageModelV4CallOptions): StreamPart[] {
  const { reasoning = '', ...answer } = answerTo(options)
  const { text, isCut } = cut(answer.text, options)
  const calls = isCut ? [] : answer.calls.map(({ toolName, input }) => ({ toolName, input: JSON.stringify(input) }))
  const told = JSON.stringify(options.prompt)
  const parts: StreamPart[] = [
    { type: 'stream-start', warnings: [] },
    { type: 'response-metadata', id: `demo-${hash(told)}`, modelId: 'assistant' },
  ]
  for (const [type, said] of [['reasoning', reasoning] as const, ['text', text] as const]) {
    if (said === '') continue
    const id = `${type}-1`
    // Like a real provider's signature: the client must send it back unchanged with the reasoning.
    const signed = type === 'reasoning' ? { providerMetadata: { demo: { signature: hash(said) } } } : {}
    const deltas = wordsOf(said).map((delta): StreamPart => ({ type: `${type}-delta`, id, delta }))
    parts.push({ type: `${type}-start`, id }, ...deltas, { type: `${type}-end`, id, ...signed })
  }
  for (const [i, { toolName, input }] of calls.entries()) {
    const id = `call_${hash(`${told}${i}`)}`
    parts.push({ type: 'tool-input-start', id, toolName })
    for (const delta of input.match(/.{1,12}/gsu) ?? []) parts.push({ type: 'tool-input-delta', id, delta })
    parts.push({ type: 'tool-input-end', id }, { type: 'tool-call', toolCallId: id, toolName, input })
  }
  const reason = isCut ? 'length' : calls.length > 0 ? 'tool-calls' : 'stop'
  // Estimated at four characters per token.
  const tokens = (said: string) => Math.ceil(said.length / 4)
  const total = tokens(reasoning + text + calls.map(({ input }) => input).join(''))
  const usage = {
    inputTokens: { total: tokens(told), noCache: tokens(told), cacheRead: 0, cacheWrite: 0 },
    outputTokens: { total, text: total - tokens(reasoning), reasoning: tokens(reasoning) },
  }
  parts.push({ type: 'finish', finishReason: { unified: reason, raw: reason }, usage })
  return parts
}

/** Counts a word as a token. A stop sequence ends the text normally. */
function cut(text: string, { maxOutputTokens = Infinity, stopSequences = [] }: LanguageModelV4CallOptions) {
  const ends = stopSequences.map((stop) => text.indexOf(stop)).filter((at) => at >= 0)
  const words = wordsOf(text.slice(0, Math.min(text.length, ...ends)))
  return { text: words.slice(0, maxOutputTokens).join(''), isCut: words.length > maxOutputTokens }
}

function wordsOf(text: string): string[] {
  return text.match(/\s*\S+\s*$|\s*\S+/g) ?? []
}

function paced(parts: StreamPart[], delayMs: number, signal: AbortSignal | undefined): ReadableStream<StreamPart> {
  const rest = parts.values()
  const left = new AbortController()
  let stop = () => {}
  return new ReadableStream<StreamPart>(
    {
      start(controller) {
        stop = () => {
          controller.error(signal?.reason)
          left.abort()
        }
        if (signal?.aborted) stop()
        else signal?.addEventListener('abort', stop, { once: true })
      },
      async pull(controller) {
        const { value: part } = rest.next()
        if (part === undefined) return
        if (delayMs > 0 && 'delta' in part) await pause(delayMs, left.signal)
        if (left.signal.aborted) return
        controller.enqueue(part)
        if (part.type !== 'finish') return
        signal?.removeEventListener('abort', stop)
        controller.close()
      },
      cancel() {
        signal?.removeEventListener('abort', stop)
        left.abort()
      },
    },
    // No read-ahead: parts are produced on demand.
    { highWaterMark: 0 },
  )
}

/** FNV-1a as 8 hex digits. */
function hash(text: string): string {
  let result = 0x811c9dc5
  for (let i = 0; i < text.length; i++) result = Math.imul(result ^ text.charCodeAt(i), 0x01000193)
  return (result >>> 0).toString(16).padStart(8, '0')
}
