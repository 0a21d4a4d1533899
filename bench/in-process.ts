/**
 * One subject of `npm run bench -- in-process`, in a process of its own. Code that several stores and protocols use is compiled for all
 * of them: measured in one process, none runs as it does in a server, which has one store.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { createUIMessageStreamResponse, streamText, toUIMessageStream } from 'ai'
import type { LanguageModelV4 } from '@ai-sdk/provider'
import { createRuntime, type CreateRuntimeOptions } from '../src/project/create-runtime.ts'
import type { Store } from '../src/part/log.ts'
import { memoryStore } from '../src/store/memory-store.ts'
import { sqliteStore } from '../src/store/sqlite/store.ts'
import { streamModel } from '../src/models/model.ts'
import { createHandler } from '../src/server/handler.ts'
import { answerCalls } from './calls.ts'
import { createScanner } from './deltas.ts'
import { createModel, type Pattern } from './in-process-model.ts'
import { answerRequests, baseURL } from './in-process-server.ts'
import type { SubjectName } from './scenarios/in-process.ts'
import { createSpeedometer, glance } from './steady.ts'

interface Given {
  name: SubjectName
  pattern: Pattern
  /** Deltas per answer. */
  deltas: number
}

/** One answer, from the request to its last delta. */
type Answer = () => Promise<void>

const agent = 'workflow: [{ id: answer, type: llm, config: { model: "bench:m", stream: true } }]'
const messages = [{ role: 'user' as const, content: 'go' }]

/** Reads a body to its end. Throws unless all deltas have arrived. */
async function drain(body: AsyncIterable<Uint8Array>, mark: string, deltas: number): Promise<void> {
  const scanner = createScanner(mark, false)
  for await (const piece of body) scanner.push(Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength))
  if (scanner.count !== deltas) throw new Error(`incomplete: ${scanner.count} of ${deltas} deltas`)
}

function answerOf({ name, pattern, deltas }: Given): Answer {
  switch (name) {
    case 'ai-sdk-ui':
      return () => streamUi(createModel(deltas, pattern), deltas)
    case 'ai-sdk-ui-bytes': {
      answerRequests(deltas, pattern)
      const provider = createOpenAICompatible({ name: 'bench', baseURL })
      return () => streamUi(provider('m'), deltas)
    }
    case 'model':
      return async () => {
        const { stream } = await createModel(deltas, pattern).doStream({ prompt: [] })
        const reader = stream.getReader()
        while (!(await reader.read()).done);
      }
    case 'loop':
      return async () => {
        let count = 0
        const onPart = ({ type }: { type: string }) => void (type === 'text-delta' && count++)
        const { signal } = new AbortController()
        await streamModel(createModel(deltas, pattern), { messages, signal }, onPart)
        if (count !== deltas) throw new Error(`incomplete: ${count} of ${deltas} deltas`)
      }
    default: {
      const [what, where, from] = name.split('-') as [string, string, string | undefined]
      if (from !== undefined) answerRequests(deltas, pattern)
      return overRuntime(what, openStore(where), modelsOf({ name, pattern, deltas }, from), deltas)
    }
  }
}

/** The AI SDK alone. */
async function streamUi(model: LanguageModelV4, deltas: number): Promise<void> {
  const { stream } = streamText({ model, messages })
  const { body } = createUIMessageStreamResponse({ stream: toUIMessageStream({ stream }) })
  await drain(body!, '"delta":"~', deltas)
}

/** A run without readers, or one protocol. */
function overRuntime(what: string, store: Store, models: Models, deltas: number): Answer {
  const runtime = createRuntime({ agents: { a: agent }, store, models, environment: {} })
  const handler = createHandler({ runtime, authorize: () => true })
  async function ask(path: string, body?: object, accept = '*/*'): Promise<Response> {
    const headers = { 'content-type': 'application/json', accept }
    const init = body === undefined ? { headers } : { method: 'POST', headers, body: JSON.stringify(body) }
    const response = await handler(new Request(`http://bench${path}`, init))
    if (!response.ok) throw new Error(await response.text())
    return response
  }
  const chat = (accept: string, mark: string) => async () => {
    await drain((await ask('/api/chat', { agentId: 'a', messages }, accept)).body!, mark, deltas)
  }
  switch (what) {
    case 'text':
      return chat('text/plain', '~')
    case 'ui':
      return chat('text/event-stream', '"delta":"~')
    case 'openai':
      return async () => {
        const body = { model: 'a', messages, stream: true }
        await drain((await ask('/v1/chat/completions', body)).body!, '"content":"~', deltas)
      }
    case 'parts':
      return async () => {
        const { id } = (await (await ask('/api/runs', { agentId: 'a', input: { messages } })).json()) as { id: string }
        const events = await ask(`/api/runs/${id}/events`, undefined, 'text/event-stream')
        await drain(events.body!, '"delta":"~', deltas)
      }
    default:
      return async () => {
        const { outcome, error } = await (await runtime.start('a', { messages })).result
        if (outcome !== 'completed') throw new Error(`a run ended as ${outcome}: ${error?.message}`)
      }
  }
}

type Models = NonNullable<CreateRuntimeOptions['models']>

/** Parts as they are, or the bytes of a model server: read by us, or by the package. */
function modelsOf({ pattern, deltas }: Given, from: string | undefined): Models {
  if (from === undefined) return { providers: { bench: () => createModel(deltas, pattern) } }
  return { endpoints: [{ name: 'bench', baseURL }], decoder: from === 'package' ? 'package' : 'millrace' }
}

function openStore(where: string): Store {
  // Keep all concurrent runs: the result of an evicted run cannot be read.
  if (where === 'memory') return memoryStore({ keep: 200 })
  const dir = mkdtempSync(join(tmpdir(), 'millrace-bench-'))
  process.on('exit', () => rmSync(dir, { recursive: true, force: true }))
  // Its caller ends it with a signal.
  process.on('SIGTERM', () => process.exit())
  return sqliteStore(join(dir, 'bench.db'))
}

let subject: { answer: Answer; deltas: number }

function begin(given: Given): void {
  subject = { answer: answerOf(given), deltas: given.deltas }
}

async function answers(count: number, ms: number): Promise<number> {
  let made = 0
  for (const until = performance.now() + ms; made === 0 || performance.now() < until; made += count)
    await Promise.all(Array.from({ length: count }, () => subject.answer()))
  return made
}

async function warm({ count, ms }: { count: number; ms: number }): Promise<void> {
  await answers(count, ms)
}

const isFast = createSpeedometer(() => Promise.resolve([glance()]))
/** Minimum length of a slice in ms. A slice holds whole answers. */
const slice = 25

/** How much was measured: all slices, and those at full core speed. */
export interface Measured {
  /** µs of CPU per delta. */
  cpu: number
  slices: number
  fast: number
}

/** Measures in slices between checks of the core's speed. Only full-speed slices count; takes up to twice `ms` to get some. */
async function measure({ count, ms }: { count: number; ms: number }): Promise<Measured> {
  // The others were measured meanwhile, and the CPU's caches have forgotten this one.
  await answers(count, ms)
  for (let i = 0; i < 50; i++) await isFast()
  const all = { cpu: 0, answers: 0, slices: 0 }
  const fast = { ...all }
  const began = performance.now()
  let wasFast = await isFast()
  const isOver = (passed: number) => passed > ms && (fast.slices > 1 || passed > ms * 2)
  do {
    const before = process.cpuUsage()
    const made = await answers(count, slice)
    const { user, system } = process.cpuUsage(before)
    const nowFast = await isFast()
    for (const sum of wasFast && nowFast ? [all, fast] : [all]) {
      sum.cpu += user + system
      sum.answers += made
      sum.slices++
    }
    wasFast = nowFast
  } while (!isOver(performance.now() - began))
  const counted = fast.slices > 0 ? fast : all
  return { cpu: counted.cpu / (counted.answers * subject.deltas), slices: all.slices, fast: fast.slices }
}

answerCalls({ begin, warm, measure })
