/**
 * `demo:assistant`: an offline model for trying every feature without an API key. It follows fixed rules (`answer.ts`), says
 * that it is a demo, and streams at a readable pace.
 */
import type { LanguageModelV4, LanguageModelV4CallOptions, LanguageModelV4StreamPart } from '@ai-sdk/provider'
import { anySignal } from '../../async/any-signal.ts'
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
  const { maxOutputTokens = Infinity, stopSequences = [] } = options
  const { reasoning = '', ...answer } = answerTo(options)
  // A word counts as a token. A stop sequence ends the text normally.
  const ends = stopSequences.map((stop) => answer.text.indexOf(stop)).filter((at) => at >= 0)
  const words = wordsOf(answer.text.slice(0, Math.min(answer.text.length, ...ends)))
  const isCut = words.length > maxOutputTokens
  const calls = isCut ? [] : answer.calls.map(({ toolName, input }) => ({ toolName, input: JSON.stringify(input) }))
  const prompt = JSON.stringify(options.prompt)
  const parts: StreamPart[] = [
    { type: 'stream-start', warnings: [] },
    { type: 'response-metadata', id: `demo-${hash(prompt)}`, modelId: 'assistant' },
  ]
  function addBlock(type: 'reasoning' | 'text', deltas: string[], end: object): void {
    const id = `${type}-1`
    const each = deltas.map((delta): StreamPart => ({ type: `${type}-delta`, id, delta }))
    if (deltas.length > 0) parts.push({ type: `${type}-start`, id }, ...each, { type: `${type}-end`, id, ...end })
  }
  // Like a real provider's signature: the client must send it back unchanged with the reasoning.
  addBlock('reasoning', wordsOf(reasoning), { providerMetadata: { demo: { signature: hash(reasoning) } } })
  addBlock('text', words.slice(0, maxOutputTokens), {})
  for (const [i, { toolName, input }] of calls.entries()) {
    const id = `call_${hash(`${prompt}${i}`)}`
    const deltas = input.match(/.{1,12}/gsu)!.map((delta): StreamPart => ({ type: 'tool-input-delta', id, delta }))
    parts.push({ type: 'tool-input-start', id, toolName }, ...deltas, { type: 'tool-input-end', id })
    parts.push({ type: 'tool-call', toolCallId: id, toolName, input })
  }
  const reason = isCut ? 'length' : calls.length > 0 ? 'tool-calls' : 'stop'
  // Estimated at four characters per token.
  const tokens = (...texts: string[]) => Math.ceil(texts.join('').length / 4)
  const total = tokens(reasoning, ...words.slice(0, maxOutputTokens), ...calls.map(({ input }) => input))
  const usage = {
    inputTokens: { total: tokens(prompt), noCache: tokens(prompt), cacheRead: 0, cacheWrite: 0 },
    outputTokens: { total, text: total - tokens(reasoning), reasoning: tokens(reasoning) },
  }
  return [...parts, { type: 'finish', finishReason: { unified: reason, raw: reason }, usage }]
}

function wordsOf(text: string): string[] {
  return text.match(/\s*\S+\s*$|\s*\S+/g) ?? []
}

function paced(parts: StreamPart[], delayMs: number, signal?: AbortSignal): ReadableStream<StreamPart> {
  const rest = parts.values()
  const left = new AbortController()
  const ended = anySignal([left.signal, ...(signal ? [signal] : [])])
  return new ReadableStream<StreamPart>(
    {
      async pull(controller) {
        const { value: part } = rest.next()
        if (delayMs > 0 && part !== undefined && 'delta' in part) await pause(delayMs, ended)
        if (left.signal.aborted) return
        if (signal?.aborted) controller.error(signal.reason)
        else if (part === undefined) controller.close()
        else controller.enqueue(part)
      },
      cancel: () => left.abort(),
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
