/**
 * CPU per text delta, in process, the whole path: model → engine → log (SQLite and memory) → UI frames, beside the AI SDK's
 * `streamText` → UI message stream of the same deltas. Rounds are interleaved; only the ratios within one run mean much.
 *
 *     node bench/in-process.ts [deltas] [streams…]
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { LanguageModelV4, LanguageModelV4StreamPart } from '@ai-sdk/provider'
import { createUIMessageStreamResponse, streamText, toUIMessageStream } from 'ai'
import { createRuntime } from '../src/library/create-runtime.ts'
import type { Store } from '../src/part/log.ts'
import { memoryStore } from '../src/record/memory-store.ts'
import { sqliteStore } from '../src/record/sqlite-store.ts'
import { createHandler } from '../src/server/handler.ts'

const deltas = Number(process.argv[2] ?? 4000)
const streams = process.argv.slice(3).map(Number)
const rounds = 5

function model(): LanguageModelV4 {
  return {
    specificationVersion: 'v4',
    provider: 'bench',
    modelId: 'bench',
    supportedUrls: {},
    doGenerate: () => Promise.reject(new Error('streams only')),
    async doStream() {
      let n = -2
      return {
        stream: new ReadableStream<LanguageModelV4StreamPart>({
          pull(controller) {
            n++
            if (n === -1) controller.enqueue({ type: 'stream-start', warnings: [] })
            else if (n === 0) controller.enqueue({ type: 'text-start', id: 't' })
            else if (n <= deltas) controller.enqueue({ type: 'text-delta', id: 't', delta: 'word ' })
            else if (n === deltas + 1) controller.enqueue({ type: 'text-end', id: 't' })
            else {
              controller.enqueue({
                type: 'finish',
                finishReason: { unified: 'stop', raw: 'stop' },
                usage: {
                  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
                  outputTokens: { total: deltas, text: deltas, reasoning: 0 },
                },
              })
              controller.close()
            }
          },
        }),
      }
    },
  }
}

const agent = `
workflow:
  - id: answer
    type: llm
    config: { model: "bench:m", stream: true }
`
const messages = [{ role: 'user' as const, content: 'go' }]

async function drain(response: Response): Promise<void> {
  let frames = 0
  const decoder = new TextDecoder()
  for await (const chunk of response.body!) frames += decoder.decode(chunk).split('text-delta').length - 1
  if (frames < deltas) throw new Error(`incomplete: ${frames} of ${deltas} deltas`)
}

function ours(store: Store) {
  const runtime = createRuntime({
    agents: { a: agent },
    store,
    models: { providers: { bench: model } },
    environment: {},
  })
  const handler = createHandler({ runtime })
  return async () => {
    const body = JSON.stringify({ agentId: 'a', messages })
    await drain(
      await handler(
        new Request('http://bench/api/chat', { method: 'POST', body, headers: { 'content-type': 'application/json' } }),
      ),
    )
  }
}

async function sdk(): Promise<void> {
  const result = streamText({ model: model(), messages })
  await drain(createUIMessageStreamResponse({ stream: toUIMessageStream({ stream: result.stream }) }))
}

const dir = mkdtempSync(join(tmpdir(), 'millrace-bench-'))
const disk = sqliteStore(join(dir, 'bench.db'))
const subjects: [string, () => Promise<void>][] = [
  ['AI SDK streamText → UI', sdk],
  ['Millrace, memory', ours(memoryStore())],
  ['Millrace, SQLite', ours(disk)],
]

for (const count of streams.length > 0 ? streams : [1, 50, 200]) {
  const samples = new Map(subjects.map(([name]) => [name, [] as number[]]))
  for (let round = 0; round <= rounds; round++) {
    for (const [name, subject] of subjects) {
      globalThis.gc?.()
      const before = process.cpuUsage()
      await Promise.all(Array.from({ length: count }, subject))
      const { user, system } = process.cpuUsage(before)
      if (round > 0) samples.get(name)!.push((user + system) / (count * deltas))
    }
  }
  const medians = subjects.map(([name]) => samples.get(name)!.toSorted((a, b) => a - b)[Math.floor(rounds / 2)]!)
  console.log(`${count} stream${count === 1 ? '' : 's'}, ${deltas} deltas each: CPU µs per delta, ratio to the AI SDK`)
  for (const [i, [name]] of subjects.entries()) {
    console.log(`  ${name.padEnd(24)} ${medians[i]!.toFixed(2).padStart(8)}  ${(medians[i]! / medians[0]!).toFixed(3)}`)
  }
}
await disk.close()
rmSync(dir, { recursive: true, force: true })
