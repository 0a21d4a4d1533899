/** Of a run that was deleted no byte is left, in no file. */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, describe, expect, test } from 'vitest'
import { timed } from '../../../test/support/recorded.ts'
import type { RecordedPart } from '../../part/entry.ts'
import type { Store } from '../../part/log.ts'
import { deleteRun, deleteThread } from '../../record/delete.ts'
import { pruneRuns } from '../../record/upkeep.ts'
import { sqliteStore } from './store.ts'

const folder = mkdtempSync(join(tmpdir(), 'millrace-erase-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
let files = 0
const newFile = () => join(folder, `${++files}.db`)

/** In which files a word is. The index has it in lower case, and perhaps without the letters that it shares with the word before. */
function whereIs(path: string, word: string): string[] {
  return ['', '-wal', '-shm'].filter((end) => {
    if (!existsSync(path + end)) return false
    return readFileSync(path + end, 'latin1')
      .toLowerCase()
      .includes(word.slice(3))
  })
}

/** Words without a pattern: only they begin so. */
const words = fc.sample(fc.string({ minLength: 16, maxLength: 16, unit: fc.constantFrom(...'bcdfghjklmnpqrstvwxz') }), {
  numRuns: 60,
  seed: 1,
})

/** A run that has the word wherever a text can be. `long`: how many words its answers have. */
async function record(store: Store, n: number, { long = 40, thread = `t${words[n]}` } = {}): Promise<string> {
  const word = words[n]!
  const run = `run${n}`
  const step = 'main/a/1'
  const call = { toolCallId: `c${word}`, toolName: word }
  const texts = Array.from({ length: long }, (_, i) => (i % 3 === 0 ? `${word} ` : `word${(i * n) % 997} `))
  const parts: [number, string, RecordedPart][] = [
    [
      0,
      '',
      {
        type: 'run-start',
        runId: run,
        agent: 'a',
        pipeline: word,
        threadId: thread,
        protocol: 'api',
        input: { messages: [{ role: 'user', content: `${word} asks` }] },
      },
    ],
    [1, 'main/a', { type: 'step-start', stepType: 'llm', kind: 'tool-loop', attempt: 1 }],
    [1, step, { type: 'step-start', stepType: 'model-call', kind: 'model-call', attempt: 1 }],
    [1, step, { type: 'prompt', stage: 'response', model: word, messages: [{ role: 'user', content: word }] }],
    [1, step, { type: 'text-start', id: 't' }],
    ...texts.map((delta): [number, string, RecordedPart] => [1, step, { type: 'text-delta', id: 't', delta }]),
    [1, step, { type: 'text-end', id: 't' }],
    [1, step, { type: 'tool-call', ...call, input: JSON.stringify({ word }) }],
    [1, step, { type: 'tool-result', ...call, result: texts }],
    [1, step, { type: 'step-finish', duration: 1, error: { code: 'x', message: word } }],
    [1, 'main/a', { type: 'step-finish', duration: 1 }],
    [1, '', { type: 'run-end', outcome: 'failed', usage: { source: 'reported' }, error: { code: 'x', message: word } }],
  ]
  const entries = timed(run, 1e12 + n, parts)
  for (let i = 0; i < entries.length; i += 7) await store.log.append(run, 1, entries.slice(i, i + 7))
  await store.log.post(run, 'key', { word })
  await store.runs.keepView(run, entries.length, { word, texts })
  return run
}

describe('erasing a run', () => {
  test('no byte of a deleted run is in the file or its WAL, however it is deleted', async () => {
    const path = newFile()
    const store = sqliteStore(path)
    const upkeep = store.upkeep!
    const left = new Set<number>()
    const random = fc.sample(fc.record({ long: fc.nat(600), pick: fc.nat(1000), how: fc.nat(2) }), {
      numRuns: 24,
      seed: 3,
    })
    for (const [n, { long, pick, how }] of random.entries()) {
      await record(store, n, { long })
      left.add(n)
      if (n % 3 === 0) await store.records!.settle()
      if (n % 4 === 1) for (const run of await upkeep.uncompacted(Infinity, 2)) await upkeep.compact(run)
      if (n % 2 === 0) continue
      const gone = [...left][pick % left.size]!
      expect(whereIs(path, words[gone]!)).not.toEqual([])
      if (how === 0) await deleteRun(store, `run${gone}`)
      else if (how === 1) await deleteThread(store, `t${words[gone]!}`)
      // Those of which the conversation was used last before this one.
      else
        expect(
          await pruneRuns(upkeep, { idleBefore: 1e12 + Math.min(...left) + 650, maxBytes: undefined }),
        ).toBeDefined()
      for (const each of left) if ((await store.runs.get(`run${each}`)) === undefined) left.delete(each)
      for (const [i] of random.slice(0, n + 1).entries())
        expect([i, whereIs(path, words[i]!).length > 0]).toEqual([i, left.has(i)])
    }
    await store.close()
  })

  test('a reader keeps the WAL, which is emptied at the next chance', async () => {
    const path = newFile()
    const store = sqliteStore(path)
    const run = await record(store, 1)
    const other = new DatabaseSync(path)
    other.exec('BEGIN; SELECT count(*) FROM runs')
    await deleteRun(store, run)
    expect(whereIs(path, words[1]!)).not.toEqual([])
    expect(await store.upkeep!.erase!()).toBe('read')
    other.exec('COMMIT')
    expect(await store.upkeep!.erase!()).toBe('nothing')
    expect(whereIs(path, words[1]!)).toEqual([])
    other.close()
    await store.close()
  })

  test('after a crash during a deletion the next process erases the rest', async () => {
    const path = newFile()
    const store = sqliteStore(path)
    const run = await record(store, 2)
    await store.records!.settle()
    // Without what comes after it.
    await store.upkeep!.drop(run)
    expect(whereIs(path, words[2]!)).not.toEqual([])
    const next = sqliteStore(path)
    expect(await next.upkeep!.erase!()).toBe('nothing')
    expect(whereIs(path, words[2]!)).toEqual([])
    await next.close()
    await store.close()
  })
})
