/**
 * CPU per delta of the provider packages: the AI SDK's packages and a hand-written reader read the same answer in the OpenAI chat
 * protocol, without sockets (`fetch` returns a byte stream at once). Run with `npm run bench -- provider`.
 */
import { createOpenAI } from '@ai-sdk/openai'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import type { LanguageModelV4 } from '@ai-sdk/provider'
import { answerCalls } from './calls.ts'
import { deltaText } from './deltas.ts'
import type { Options, Result, ResultRow } from './scenario.ts'

/** The bytes of one answer: one delta per frame, `perChunk` frames per network chunk. */
function answerOf(deltas: number, perChunk: number): Uint8Array[] {
  const base = { id: 'chatcmpl-bench', object: 'chat.completion.chunk', created: 1_700_000_000, model: 'bench' }
  const frame = (delta: object, finish: string | null = null) =>
    `data: ${JSON.stringify({ ...base, choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }] })}\n\n`
  const frames = [frame({ role: 'assistant', content: '' })]
  for (let i = 0; i < deltas; i++) frames.push(frame({ content: deltaText(i) }))
  frames.push(frame({}, 'stop'), 'data: [DONE]\n\n')
  const pieces: Uint8Array[] = []
  for (let i = 0; i < frames.length; i += perChunk) {
    pieces.push(new TextEncoder().encode(frames.slice(i, i + perChunk).join('')))
  }
  return pieces
}

function bodyOf(pieces: readonly Uint8Array[]): ReadableStream<Uint8Array> {
  let i = 0
  return new ReadableStream({
    pull(controller) {
      const piece = pieces[i++]
      if (piece === undefined) controller.close()
      else controller.enqueue(piece)
    },
  })
}

interface Subject {
  name: string
  title: string
  /** Reads one answer and returns the number of its deltas. */
  read(pieces: readonly Uint8Array[]): Promise<number>
}

function byPackage(name: string, title: string, create: (fetch: typeof globalThis.fetch) => LanguageModelV4): Subject {
  return {
    name,
    title,
    async read(pieces) {
      const headers = { 'content-type': 'text/event-stream' }
      const model = create(() => Promise.resolve(new Response(bodyOf(pieces), { headers })))
      const prompt = [{ role: 'user' as const, content: [{ type: 'text' as const, text: 'go' }] }]
      const { stream } = await model.doStream({ prompt })
      const reader = stream.getReader()
      let count = 0
      for (;;) {
        const { done, value } = await reader.read()
        if (done) return count
        if (value.type === 'text-delta' && value.delta !== '') count++
      }
    },
  }
}

interface Chunk {
  choices: { delta: { content?: string } }[]
}

/** The minimum for any implementation: split lines, parse JSON, check the shape, emit one part per delta. */
const byHand: Subject = {
  name: 'hand',
  title: 'by hand: lines, JSON.parse',
  async read(pieces) {
    const decoder = new TextDecoder()
    const reader = bodyOf(pieces).getReader()
    let rest = ''
    let count = 0
    const onPart = (part: { type: string; delta: string }) => void (part.type === 'text-delta' && count++)
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return count
      const lines = (rest + decoder.decode(value, { stream: true })).split('\n')
      rest = lines.pop()!
      for (const line of lines) {
        if (!line.startsWith('data: {')) continue
        const content = (JSON.parse(line.slice(6)) as Chunk).choices[0]?.delta.content
        if (typeof content === 'string' && content !== '') onPart({ type: 'text-delta', delta: content })
      }
    }
  },
}

const subjects: Subject[] = [
  byPackage('openai-compatible', '@ai-sdk/openai-compatible', (fetch) =>
    createOpenAICompatible({ name: 'bench', baseURL: 'http://bench', fetch })('bench'),
  ),
  byPackage('openai-chat', '@ai-sdk/openai, chat', (fetch) => createOpenAI({ apiKey: 'bench', fetch }).chat('bench')),
  byHand,
]

async function measure({ rounds = 5, seconds, deltas }: Options): Promise<Result[]> {
  const rows: ResultRow[] = subjects.map(({ name, title }) => ({ name, title, samples: [] }))
  const patterns = [1, 50].map((perChunk) => ({ key: `cpu${perChunk}`, pieces: answerOf(deltas, perChunk) }))
  for (let round = 0; round <= rounds; round++) {
    for (const [i, { read }] of subjects.entries()) {
      const sample: Record<string, number> = {}
      for (const { key, pieces } of patterns) {
        const until = performance.now() + (seconds * 1000) / 4
        const before = process.cpuUsage()
        let answers = 0
        do {
          const count = await read(pieces)
          if (count !== deltas) throw new Error(`incomplete: ${count} of ${deltas} deltas`)
          answers++
        } while (performance.now() < until)
        const { user, system } = process.cpuUsage(before)
        sample[key] = (user + system) / (answers * deltas)
      }
      if (round > 0) rows[i]!.samples.push(sample)
    }
  }
  return [
    {
      scenario: 'provider',
      title: `CPU µs per delta to read an answer in the OpenAI chat protocol; medians of ${rounds} rounds`,
      reference: 'openai-compatible',
      columns: [
        { key: 'cpu1', title: '1 delta per chunk', digits: 2, ratio: true },
        { key: 'cpu50', title: '50 deltas per chunk', digits: 2, ratio: true },
      ],
      rows,
      notes: [],
    },
  ]
}

answerCalls({ measure })
