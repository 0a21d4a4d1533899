/**
 * One chat turn in a short thread and in a very long one, by who keeps the history. Run with `npm run bench -- thread`.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Entry } from '../src/part/entry.ts'
import type { Store } from '../src/part/log.ts'
import type { Message } from '../src/part/message.ts'
import { readKept } from '../src/fold/read-view.ts'
import { createRuntime } from '../src/project/create-runtime.ts'
import { continueOrStart } from '../src/runtime/continue.ts'
import { historyLimit } from '../src/runtime/conversation.ts'
import type { Runtime } from '../src/runtime/runtime.ts'
import { sqliteStore } from '../src/store/sqlite/store.ts'
import { answerCalls } from './calls.ts'
import { createModel } from './in-process-model.ts'
import type { Options, Result, ResultRow } from './scenario.ts'

const short = 10
/** Short threads take turns, so that none of them grows by much. */
const shortThreads = 50
/** Runs in a thread before a turn is measured. */
const lengths = { full: 10_000, quick: 200 }
const agent = 'workflow: [{ id: answer, type: llm, config: { model: "bench:m", stream: true } }]'
const user = (content: string): Message => ({ role: 'user', content })
const question = 'What would you say to a boat that is called Ada and that has been to sea for a hundred years?'

interface Subject {
  name: string
  title: string
  turn(runtime: Runtime, n: number): Promise<void>
}

function subjectsOf(long: number): Subject[] {
  const shortThread = (history: string, n: number) => `${history}-short-${n % shortThreads}`
  const subject = (name: string, title: string, turn: Subject['turn']) => ({ name, title, turn })
  return [
    subject('client-short', `the client sends the last 10 messages, ${short} runs`, (runtime, n) => {
      const thread = shortThread('client', n)
      return say(runtime, thread, 'client', asShown(thread, short))
    }),
    subject('client-long', `… ${long} runs`, (runtime) => {
      return say(runtime, 'client-long', 'client', asShown('client-long', long))
    }),
    subject('server-short', `the server keeps the history, ${short} runs`, (runtime, n) => {
      return say(runtime, shortThread('server', n), 'server', [])
    }),
    subject('server-long', `… ${long} runs`, (runtime) => say(runtime, 'server-long', 'server', [])),
    subject('prompt', '… the same prompt, sent by the client to a thread of its own', async (runtime, n) => {
      const turns = Math.min(long, historyLimit.messages / 2)
      const messages = Array.from({ length: turns }, (_, i) => [user(question), answerOf(`${i}`)]).flat()
      await say(runtime, `prompt-${n}`, 'client', messages)
    }),
  ]
}

async function say(runtime: Runtime, threadId: string, history: 'client' | 'server', earlier: Message[]) {
  const { run } = await continueOrStart(runtime, {
    agentId: 'a',
    threadId,
    messages: [...earlier, user(question)],
    answers: [],
    input: {},
    protocol: 'ui',
    onBusy: 'queue',
    history,
  })
  const { outcome, error } = await run.result
  if (outcome !== 'completed') throw new Error(`a run ended as ${outcome}: ${error?.message}`)
}

const runOf = (thread: string, i: number) => `${thread}_${i}`
const answerOf = (text: string): Message => ({
  role: 'assistant',
  content: [{ type: 'text', text: `${text} ${question}` }],
})

/** The last five turns of a thread as a client has them. */
function asShown(thread: string, runs: number): Message[] {
  return Array.from({ length: 5 }, (_, i) => runOf(thread, runs - 5 + i)).flatMap((id) => {
    return [user(question), { ...answerOf('as shown'), id } as Message]
  })
}

/** Stores a thread of ended runs as a runtime would have left it. */
async function fill(store: Store, thread: string, runs: number): Promise<void> {
  const one = async (i: number) => {
    const run = runOf(thread, i)
    await store.log.append(run, 1, entriesOf(thread, i))
    await store.log.post(`thread:${thread}`, `after:${i === 0 ? '' : runOf(thread, i - 1)}`, { run })
    // Keeps its view.
    await readKept(store, run)
  }
  for (let i = 0; i < runs; i += 100) {
    await Promise.all(Array.from({ length: Math.min(100, runs - i) }, (_, k) => one(i + k)))
  }
}

function entriesOf(thread: string, i: number): Entry[] {
  const start = { runId: runOf(thread, i), agent: 'a', pipeline: agent, threadId: thread, protocol: 'ui' }
  const previous = i === 0 ? {} : { previousRunId: runOf(thread, i - 1) }
  const usage = { inputTokens: 1, outputTokens: 1, totalTokens: 2, source: 'reported' }
  const parts = [
    ['', { type: 'run-start', ...start, ...previous, input: { messages: [user(question)] } }],
    ['main/answer', { type: 'step-start', stepType: 'llm', attempt: 1, answer: true }],
    ['main/answer/1', { type: 'step-start', stepType: 'model-call', attempt: 1 }],
    ['main/answer/1', { type: 'text-start', id: 't' }],
    ['main/answer/1', { type: 'text-delta', id: 't', delta: `${i} ${question}` }],
    ['main/answer/1', { type: 'text-end', id: 't' }],
    ['main/answer/1', { type: 'step-finish', duration: 1 }],
    ['main/answer', { type: 'step-finish', duration: 1 }],
    ['', { type: 'run-end', outcome: 'completed', usage }],
  ] as const
  return parts.map(([step, part], n) => ({ seq: n + 1, timestamp: Date.now(), step, ...part }) as Entry)
}

async function measure({ rounds = 5, seconds, quick }: Options): Promise<Result[]> {
  const long = quick ? lengths.quick : lengths.full
  const dir = mkdtempSync(join(tmpdir(), 'millrace-bench-'))
  const store = sqliteStore(join(dir, 'bench.db'))
  const providers = { bench: () => createModel(20, 'burst') }
  const runtime = createRuntime({ agents: { a: agent }, store, models: { providers }, environment: {} })
  const subjects = subjectsOf(long)
  const rows: ResultRow[] = subjects.map(({ name, title }) => ({ name, title, samples: [] }))
  try {
    for (const history of ['client', 'server']) {
      await fill(store, `${history}-long`, long)
      for (let i = 0; i < shortThreads; i++) await fill(store, `${history}-short-${i}`, short)
    }
    let n = 0
    for (let round = 0; round <= rounds; round++) {
      const waits = subjects.map((): number[] => [])
      const until = performance.now() + seconds * 1000 * subjects.length
      do {
        // One turn each, so that all see the same machine.
        for (const i of subjects.keys()) {
          const at = (i + n) % subjects.length
          const began = performance.now()
          await subjects[at]!.turn(runtime, n)
          waits[at]!.push(performance.now() - began)
        }
        n++
      } while (performance.now() < until)
      for (const [at, times] of waits.entries()) {
        const sorted = times.toSorted((a, b) => a - b)
        const sample = { p50: sorted[Math.floor(sorted.length / 2)]!, p90: sorted[Math.floor(sorted.length * 0.9)]! }
        if (round > 0) rows[at]!.samples.push(sample)
      }
    }
  } finally {
    await runtime.close()
    rmSync(dir, { recursive: true, force: true })
  }
  return [
    {
      scenario: 'thread',
      title: `One chat turn in a thread, SQLite, one at a time, interleaved; medians of ${rounds} rounds`,
      reference: 'client-short',
      columns: [
        { key: 'p50', title: 'p50 ms', digits: 2, ratio: true },
        { key: 'p90', title: 'p90 ms', digits: 2 },
      ],
      rows,
      notes: [
        `Of a thread whose history the server keeps, a model is told ${historyLimit.messages} messages at most. The last row has this prompt without its thread.`,
      ],
    },
  ]
}

answerCalls({ measure })
