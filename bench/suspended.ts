/**
 * The start of a server on whose database many runs wait for answers: from opening the store until the runtime has taken over, and
 * the first answer after that. Run with `npm run bench -- suspended`.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Entry } from '../src/part/entry.ts'
import { createRuntime } from '../src/project/create-runtime.ts'
import { sqliteStore } from '../src/store/sqlite/store.ts'
import { answerCalls } from './calls.ts'
import { deltaText } from './deltas.ts'
import { createModel } from './in-process-model.ts'
import type { Options, Result, ResultRow, Sample } from './scenario.ts'

const agent = 'workflow: [{ id: answer, type: llm, config: { model: "bench:m", stream: true } }]'
const counts = [0, 1000, 10_000]

/** A run that has said something and waits for its client. */
function suspendedRun(runId: string): Entry[] {
  const deadline = Date.now() + 24 * 3600_000
  const call = { toolCallId: 'c', toolName: 'ask' }
  const text = Array.from({ length: 20 }, (_, i) => ['main/answer/1', textDelta(i)] as const)
  const parts: (readonly [string, object])[] = [
    ['', { type: 'run-start', runId, agent: 'a', pipeline: agent, threadId: runId, protocol: 'api', input }],
    ['main/answer', { type: 'step-start', stepType: 'llm', kind: 'container', attempt: 1, answer: true }],
    ['main/answer/1', { type: 'step-start', stepType: 'model-call', kind: 'model-call', attempt: 1 }],
    ['main/answer/1', { type: 'prompt', stage: 'response', model: 'bench:m', messages: input.messages }],
    ['main/answer/1', { type: 'text-start', id: 't' }],
    ...text,
    ['main/answer/1', { type: 'text-end', id: 't' }],
    ['main/answer/1', { type: 'tool-call', ...call, input: '{}' }],
    ['main/answer/1', { type: 'usage', model: 'bench:m', usage: {} }],
    ['main/answer/1', { type: 'finish', finishReason: 'tool-calls', usage: {} }],
    ['main/answer/1', { type: 'step-finish', duration: 1 }],
    ['main/answer/c', { type: 'step-start', stepType: 'client-tool', kind: 'client-tool', attempt: 1, ...call }],
    ['main/answer/c', { type: 'request', requestId: 'q', kind: 'tool', ...call, input: {}, deadline }],
    ['', { type: 'suspend', requests: ['q'] }],
  ]
  return parts.map(([step, part], i) => ({ seq: i + 1, timestamp: Date.now(), step, ...part }) as Entry)
}

const input = {
  messages: [{ role: 'user', content: 'go' }],
  tools: [{ name: 'ask', parameters: { type: 'object' } }],
}

function textDelta(i: number) {
  return { type: 'text-delta', id: 't', delta: deltaText(i) }
}

async function fill(file: string, runs: number): Promise<void> {
  const store = sqliteStore(file)
  for (let i = 0; i < runs; i += 500) {
    const some = Array.from({ length: Math.min(500, runs - i) }, (_, n) => `run_${i + n}`)
    await Promise.all(some.map((run) => store.log.append(run, 1, suspendedRun(run))))
  }
  await store.close()
}

async function start(file: string, runs: number): Promise<Sample> {
  const began = performance.now()
  const store = sqliteStore(file)
  const models = { providers: { bench: () => createModel(1, 'burst') } }
  const runtime = createRuntime({ agents: { a: agent }, store, models, environment: {} })
  await runtime.recover()
  const boot = performance.now() - began
  let answer = 0
  if (runs > 0) {
    const asked = performance.now()
    await runtime.answer(`run_${runs >> 1}`, 'q', { kind: 'tool', output: 1 })
    answer = performance.now() - asked
  }
  await runtime.close(1000)
  return { boot, answer }
}

async function measure({ rounds = 5 }: Options): Promise<Result[]> {
  const dir = mkdtempSync(join(tmpdir(), 'millrace-bench-'))
  const rows: ResultRow[] = []
  try {
    for (const runs of counts) {
      const samples: Sample[] = []
      for (let round = 0; round <= rounds; round++) {
        const file = join(dir, `${runs}-${round}.db`)
        await fill(file, runs)
        const sample = await start(file, runs)
        if (round > 0) samples.push(sample)
        rmSync(file, { force: true })
      }
      rows.push({ name: `suspended-${runs}`, title: `SQLite, ${runs} suspended runs`, samples })
    }
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
  return [
    {
      scenario: 'suspended',
      title: `From opening the store until recovery is done; medians of ${rounds} rounds`,
      reference: 'suspended-0',
      columns: [
        { key: 'boot', title: 'ms', digits: 1 },
        { key: 'answer', title: 'first answer ms', digits: 1 },
      ],
      rows,
      notes: [],
    },
  ]
}

answerCalls({ measure })
