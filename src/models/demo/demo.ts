/**
 * `demo:assistant`: an offline model for trying every feature without an API key. It follows fixed rules (`plan.ts`), says
 * that it is a demo, and streams at a readable pace.
 */
import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4Prompt,
  LanguageModelV4StreamPart,
} from '@ai-sdk/provider'
import { planAnswer } from './plan.ts'
import { toGenerated } from '../generated.ts'

type Part = LanguageModelV4StreamPart
type Finish = Extract<Part, { type: 'finish' }>

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

function partsOf(options: LanguageModelV4CallOptions): Part[] {
  const plan = planAnswer(options)
  const told = JSON.stringify(options.prompt)
  const toldHash = hash(told)
  const parts: Part[] = [
    { type: 'stream-start', warnings: [] },
    { type: 'response-metadata', id: `demo-${toldHash}`, modelId: 'assistant' },
  ]
  if (plan.reasoning !== undefined) {
    const id = 'reasoning-1'
    parts.push({ type: 'reasoning-start', id })
    for (const delta of wordsOf(plan.reasoning)) parts.push({ type: 'reasoning-delta', id, delta })
    // Like a real provider's signature: the client must send it back unchanged with the reasoning.
    parts.push({ type: 'reasoning-end', id, providerMetadata: { demo: { signature: hash(plan.reasoning) } } })
  }
  const { text, isCut } = cutText(plan.text, options)
  if (text !== '') {
    const id = 'text-1'
    parts.push({ type: 'text-start', id })
    for (const delta of wordsOf(text)) parts.push({ type: 'text-delta', id, delta })
    parts.push({ type: 'text-end', id })
  }
  const before = callsIn(options.prompt)
  let output = (plan.reasoning ?? '') + text
  for (const [i, { toolName, input }] of (isCut ? [] : plan.calls).entries()) {
    const json = JSON.stringify(input)
    // Numbered from the conversation's first call. The hash keeps ids unique when the history has been shortened.
    const id = `call_${before + i + 1}_${hash(toldHash + json)}`
    output += json
    parts.push({ type: 'tool-input-start', id, toolName })
    for (const delta of json.match(/.{1,12}/gsu) ?? []) parts.push({ type: 'tool-input-delta', id, delta })
    parts.push({ type: 'tool-input-end', id }, { type: 'tool-call', toolCallId: id, toolName, input: json })
  }
  const reason = isCut ? 'length' : plan.calls.length > 0 ? 'tool-calls' : 'stop'
  const usage = usageOf(told, output, plan.reasoning)
  parts.push({ type: 'finish', finishReason: { unified: reason, raw: reason }, usage })
  return parts
}

/** Counts a word as a token. A stop sequence ends the text normally. */
function cutText(text: string, { maxOutputTokens, stopSequences = [] }: LanguageModelV4CallOptions) {
  const stops = stopSequences.map((stop) => text.indexOf(stop)).filter((at) => at >= 0)
  const kept = stops.length > 0 ? text.slice(0, Math.min(...stops)) : text
  const words = wordsOf(kept)
  const isCut = maxOutputTokens !== undefined && words.length > maxOutputTokens
  return { text: isCut ? words.slice(0, maxOutputTokens).join('') : kept, isCut }
}

function wordsOf(text: string): string[] {
  return text.match(/\s*\S+\s*$|\s*\S+/g) ?? []
}

function callsIn(prompt: LanguageModelV4Prompt): number {
  return prompt
    .flatMap(({ role, content }) => (role === 'assistant' ? content : []))
    .filter(({ type }) => type === 'tool-call').length
}

/** Estimated at four characters per token. */
function usageOf(input: string, output: string, reasoning = ''): Finish['usage'] {
  const tokens = (text: number) => Math.ceil(text / 4)
  const total = tokens(output.length)
  const thought = Math.min(total, tokens(reasoning.length))
  return {
    inputTokens: { total: tokens(input.length), noCache: tokens(input.length), cacheRead: 0, cacheWrite: 0 },
    outputTokens: { total, text: total - thought, reasoning: thought },
  }
}

function paced(parts: Part[], delayMs: number, signal: AbortSignal | undefined): ReadableStream<Part> {
  let at = 0
  let wake = () => {}
  let stop = () => {}
  const stream = new ReadableStream<Part>(
    {
      start(controller) {
        stop = () => {
          controller.error(signal?.reason)
          wake()
        }
        if (signal?.aborted) stop()
        else signal?.addEventListener('abort', stop, { once: true })
      },
      async pull(controller) {
        const part = parts[at++]!
        if (delayMs > 0 && 'delta' in part) {
          await new Promise<void>((resolve) => {
            const timer = setTimeout(resolve, delayMs)
            wake = () => {
              clearTimeout(timer)
              resolve()
            }
          })
        }
        if (signal?.aborted || at > parts.length) return
        controller.enqueue(part)
        if (at === parts.length) {
          signal?.removeEventListener('abort', stop)
          controller.close()
        }
      },
      cancel() {
        at = parts.length + 1
        signal?.removeEventListener('abort', stop)
        wake()
      },
    },
    // No read-ahead: parts are produced on demand.
    { highWaterMark: 0 },
  )
  return stream
}

/** FNV-1a as 8 hex digits. */
function hash(text: string): string {
  let result = 0x811c9dc5
  for (let i = 0; i < text.length; i++) result = Math.imul(result ^ text.charCodeAt(i), 0x01000193)
  return (result >>> 0).toString(16).padStart(8, '0')
}
