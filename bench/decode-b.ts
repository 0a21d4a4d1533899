import { createGoogle } from '@ai-sdk/google'
import { createOpenAI } from '@ai-sdk/openai'
import type { LanguageModelV4, LanguageModelV4StreamPart } from '@ai-sdk/provider'
import type { StreamDecoder } from '../src/models/decode/decoder.ts'
import { createGoogleDecoder } from '../src/models/decode/google/decoder.ts'
import { createResponsesDecoder } from '../src/models/decode/responses/decoder.ts'
import { deltaText } from './deltas.ts'

const deltas = 500
const answers = 40
const rounds = Number(process.argv[2] ?? 7)

interface Protocol {
  name: string
  frames: string[]
  create(fetch: typeof globalThis.fetch): LanguageModelV4
  decode(emit: (part: LanguageModelV4StreamPart) => void): StreamDecoder
}

const texts = Array.from({ length: deltas }, (_, i) => deltaText(i))
const data = (value: object) => `data: ${JSON.stringify(value)}\n\n`
const event = (value: { type: string; [k: string]: unknown }) => `event: ${value.type}\n${data(value)}`
const responsesFrames = (extra: (i: number) => object) => [
  event({ type: 'response.created', sequence_number: 0, response: { id: 'r', created_at: 1_700_000_000, model: 'm' } }),
  event({ type: 'response.in_progress', sequence_number: 1, response: { id: 'r', created_at: 1_700_000_000, model: 'm' } }),
  event({ type: 'response.output_item.added', sequence_number: 2, output_index: 0, item: { type: 'message', id: 'msg', status: 'in_progress', content: [], role: 'assistant' } }),
  ...texts.map((delta, i) => event({ type: 'response.output_text.delta', sequence_number: 3 + i, item_id: 'msg_0123456789abcdef0123456789abcdef', output_index: 0, content_index: 0, delta, logprobs: [], obfuscation: 'xXyYzZ012345'.slice(i % 12), ...extra(i) })),
  event({ type: 'response.output_item.done', sequence_number: 600, output_index: 0, item: { type: 'message', id: 'msg', status: 'completed', content: [], role: 'assistant' } }),
  event({ type: 'response.completed', sequence_number: 601, response: { id: 'r', usage: { input_tokens: 1, output_tokens: 500 } } }),
]
const googleFrames = texts.map((text, i) =>
  data({
    candidates: [{ content: { parts: [{ text }], role: 'model' }, index: 0, ...(i === deltas - 1 && { finishReason: 'STOP' }) }],
    usageMetadata: { promptTokenCount: 9, candidatesTokenCount: i, totalTokenCount: i + 9, promptTokensDetails: [{ modality: 'TEXT', tokenCount: 9 }], thoughtsTokenCount: 185 },
    modelVersion: 'gemini-3-pro-preview',
    responseId: 'bH6LaZW8Fp_3nsEPqtaSwQ4',
  }),
)
const baseURL = 'http://127.0.0.1/v1'
const settings = { baseURL, apiKey: 'bench' }
const request = { url: baseURL, body: {} }
const shared = { who: 'bench', warnings: [], request, call: { prompt: [] } }
const responses = {
  create: (fetch: typeof globalThis.fetch) => createOpenAI({ ...settings, fetch }).responses('gpt-5'),
  decode: (emit: (part: LanguageModelV4StreamPart) => void) => createResponsesDecoder({ ...shared, emit, provider: 'openai.responses' }),
}
const protocols: Protocol[] = [
  { name: 'openai.responses', frames: responsesFrames(() => ({})), ...responses },
  { name: 'openai.responses, every chunk differs', frames: responsesFrames((i) => ({ number: i })), ...responses },
  {
    name: 'google',
    frames: googleFrames,
    create: (fetch) => createGoogle({ ...settings, fetch })('gemini-3-pro-preview'),
    decode: (emit) => createGoogleDecoder({ ...shared, emit, provider: 'google.generative-ai' }),
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
function byDecoder({ decode }: Protocol, pieces: readonly Uint8Array[]): Promise<void> {
  const { emit, check } = createCounter()
  const decoder = decode(emit)
  for (const piece of pieces) decoder.push(piece)
  decoder.end()
  check()
  return Promise.resolve()
}
async function measure(read: () => Promise<void>): Promise<number> {
  const before = process.cpuUsage()
  for (let i = 0; i < answers; i++) await read()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / answers / deltas
}
const medianOf = (numbers: readonly number[]) => [...numbers].sort((a, b) => a - b)[numbers.length >> 1]!
for (const protocol of protocols) {
  for (const perPiece of [1, 50]) {
    const pieces = piecesOf(protocol.frames, perPiece)
    const theirs: number[] = []
    const ours: number[] = []
    for (let round = 0; round <= rounds; round++) {
      const [their, our] = [await measure(() => byPackage(protocol, pieces)), await measure(() => byDecoder(protocol, pieces))]
      if (round > 0) theirs.push(their)
      if (round > 0) ours.push(our)
    }
    const [their, our] = [medianOf(theirs), medianOf(ours)]
    console.log(`${protocol.name}, ${perPiece} a piece`.padEnd(48) + ` package ${their.toFixed(2)}  decoder ${our.toFixed(3)}  ${(their / our).toFixed(0)} times`)
  }
}
