/**
 * Two tenants of one server: how late is the first delta of one when the other sends a hundred times as much, so that `limits.activeRuns` of the agent
 * is always reached. Run with `npm run bench -- fairness`.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { LanguageModelV4, LanguageModelV4StreamPart } from '@ai-sdk/provider'
import { MillraceError } from '../src/part/error.ts'
import { createRuntime } from '../src/project/create-runtime.ts'
import type { Runtime } from '../src/runtime/runtime.ts'
import { sqliteStore } from '../src/store/sqlite/store.ts'
import { answerCalls } from './calls.ts'
import type { Options, Result, ResultRow } from './scenario.ts'
import { median } from './schedule.ts'

const places = 20
const loud = 100
/** ms of the model until its first delta, and between two. */
const [first, gap, deltas] = [40, 20, 10]

const agent = `limits: { activeRuns: ${places} }
workflow: [{ id: answer, type: llm, config: { model: "bench:m", stream: true } }]`

function createModel(): LanguageModelV4 {
  async function* parts(): AsyncGenerator<LanguageModelV4StreamPart> {
    yield { type: 'stream-start', warnings: [] }
    yield { type: 'text-start', id: 't' }
    for (let i = 0; i < deltas; i++) {
      await sleep(i === 0 ? first : gap)
      yield { type: 'text-delta', id: 't', delta: `word ${i} ` }
    }
    yield { type: 'text-end', id: 't' }
    const inputTokens = { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 }
    const outputTokens = { total: deltas, text: deltas, reasoning: 0 }
    yield { type: 'finish', finishReason: { unified: 'stop', raw: 'stop' }, usage: { inputTokens, outputTokens } }
  }
  return {
    specificationVersion: 'v4',
    provider: 'bench',
    modelId: 'bench',
    supportedUrls: {},
    doGenerate: () => Promise.reject(new Error('streams only')),
    async doStream() {
      return {
        stream: new ReadableStream({
          async start(controller) {
            for await (const part of parts()) controller.enqueue(part)
            controller.close()
          },
        }),
      }
    },
  }
}

const input = { messages: [{ role: 'user', content: 'go' }] }

/** ms from the start to the first delta. Reads the run to its end. */
async function ask(runtime: Runtime, tenant: string, id: string): Promise<number> {
  const began = performance.now()
  const run = await runtime.start('a', input, { user: { id, tenant } })
  let at = 0
  for await (const { type } of run.parts) if (type === 'text-delta' && at === 0) at = performance.now() - began
  return at
}

/** Asks again as soon as it has an answer, and soon after a refusal. */
async function insist(runtime: Runtime, id: string, signal: AbortSignal, counts: { asked: number }): Promise<void> {
  while (!signal.aborted) {
    counts.asked++
    try {
      await ask(runtime, 'loud', id)
    } catch (error) {
      if (!(error instanceof MillraceError) || error.code !== 'too-many-runs') throw error
      await sleep(25)
    }
  }
}

async function measure({ rounds = 5, quick }: Options): Promise<Result[]> {
  const dir = mkdtempSync(join(tmpdir(), 'millrace-fairness-'))
  const runtime = createRuntime({
    agents: { a: agent },
    store: sqliteStore(join(dir, 'millrace.db')),
    models: { providers: { bench: createModel } },
    environment: {},
  })
  const requests = quick ? 5 : 20
  const alone: ResultRow = { name: 'alone', title: 'alone', samples: [] }
  const beside: ResultRow = { name: 'beside', title: `beside a tenant with ${loud} clients`, samples: [] }
  const sample = async (row: ResultRow) => {
    const times: number[] = []
    for (let i = 0; i < requests; i++) times.push(await ask(runtime, 'quiet', 'q'))
    row.samples.push({ first: median(times), worst: Math.max(...times) })
  }
  const counts = { asked: 0 }
  try {
    for (let i = 0; i < 20; i++) await ask(runtime, 'quiet', 'q')
    for (let round = 0; round < (quick ? 1 : rounds); round++) {
      await sample(alone)
      const over = new AbortController()
      const others = Array.from({ length: loud }, (_, i) => insist(runtime, `l${i}`, over.signal, counts))
      await sleep(500)
      await sample(beside)
      over.abort()
      await Promise.all(others)
    }
  } finally {
    await runtime.close()
    rmSync(dir, { recursive: true, force: true })
  }
  return [
    {
      scenario: 'fairness',
      title: `ms to the first delta of a tenant that sends one request at a time; medians of ${requests} requests, then of the rounds`,
      reference: 'alone',
      columns: [
        { key: 'first', title: 'first delta', digits: 1, ratio: true },
        { key: 'worst', title: 'worst', digits: 1 },
      ],
      rows: [alone, beside],
      notes: [
        `limits.activeRuns is ${places}. A run takes ${first + gap * (deltas - 1)} ms, its first delta ${first} ms. The other tenant asked ${counts.asked} times.`,
      ],
    },
  ]
}

answerCalls({ measure })
