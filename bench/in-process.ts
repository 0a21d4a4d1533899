/**
 * CPU per text delta without sockets, for each stage: the model's stream, the model loop, runs with either store, and each wire
 * behind the handler, compared with the AI SDK's `streamText` → UI message stream. Run with `npm run bench -- in-process`.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createUIMessageStreamResponse, streamText, toUIMessageStream } from 'ai'
import { createRuntime } from '../src/project/create-runtime.ts'
import type { Store } from '../src/part/log.ts'
import { memoryStore } from '../src/store/memory-store.ts'
import { sqliteStore } from '../src/store/sqlite-store.ts'
import { streamModel } from '../src/models/model.ts'
import { createHandler } from '../src/server/handler.ts'
import { answerCalls } from './calls.ts'
import { createScanner } from './deltas.ts'
import { createModel, type Pattern } from './in-process-model.ts'
import type { Options, Result, ResultRow, Sample } from './scenario.ts'
import { createSpeedometer, glance } from './steady.ts'
import { medianOf } from './table.ts'

interface Subject {
  name: string
  title: string
  /** Most streams that it is measured with. Default: any number. */
  most?: number
  /** Deltas per answer. */
  deltas: number
  /** One answer, from the request to its last delta. */
  run(): Promise<void>
}

const counts = [1, 50, 200]
const agent = 'workflow: [{ id: answer, type: llm, config: { model: "bench:m", stream: true } }]'
const messages = [{ role: 'user' as const, content: 'go' }]

/** Reads a body to its end. Throws unless all deltas have arrived. */
async function drain(body: AsyncIterable<Uint8Array>, mark: string, deltas: number): Promise<void> {
  const scanner = createScanner(mark, false)
  for await (const piece of body) scanner.push(Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength))
  if (scanner.count !== deltas) throw new Error(`incomplete: ${scanner.count} of ${deltas} deltas`)
}

function theirs(deltas: number, pattern: Pattern): Subject {
  async function run(): Promise<void> {
    const { stream } = streamText({ model: createModel(deltas, pattern), messages })
    await drain(createUIMessageStreamResponse({ stream: toUIMessageStream({ stream }) }).body!, '"delta":"~', deltas)
  }
  return { name: 'ai-sdk-ui', title: 'AI SDK streamText → UI', deltas, run }
}

function loops(deltas: number, pattern: Pattern): Subject[] {
  const { signal } = new AbortController()
  async function alone(): Promise<void> {
    const { stream } = await createModel(deltas, pattern).doStream({ prompt: [] })
    const reader = stream.getReader()
    while (!(await reader.read()).done);
  }
  async function loop(): Promise<void> {
    let count = 0
    const onPart = ({ type }: { type: string }) => void (type === 'text-delta' && count++)
    await streamModel(createModel(deltas, pattern), { messages, signal }, onPart)
    if (count !== deltas) throw new Error(`incomplete: ${count} of ${deltas} deltas`)
  }
  return [
    { name: 'model', title: 'reading the model’s stream', deltas, run: alone },
    { name: 'loop', title: 'Millrace’s model loop', deltas, run: loop },
  ]
}

/** A run without readers, and each wire. */
function ours(deltas: number, pattern: Pattern, store: Store, where: string): Subject[] {
  const providers = { bench: () => createModel(deltas, pattern) }
  const runtime = createRuntime({ agents: { a: agent }, store, models: { providers }, environment: {} })
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
  async function openai(): Promise<void> {
    const body = { model: 'a', messages, stream: true }
    await drain((await ask('/v1/chat/completions', body)).body!, '"content":"~', deltas)
  }
  async function unread(): Promise<void> {
    const { outcome, error } = await (await runtime.start('a', { messages })).result
    if (outcome !== 'completed') throw new Error(`a run ended as ${outcome}: ${error?.message}`)
  }
  async function parts(): Promise<void> {
    const { id } = (await (await ask('/api/runs', { agentId: 'a', input: { messages } })).json()) as { id: string }
    const events = await ask(`/api/runs/${id}/events`, undefined, 'text/event-stream')
    await drain(events.body!, '"delta":"~', deltas)
  }
  return [
    { name: `run-${where}`, title: `run, ${where}, no reader`, deltas, run: unread },
    { name: `text-${where}`, title: `… as text, ${where}`, deltas, most: 50, run: chat('text/plain', '~') },
    { name: `ui-${where}`, title: `… as UI, ${where}`, deltas, run: chat('text/event-stream', '"delta":"~') },
    { name: `openai-${where}`, title: `… as OpenAI, ${where}`, deltas, most: 50, run: openai },
    { name: `parts-${where}`, title: `… as parts, ${where}`, deltas, most: 50, run: parts },
  ]
}

async function measurePattern(
  pattern: Pattern,
  disk: Store,
  { rounds = 3, seconds, deltas }: Options,
): Promise<Result> {
  const subjectsOf = (count: number) => {
    // Two hundred long answers at once would take minutes.
    const few = Math.max(1, count > 50 ? Math.ceil(deltas / 5) : deltas)
    const subjects = [theirs(few, pattern), ...loops(deltas, pattern)]
    // Keep all concurrent runs: the result of an evicted run cannot be read.
    const memory = memoryStore({ keep: Math.max(100, count) })
    subjects.push(...ours(deltas, pattern, memory, 'memory'), ...ours(deltas, pattern, disk, 'SQLite'))
    return subjects
  }
  const rows: ResultRow[] = subjectsOf(1).map(({ name, title }) => {
    return { name, title, samples: Array.from({ length: rounds }, () => ({})) }
  })
  for (const count of counts) {
    const subjects = subjectsOf(count)
    const spent = subjects.map(() => 0)
    // More streams run the same code: it is warm after the first.
    for (let round = count === counts[0] ? 0 : 1; round <= rounds; round++) {
      for (let i = 0; i < subjects.length; i++) {
        const at = (i + round) % subjects.length
        const subject = subjects[at]!
        if (count > (subject.most ?? Infinity) || spent[at]! > seconds * 500) continue
        const began = performance.now()
        const cpu = await cpuPerDelta(subject, count, round === 0 ? seconds / 12 : seconds / 32)
        if (round === 0) continue
        spent[at]! += performance.now() - began
        rows[at]!.samples[round - 1]![`cpu${count}`] = cpu
      }
    }
  }
  // Not every round has a sample of the reference: each is compared with its median.
  const base: Sample = {}
  for (const key of counts.map((count) => `cpu${count}`)) base[key] = medianOf(rows[0]!, key) ?? Number.NaN
  for (const row of rows) row.beside = row.samples.map(() => base)
  const arriving = pattern === 'burst' ? 'all deltas available at once' : 'one delta per stream in each event loop turn'
  return {
    scenario: `in-process ${pattern}`,
    title: `CPU µs per delta without sockets, ${arriving}; medians of ${rounds} rounds`,
    reference: 'ai-sdk-ui',
    columns: counts.map((count) => {
      return { key: `cpu${count}`, title: `${count} stream${count === 1 ? '' : 's'}`, digits: 2, ratio: true }
    }),
    rows,
    notes: [
      `${slices.fast} of ${slices.all} slices of ${slice} ms ran at full core speed, according to a short test before and after each. If a measurement has such slices, only they count.`,
      'What takes longer than the others is measured in fewer rounds. With 200 streams, of the wires only UI is measured.',
    ],
  }
}

const isFast = createSpeedometer(() => Promise.resolve([glance()]))
/** Slices measured, and how many of them at full core speed. */
const slices = { all: 0, fast: 0 }
/** Minimum length of a slice in ms. A slice holds whole answers. */
const slice = 25

/** Measures in slices between checks of the core's speed. Only full-speed slices count; takes up to twice `seconds` to get some. */
async function cpuPerDelta({ run, deltas }: Subject, count: number, seconds: number): Promise<number> {
  globalThis.gc?.()
  const all = { cpu: 0, deltas: 0, slices: 0 }
  const fast = { ...all }
  const began = performance.now()
  let wasFast = await isFast()
  const isOver = (ms: number) => ms > seconds * 1000 && (fast.slices > 1 || ms > seconds * 2000)
  do {
    const before = process.cpuUsage()
    const until = performance.now() + slice
    let answers = 0
    do {
      await Promise.all(Array.from({ length: count }, run))
      answers += count
    } while (performance.now() < until)
    const { user, system } = process.cpuUsage(before)
    const nowFast = await isFast()
    for (const sum of wasFast && nowFast ? [all, fast] : [all]) {
      sum.cpu += user + system
      sum.deltas += answers * deltas
      sum.slices++
    }
    wasFast = nowFast
  } while (!isOver(performance.now() - began))
  slices.all += all.slices
  slices.fast += fast.slices
  const counted = fast.slices > 0 ? fast : all
  return counted.cpu / counted.deltas
}

async function measure(options: Options): Promise<Result[]> {
  // Warm up: compiles the speed test and finds the core's full speed.
  for (let i = 0; i < 300; i++) await isFast()
  const dir = mkdtempSync(join(tmpdir(), 'millrace-bench-'))
  const disk = sqliteStore(join(dir, 'bench.db'))
  try {
    return [await measurePattern('burst', disk, options), await measurePattern('turn', disk, options)]
  } finally {
    await disk.close()
    rmSync(dir, { recursive: true, force: true })
  }
}

answerCalls({ measure })
