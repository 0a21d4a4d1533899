/** Kept views say what a fold of the whole log says, are read instead of it, and heal. */
import { readdirSync, readFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { arbitraryRun } from '../../test/arbitrary-run.ts'
import { buildRun, startPart, type Item } from '../../test/build-run.ts'
import type { Entry } from '../part/entry.ts'
import type { Store } from '../part/log.ts'
import { memoryStore } from '../store/memory-store.ts'
import { foldRun } from './run-fold.ts'
import type { KeptRun } from './kept-run.ts'
import { keepView, readKept, readView } from './read-view.ts'

const id = 'run-1'

/** Counts what is read of logs. */
function counted(store: Store) {
  const read = { entries: 0 }
  const log: Store['log'] = {
    ...store.log,
    async *read(...args) {
      for await (const batch of store.log.read(...args)) {
        read.entries += batch.length
        yield batch
      }
    },
  }
  return { read, store: { ...store, log } }
}

function foldOf(entries: readonly Entry[]) {
  const fold = foldRun()
  for (const entry of entries) fold.apply(entry)
  return fold
}

const asJson = <T>(value: T) => JSON.parse(JSON.stringify(value)) as T

/** At each suspend and at the end, both what the first reader folds and what the next one reads. */
async function checkRun(entries: readonly Entry[]): Promise<void> {
  const run = (entries[0] as Extract<Entry, { type: 'run-start' }>).runId
  const inner = memoryStore()
  const { read, store } = counted(inner)
  let from = 0
  for (const [i, { type }] of entries.entries()) {
    if (type !== 'suspend' && type !== 'run-end') continue
    await store.log.append(run, 1, entries.slice(from, i + 1))
    from = i + 1
    const fold = foldOf(entries.slice(0, from))
    const expected = asJson(fold.view())
    expect(asJson(await readView(store, run))).toEqual(expected)
    read.entries = 0
    expect(asJson(await readView(store, run))).toEqual(expected)
    expect(read.entries).toBeLessThanOrEqual(2)
    expect(asJson(await readKept(store, run))).toEqual(asJson(fold.kept()))
  }
  await inner.close()
}

describe('readView', () => {
  test('random runs: at every suspend and at the end', async () => {
    await fc.assert(fc.asyncProperty(arbitraryRun, checkRun), { numRuns: 150 })
  })

  const golden = new URL('../wire/golden/', import.meta.url)
  test.each(readdirSync(golden).filter((file) => file.endsWith('.ndjson')))('%s', async (file) => {
    const lines = readFileSync(new URL(file, golden), 'utf8').trimEnd().split('\n')
    await checkRun(lines.map((line) => JSON.parse(line) as Entry))
  })

  const usage = { inputTokens: 1, outputTokens: 1, totalTokens: 2, source: 'reported' as const }
  const done: Item[] = [
    { step: '', part: startPart },
    { step: 'main/a', part: { type: 'step-start', stepType: 'llm', attempt: 1, answer: true } },
    { step: 'main/a/1', part: { type: 'step-start', stepType: 'model-call', attempt: 1 } },
    { step: 'main/a/1', part: { type: 'text-start', id: 't' } },
    { step: 'main/a/1', part: { type: 'text-delta', id: 't', delta: 'Hello' } },
    { step: 'main/a/1', part: { type: 'text-end', id: 't' } },
    { step: 'main/a/1', part: { type: 'step-finish', duration: 1 } },
    { step: 'main/a', part: { type: 'step-finish', duration: 1 } },
    { step: '', part: { type: 'run-end', outcome: 'completed', usage, output: { said: 'Hello' } } },
  ]

  async function stored(items: readonly Item[]) {
    const entries = buildRun(items)
    const inner = memoryStore()
    await inner.log.append(id, 1, entries)
    return { entries, inner, ...counted(inner) }
  }

  test('a view that was lost with its process is folded once, and then kept', async () => {
    const { inner, store, read, entries } = await stored(done)
    expect(await inner.runs.view(id)).toBeUndefined()
    const first = await readView(store, id)
    expect(first).toMatchObject({ text: 'Hello', output: { said: 'Hello' }, status: 'completed' })
    expect(read.entries).toBe(entries.length)
    expect(await inner.runs.view(id)).toMatchObject({ seq: entries.length })
    expect(await readView(store, id)).toEqual(first)
    expect(read.entries).toBe(entries.length + 2)
  })

  test('a view of another version is folded again and replaced', async () => {
    const { inner, store, read, entries } = await stored(done)
    const old: KeptRun = { ...foldOf(entries).kept(), version: 0, messages: [{ role: 'assistant', content: 'old' }] }
    await inner.runs.keepView(id, entries.length, old)
    expect(await readView(store, id)).toMatchObject({ text: 'Hello' })
    expect(read.entries).toBe(entries.length)
    expect(await readView(store, id)).toMatchObject({ text: 'Hello' })
    expect(read.entries).toBe(entries.length + 2)
  })

  test('a view that stands for an earlier entry does not count; nothing is kept of a run that goes on', async () => {
    const { inner, store, entries } = await stored(done.slice(0, -2))
    await keepView(store.runs, id, foldOf(entries.slice(0, 3)))
    expect(await readView(store, id)).toMatchObject({ text: 'Hello', status: 'running', lastSeq: entries.length })
    expect(await inner.runs.view(id)).toMatchObject({ seq: 3 })
  })

  test('a store that keeps nothing harms nothing', async () => {
    const { store } = await stored(done)
    const keepView = () => Promise.reject(new Error('read only'))
    expect(await readView({ ...store, runs: { ...store.runs, keepView } }, id)).toMatchObject({
      text: 'Hello',
    })
  })

  test('of a run with very many steps none is kept, and yet all are shown', async () => {
    const steps = Array.from({ length: 1500 }, (_, i): Item[] => [
      { step: `main/s${i}`, part: { type: 'step-start', stepType: 'custom', attempt: 1 } },
      { step: `main/s${i}`, part: { type: 'step-finish', duration: i, result: 'x'.repeat(100) } },
    ])
    const { inner, store } = await stored([done[0]!, ...steps.flat(), done.at(-1)!])
    for (let i = 0; i < 2; i++) expect((await readView(store, id))!.steps).toHaveLength(1500)
    expect(JSON.stringify(await inner.runs.view(id)).length).toBeLessThan(2000)
  })

  test('stored views do not grow with input and output, which stay in the log', async () => {
    const long = 'x'.repeat(100_000)
    const messages = [
      { role: 'user', content: long },
      { role: 'assistant', content: 'Yes.' },
      { role: 'user', content: 'Hi' },
    ]
    const start = { ...startPart, input: { messages, document: long } } as Item['part']
    const end = { ...done.at(-1)!.part, output: long } as Item['part']
    const { inner, store } = await stored([{ step: '', part: start }, ...done.slice(1, -1), { step: '', part: end }])
    for (let i = 0; i < 2; i++) {
      expect(await readView(store, id)).toMatchObject({ input: { messages, document: long }, output: long })
    }
    const text = JSON.stringify(await inner.runs.view(id))
    expect(text.length).toBeLessThan(2000)
    expect(await readKept(store, id)).toMatchObject({ asked: [{ role: 'user', content: 'Hi' }] })
  })
})
