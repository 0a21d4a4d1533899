/**
 * Makes a large store through the store of a checkout, in a folder that is kept: 208 runs an hour, so that 1,000 runs are five hours and 300,000
 * are sixty days. Arguments: the root of the checkout, the file, the number of runs.
 */
import { mkdirSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Entry } from '../src/part/entry.ts'
import type { Store } from '../src/part/log.ts'

/** The time between two runs: 208 an hour. */
export const pace = 17_280
/** When the last run starts, in every store. Not now: a store is kept. */
export const lastStart = Date.UTC(2026, 9, 31, 23, 59, 0)

const [agents, tools, models] = [
  ['assistant', 'assistant', 'assistant', 'support', 'support', 'research', 'writer', 'coder'],
  ['search', 'search', 'fetch', 'calculator', 'getTime'],
  ['test:big', 'test:big', 'test:small', 'other:fast'],
]
const nouns = ['whale', 'river', 'engine', 'garden', 'ledger', 'bridge', 'comet', 'violin', 'harbor', 'meadow']

/** Always the same number for the same place. */
function random(n: number, salt: number): number {
  let x = Math.imul(n + 1, 2_654_435_761) ^ Math.imul(salt + 1, 40_503)
  x = Math.imul(x ^ (x >>> 15), 2_246_822_519)
  return ((x ^ (x >>> 13)) >>> 0) / 2 ** 32
}

const pick = <T>(all: readonly T[], n: number, salt: number): T => all[Math.floor(random(n, salt) * all.length)]!

/** A run with a tool call between two model calls: 19 entries. `common` is in each, `rareword` in one of 5,000, and of the agent `rare`. */
export function bigRun(n: number, of: number): Entry[] {
  const id = `run_${n.toString(16).padStart(8, '0')}`
  const isRare = n % 5000 === 250
  const agent = isRare ? 'rare' : pick(agents, n, 1)
  let at = lastStart - (of - 1 - n) * pace
  const entries: Entry[] = []
  const add = (ms: number, step: string, part: object) => {
    at += ms
    entries.push({ seq: entries.length + 1, timestamp: at, step, ...part } as Entry)
  }
  const [first, second, third] = [pick(nouns, n, 2), pick(nouns, n, 3), n.toString(36)]
  const content = `What is common about the ${first} and ${second} ${third}${isRare ? ' rareword' : ''}?`
  const [loop, toolName, toolCallId, model] = ['main/answer', pick(tools, n, 4), `call_${n}`, pick(models, n, 5)]
  const used = (input: number, output: number) => ({
    inputTokens: input,
    outputTokens: output,
    totalTokens: input + output,
    source: 'reported',
  })
  const words = [first, second, pick(nouns, n, 6), 'is', 'common', 'here', pick(nouns, n, 7), third]
  const call = Math.floor(200 + 9000 * random(n, 8) ** 6)
  const fails = random(n, 9) < 0.02
  const usage = used(200 + (n % 300), 20 + (n % 50))
  const start = { runId: id, agent, pipeline: 'workflow: []', threadId: `thread_${Math.floor(n / 5)}`, protocol: 'api' }
  add(0, '', { type: 'run-start', ...start, input: { messages: [{ role: 'user', content }] } })
  add(1, loop, { type: 'step-start', stepType: 'llm', kind: 'tool-loop', attempt: 1, answer: true })
  add(1, `${loop}/1`, { type: 'step-start', stepType: 'model-call', kind: 'model-call', attempt: 1 })
  add(1, `${loop}/1`, { type: 'prompt', stage: 'response', model, messages: [] })
  add(300, `${loop}/1`, { type: 'tool-call', toolCallId, toolName, input: JSON.stringify({ about: first }) })
  add(1, `${loop}/1`, { type: 'usage', model, usage, cost: 0.001 + (n % 7) / 1000 })
  add(1, `${loop}/1`, { type: 'step-finish', duration: 302, usage, finishReason: 'tool-calls' })
  add(1, `${loop}/2`, {
    type: 'step-start',
    stepType: 'tool-call',
    kind: 'tool-call',
    attempt: 1,
    toolCallId,
    toolName,
  })
  add(call, `${loop}/2`, { type: 'tool-result', toolCallId, toolName, result: { about: second }, isError: fails })
  add(0, `${loop}/2`, { type: 'step-finish', duration: call })
  add(1, `${loop}/3`, { type: 'step-start', stepType: 'model-call', kind: 'model-call', attempt: 1 })
  add(1, `${loop}/3`, { type: 'prompt', stage: 'response', model, messages: [] })
  add(100 + Math.floor(900 * random(n, 10)), `${loop}/3`, { type: 'text-start', id: 't' })
  for (const word of words) add(20, `${loop}/3`, { type: 'text-delta', id: 't', delta: `${word} ` })
  add(1, `${loop}/3`, { type: 'text-end', id: 't' })
  add(1, `${loop}/3`, { type: 'usage', model, usage, ...(n % 50 !== 0 && { cost: 0.002 }) })
  add(1, `${loop}/3`, { type: 'step-finish', duration: 500, usage, finishReason: 'stop' })
  add(1, loop, { type: 'step-finish', duration: call + 900, usage })
  const failed = random(n, 11) < 0.01
  const error = failed ? { error: { code: 'model-failed', message: 'The model failed.' } } : undefined
  add(1, '', { type: 'run-end', outcome: failed ? 'failed' : 'completed', usage: used(400, 60), cost: 0.005, ...error })
  return entries
}

/** Runs that are written together. */
const batch = 250

async function make(root: string, file: string, runs: number): Promise<void> {
  mkdirSync(dirname(file), { recursive: true })
  const { sqliteStore } = (await import(pathToFileURL(`${root}/src/store/sqlite/store.ts`).href)) as {
    sqliteStore(path: string): Store
  }
  const store = sqliteStore(file)
  const began = performance.now()
  for (let from = 0; from < runs; from += batch) {
    const some = Array.from({ length: Math.min(batch, runs - from) }, (_, i) => bigRun(from + i, runs))
    await Promise.all(
      some.map((entries) => store.log.append((entries[0] as Entry & { runId: string }).runId, 1, entries)),
    )
    // Not all at the end: the tables then read what is still in memory.
    await store.records!.settle()
    if ((from / batch) % 40 === 0)
      process.stderr.write(`${from} runs after ${((performance.now() - began) / 1000).toFixed(0)} s\n`)
  }
  await store.close()
}

const [, script, root, file, runs] = process.argv
if (script !== undefined && resolve(script) === import.meta.filename) await make(root!, file!, Number(runs))
