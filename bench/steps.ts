/**
 * What durable steps cost, in four figures: from the start of a run to its first step, from one step to the next, all that is added to an agent of
 * five turns whose models and tools answer at once, and from a model's word to its reader. Beside DBOS on Postgres, if both are there. Run with
 * `npm run bench -- steps`.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { createRuntime } from '../src/project/create-runtime.ts'
import { createScriptedModel, finish, latch, text, toolCall } from '../src/models/testing/scripted-model.ts'
import type { Store } from '../src/part/log.ts'
import { redisStore } from '../src/store/redis/redis-store.ts'
import { sqliteStore } from '../src/store/sqlite/store.ts'
import { postgresFault, startPostgres } from '../test/support/postgres-server.ts'
import { hasRedis, startRedis } from '../test/support/redis-server.ts'
import { answerCalls } from './calls.ts'
import type { Options, Result, ResultRow, Sample } from './scenario.ts'

const steps = 6
const turns = 5
const words = 20
/** ms between two words: each is written alone, as a model's are. */
const pause = 5

/** One system: each function makes one run. */
interface Subject {
  /** The times at which its steps ran. */
  steps(): Promise<number[]>
  /** Model and tool take turns. */
  agent(): Promise<void>
  /** How long after it was said each word was read. */
  stream(): Promise<number[]>
  close(): Promise<void>
}

const agents = {
  marks: `workflow: [${Array.from({ length: steps }, (_, i) => `{ id: s${i}, type: mark }`).join(', ')}]`,
  turns: `workflow: [{ id: a, type: llm, config: { model: "bench:turns", tools: [noop], maxSteps: ${turns} } }]`,
  speaks: 'workflow: [{ id: a, type: llm, config: { model: "bench:speaks", stream: true } }]',
}
const input = { messages: [{ role: 'user', content: 'go' }] }

function millrace(store: Store): Subject {
  let marks: number[] = []
  const speaking = createScriptedModel([])
  const models: Record<string, object> = {
    turns: {
      ...speaking,
      doStream(options: Parameters<typeof speaking.doStream>[0]) {
        const made = options.prompt.filter(({ role }) => role === 'tool').length
        const said = made < turns - 1 ? [toolCall(`c${made}`, 'noop', {}), finish('tool-calls')] : [text('x'), finish()]
        return createScriptedModel([said]).doStream(options)
      },
    },
    speaks: {
      ...speaking,
      doStream(options: Parameters<typeof speaking.doStream>[0]) {
        const gates = Array.from({ length: words }, latch)
        void (async () => {
          for (const gate of gates) {
            await sleep(pause)
            said.push(performance.now())
            gate.open()
          }
        })()
        return createScriptedModel([[...gates.flatMap((gate) => [gate, text('word ')]), finish()]]).doStream(options)
      },
    },
  }
  let said: number[] = []
  const runtime = createRuntime({
    agents,
    store,
    tools: { noop: { parameters: { type: 'object' }, execute: () => 'done' } },
    steps: { mark: () => void marks.push(performance.now()) },
    models: { providers: { bench: (name) => models[name] as never } },
    environment: {},
  })
  return {
    async steps() {
      marks = []
      await (
        await runtime.start('marks', input)
      ).result
      return marks
    },
    async agent() {
      await (
        await runtime.start('turns', input)
      ).result
    },
    async stream() {
      said = []
      const read: number[] = []
      const run = await runtime.start('speaks', input)
      // With a signal it follows the run to its end.
      for await (const batch of store.log.read(run.id, { signal: new AbortController().signal }))
        for (const { type } of batch) if (type === 'text-delta') read.push(performance.now())
      if (read.length !== words) throw new Error(`${read.length} words were read`)
      return read.map((at, i) => at - said[i]!)
    },
    close: () => runtime.close(1000),
  }
}

/** The parts of DBOS that are used here. */
interface Dbos {
  setConfig(config: object): void
  launch(): Promise<void>
  shutdown(): Promise<void>
  registerWorkflow<T>(work: () => Promise<T>, options: { name: string }): () => Promise<T>
  startWorkflow(work: () => Promise<void>): () => Promise<{ workflowID: string }>
  runStep<T>(step: () => Promise<T>, options: { name: string }): Promise<T>
  writeStream(key: string, value: unknown): Promise<void>
  closeStream(key: string): Promise<void>
  readStream(workflow: string, key: string): AsyncIterable<number>
}

async function dbos(url: string): Promise<Subject> {
  const load = createRequire(new URL('./peers/package.json', import.meta.url))
  const { DBOS } = load('@dbos-inc/dbos-sdk') as { DBOS: Dbos }
  let marks: number[] = []
  const step = (name: string) => DBOS.runStep(async () => void marks.push(performance.now()), { name })
  const inSteps = DBOS.registerWorkflow(
    async () => {
      for (let i = 0; i < steps; i++) await step(`s${i}`)
    },
    { name: 'steps' },
  )
  const agent = DBOS.registerWorkflow(
    async () => {
      for (let i = 0; i < 2 * turns - 1; i++) await step(`turn${i}`)
    },
    { name: 'agent' },
  )
  const speaks = DBOS.registerWorkflow(
    async () => {
      for (let i = 0; i < words; i++) {
        await sleep(pause)
        await DBOS.writeStream('words', performance.now())
      }
      await DBOS.closeStream('words')
    },
    { name: 'speaks' },
  )
  DBOS.setConfig({ name: 'bench', systemDatabaseUrl: url, logLevel: 'error', runAdminServer: false })
  await DBOS.launch()
  return {
    async steps() {
      marks = []
      await inSteps()
      return marks
    },
    agent: () => agent(),
    async stream() {
      const late: number[] = []
      // What `startWorkflow` returns is called at once: to await it would ask it for a workflow named `then`.
      const { workflowID } = await DBOS.startWorkflow(speaks)()
      for await (const at of DBOS.readStream(workflowID, 'words')) late.push(performance.now() - at)
      return late
    },
    close: () => DBOS.shutdown(),
  }
}

async function sampleOf(subject: Subject): Promise<Sample> {
  const began = performance.now()
  const marks = await subject.steps()
  const gaps = marks.slice(1).map((at, i) => at - marks[i]!)
  const asked = performance.now()
  await subject.agent()
  const agent = performance.now() - asked
  const late = await subject.stream()
  return { first: marks[0]! - began, next: median(gaps), agent, stream: median(late) }
}

function median(all: readonly number[]): number {
  return all.toSorted((a, b) => a - b)[all.length >> 1] ?? Number.NaN
}

async function measure({ rounds = 30, quick }: Options): Promise<Result[]> {
  const dir = mkdtempSync(join(tmpdir(), 'millrace-bench-'))
  const redis = hasRedis ? await startRedis({ aof: true }) : undefined
  const postgres = postgresFault === '' ? await startPostgres({ fsync: true }) : undefined
  const notes: string[] = ['Models and tools answer at once: all of the time is the system’s.']
  const subjects: { row: ResultRow; subject: Subject }[] = []
  const add = (name: string, title: string, subject: Subject) =>
    void subjects.push({ row: { name, title, samples: [] }, subject })
  try {
    add('sqlite', 'Millrace, SQLite: in the page cache of the system', millrace(sqliteStore(join(dir, 'millrace.db'))))
    if (redis !== undefined)
      add(
        'redis',
        'Millrace, Redis: in another process, on the disk each second',
        millrace(await redisStore(`${redis.url}?prefix=bench`)),
      )
    if (postgres !== undefined) {
      const peer = await dbos(`${await postgres.freshUrl()}?sslmode=disable`).catch((error: unknown) => error as Error)
      if (peer instanceof Error) notes.push(`DBOS is missing: ${peer.message}`)
      else add('dbos', 'DBOS, Postgres: on the disk (fsync)', peer)
    } else notes.push(`DBOS is missing:${postgresFault}.`)
    for (let round = quick ? 0 : -3; round < (quick ? 2 : rounds); round++) {
      for (const { row, subject } of round % 2 === 0 ? subjects : subjects.toReversed()) {
        const sample = await sampleOf(subject)
        if (round >= 0) row.samples.push(sample)
      }
    }
  } finally {
    for (const { subject } of subjects) await subject.close()
    await redis?.close()
    await postgres?.close()
    rmSync(dir, { recursive: true, force: true })
  }
  return [
    {
      scenario: 'steps',
      title: `ms; medians of ${rounds} rounds: ${steps} steps, an agent of ${turns} model calls and ${turns - 1} tool calls, ${words} words`,
      reference: 'sqlite',
      columns: [
        { key: 'first', title: 'start to first step', digits: 3 },
        { key: 'next', title: 'step to step', digits: 3, ratio: true },
        { key: 'agent', title: 'agent of five turns', digits: 2 },
        { key: 'stream', title: 'word to reader', digits: 3 },
      ],
      rows: subjects.map(({ row }) => row),
      notes,
    },
  ]
}

answerCalls({ measure })
