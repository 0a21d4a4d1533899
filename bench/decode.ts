/**
 * CPU of one delta: the AI SDK's packages and our readers read the same bytes, without sockets. `node bench/decode.ts [rounds]`.
 * Both hand every part to a function that counts it.
 */
import { createAnthropic } from '@ai-sdk/anthropic'
import { createGoogle } from '@ai-sdk/google'
import { createOpenAI } from '@ai-sdk/openai'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import type { LanguageModelV4, LanguageModelV4StreamPart } from '@ai-sdk/provider'
import { AnthropicReader } from '../src/models/decode/anthropic.ts'
import type { AnswerReader } from '../src/models/decode/answer-reader.ts'
import { ChatReader } from '../src/models/decode/chat.ts'
import { GoogleReader } from '../src/models/decode/google.ts'
import { ResponsesReader } from '../src/models/decode/responses.ts'
import { deltaText } from './deltas.ts'

const deltas = 500
const answers = 40
const rounds = Number(process.argv[2] ?? 7)

interface Protocol {
  name: string
  frames: string[]
  create(fetch: typeof globalThis.fetch): LanguageModelV4
  decode(emit: (part: LanguageModelV4StreamPart) => void): AnswerReader
}

const texts = Array.from({ length: deltas }, (_, i) => deltaText(i))
const base = { id: 'chatcmpl-bench', object: 'chat.completion.chunk', created: 1_700_000_000, model: 'bench' }
const data = (value: object) => `data: ${JSON.stringify(value)}\n\n`
const chat = (delta: object, finish: string | null = null, rest: object = {}) =>
  data({ ...base, choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }], ...rest })
const chatFrames = (rest: (i: number) => object = () => ({})) => [
  chat({ role: 'assistant', content: '' }),
  ...texts.map((content, i) => chat({ content }, null, rest(i))),
  chat({}, 'stop'),
  'data: [DONE]\n\n',
]
const event = (value: { type: string }) => `event: ${value.type}\n${data(value)}`
const index = 0
const anthropicFrames = [
  event({ type: 'message_start', message: { id: 'm', model: 'm', usage: { input_tokens: 1 } } } as { type: string }),
  event({ type: 'content_block_start', index, content_block: { type: 'text', text: '' } } as { type: string }),
  ...texts.map((text) =>
    event({ type: 'content_block_delta', index, delta: { type: 'text_delta', text } } as { type: string }),
  ),
  event({ type: 'content_block_stop', index } as { type: string }),
  event({ type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 1 } } as { type: string }),
  event({ type: 'message_stop' }),
]

const message = { type: 'message', id: 'msg_0123456789abcdef0123456789abcdef' }
const response = { id: 'r', created_at: 1_700_000_000, model: 'bench' }
const responsesFrames = [
  event({ type: 'response.created', sequence_number: 0, response } as { type: string }),
  event({ type: 'response.output_item.added', sequence_number: 1, output_index: 0, item: message } as { type: string }),
  ...texts.map((delta, i) =>
    event({
      type: 'response.output_text.delta',
      sequence_number: i + 2,
      item_id: message.id,
      output_index: 0,
      content_index: 0,
      delta,
      logprobs: [],
      obfuscation: 'x'.repeat(i % 12),
    } as { type: string }),
  ),
  event({ type: 'response.output_item.done', output_index: 0, item: message } as { type: string }),
  event({ type: 'response.completed', response: { usage: null } } as { type: string }),
]
const googleFrames = texts.map((text, i) =>
  data({
    candidates: [{ content: { parts: [{ text }], role: 'model' }, index: 0 }],
    usageMetadata: {
      promptTokenCount: 9,
      candidatesTokenCount: i,
      totalTokenCount: i + 9,
      promptTokensDetails: [{ modality: 'TEXT', tokenCount: 9 }],
    },
    modelVersion: 'bench',
    responseId: 'bH6LaZW8Fp_3nsEPqtaSwQ4',
  }),
)

const baseURL = 'http://127.0.0.1/v1'
const settings = { baseURL, apiKey: 'bench' }
const headers = new Headers()
const shared = { who: 'bench', warnings: [], generateId: () => 'id', provider: 'bench', call: { prompt: [] }, headers }
const compatible = {
  create: (fetch: typeof globalThis.fetch) => createOpenAICompatible({ ...settings, name: 'bench', fetch })('m'),
  decode: (emit: (part: LanguageModelV4StreamPart) => void) => new ChatReader({ ...shared, emit }),
}

const protocols: Protocol[] = [
  { name: 'openai-compatible', frames: chatFrames(), ...compatible },
  { name: 'padded chunks', frames: chatFrames((i) => ({ obfuscation: 'x'.repeat(i % 9) })), ...compatible },
  { name: 'every chunk differs (no shortcut)', frames: chatFrames((i) => ({ number: i })), ...compatible },
  {
    name: 'anthropic',
    frames: anthropicFrames,
    create: (fetch) => createAnthropic({ ...settings, fetch })('claude-sonnet-4-5'),
    decode: (emit) => new AnthropicReader({ ...shared, emit }),
  },
  {
    name: 'openai.responses',
    frames: responsesFrames,
    create: (fetch) => createOpenAI({ ...settings, fetch }).responses('gpt-5'),
    decode: (emit) => new ResponsesReader({ ...shared, emit }),
  },
  {
    name: 'google',
    frames: googleFrames,
    create: (fetch) => createGoogle({ ...settings, fetch })('gemini-3-pro-preview'),
    decode: (emit) => new GoogleReader({ ...shared, emit }),
  },
]

function piecesOf(frames: readonly string[], perPiece: number): Buffer[] {
  const pieces: Buffer[] = []
  for (let i = 0; i < frames.length; i += perPiece) pieces.push(Buffer.from(frames.slice(i, i + perPiece).join('')))
  return pieces
}

function createCounter() {
  let count = 0
  return {
    emit(part: LanguageModelV4StreamPart): void {
      if (part.type === 'text-delta' && part.delta !== '') count++
    },
    check(): void {
      if (count !== deltas) throw new Error(`${count} deltas came of ${deltas}.`)
    },
  }
}

async function byPackage({ create }: Protocol, pieces: readonly Uint8Array[]): Promise<void> {
  const { emit, check } = createCounter()
  const model = create(() => {
    let i = 0
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        const piece = pieces[i++]
        if (piece === undefined) controller.close()
        else controller.enqueue(piece)
      },
    })
    return Promise.resolve(new Response(body, { headers: { 'content-type': 'text/event-stream' } }))
  })
  const { stream } = await model.doStream({ prompt: [{ role: 'user', content: [{ type: 'text', text: 'go' }] }] })
  const reader = stream.getReader()
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return check()
    emit(value)
  }
}

function byReader({ decode }: Protocol, pieces: readonly Uint8Array[]): Promise<void> {
  const { emit, check } = createCounter()
  const decoder = decode(emit)
  for (const piece of pieces) decoder.push(piece)
  decoder.end()
  check()
  return Promise.resolve()
}

/** µs of CPU a delta, of the whole process. */
async function measure(read: () => Promise<void>): Promise<number> {
  const before = process.cpuUsage()
  for (let i = 0; i < answers; i++) await read()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / answers / deltas
}

function medianOf(numbers: readonly number[]): number {
  return [...numbers].sort((a, b) => a - b)[numbers.length >> 1]!
}

console.log(`µs of CPU a delta, answers of ${deltas} deltas, median of ${rounds} rounds`)
for (const protocol of protocols) {
  for (const perPiece of [1, 50]) {
    const pieces = piecesOf(protocol.frames, perPiece)
    const theirs: number[] = []
    const ours: number[] = []
    // In turn, so that both meet the same disturbances. The first round warms up.
    for (let round = 0; round <= rounds; round++) {
      const [their, our] = [
        await measure(() => byPackage(protocol, pieces)),
        await measure(() => byReader(protocol, pieces)),
      ]
      if (round > 0) theirs.push(their)
      if (round > 0) ours.push(our)
    }
    const [their, our] = [medianOf(theirs), medianOf(ours)]
    const ratio = (their / our).toFixed(0)
    const name = `${protocol.name}, ${perPiece} a piece`.padEnd(48)
    console.log(
      `${name} package ${their.toFixed(2).padStart(6)}  decoder ${our.toFixed(3).padStart(6)}  ${ratio} times`,
    )
  }
}
