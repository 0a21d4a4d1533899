/** A model for in-process measurements: it emits all deltas at once, or one in each event loop turn. */
import type { LanguageModelV4, LanguageModelV4StreamPart } from '@ai-sdk/provider'
import { deltaText } from './deltas.ts'

export type Pattern = 'burst' | 'turn'

type Part = LanguageModelV4StreamPart

export function createModel(deltas: number, pattern: Pattern): LanguageModelV4 {
  const texts = Array.from({ length: deltas }, (_, i) => deltaText(i))
  return {
    specificationVersion: 'v4',
    provider: 'bench',
    modelId: 'bench',
    supportedUrls: {},
    doGenerate: () => Promise.reject(new Error('streams only')),
    async doStream() {
      return { stream: pattern === 'burst' ? pulled(partsOf(texts)) : pushed(partsOf(texts)) }
    },
  }
}

function* partsOf(texts: string[]): Generator<Part> {
  yield { type: 'stream-start', warnings: [] }
  yield { type: 'text-start', id: 't' }
  for (const delta of texts) yield { type: 'text-delta', id: 't', delta }
  yield { type: 'text-end', id: 't' }
  yield {
    type: 'finish',
    finishReason: { unified: 'stop', raw: 'stop' },
    usage: {
      inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
      outputTokens: { total: texts.length, text: texts.length, reasoning: 0 },
    },
  }
}

function pulled(parts: Iterator<Part>): ReadableStream<Part> {
  return new ReadableStream({
    pull(controller) {
      const { done, value } = parts.next()
      if (done) controller.close()
      else controller.enqueue(value)
    },
  })
}

/** Streams that get one part in each turn. */
const speaking = new Set<{ parts: Iterator<Part>; controller: ReadableStreamDefaultController<Part> }>()

function pushed(parts: Iterator<Part>): ReadableStream<Part> {
  return new ReadableStream({
    start(controller) {
      if (speaking.size === 0) setImmediate(turn)
      speaking.add({ parts, controller })
    },
  })
}

function turn(): void {
  for (const speaker of speaking) {
    const { done, value } = speaker.parts.next()
    if (!done) speaker.controller.enqueue(value)
    else {
      speaker.controller.close()
      speaking.delete(speaker)
    }
  }
  if (speaking.size > 0) setImmediate(turn)
}
