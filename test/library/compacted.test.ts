/** A compacted run is equal in content to what it was: for every reader, every wire, elsewhere, compared, and said again. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { readView } from '../../src/fold/read-view.ts'
import { createRecordingModel } from '../../src/models/recording.ts'
import { createScriptedModel, finish, reasoning, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import type { Entry } from '../../src/part/entry.ts'
import { isDelta } from '../../src/part/entry.ts'
import { recordedEntries, recordedRun } from '../../src/part/recording.ts'
import type { Store } from '../../src/part/log.ts'
import { diffRuns } from '../../src/record/diff/diff.ts'
import { replay } from '../../src/record/replay/replay.ts'
import { exportRun } from '../../src/record/transfer/export.ts'
import { importNdjson } from '../../src/record/transfer/import.ts'
import { compactRuns } from '../../src/record/upkeep.ts'
import { memoryStore } from '../../src/store/memory-store.ts'
import { verify } from '../../src/store/ndjson.ts'
import { sqliteStore } from '../../src/store/sqlite/store.ts'
import { builtinWires } from '../../src/wire/builtin-wires.ts'
import { arbitraryRun } from '../arbitrary-run.ts'
import { agent, createEngine, entriesOf, only } from '../support/engine.ts'
import { startServer } from '../support/server.ts'
import { contentOf } from '../wire-content.ts'

const golden = new URL('../../src/wire/golden/', import.meta.url)

/** The same run, said letter by letter, so that there is much to merge. */
function spelled(entries: readonly Entry[]): Entry[] {
  const fine = entries.flatMap((entry) =>
    isDelta(entry) ? [...entry.delta].map((delta): Entry => ({ ...entry, delta })) : [entry],
  )
  return fine.map((entry, i) => ({ ...entry, seq: i + 1 }))
}

/** Letters of parallel answers alternate. */
function woven(entries: readonly Entry[]): Entry[] {
  const parts = [...entries]
  for (let i = 1; i + 1 < parts.length; i++) {
    const [before, entry, after] = [parts[i - 1]!, parts[i]!, parts[i + 1]!]
    if (isDelta(before) && isDelta(entry) && isDelta(after) && before.id === entry.id && after.id !== entry.id)
      [parts[i], parts[i + 1]] = [after, entry]
  }
  return parts.map((entry, i) => ({ ...entry, seq: i + 1 }))
}

const goldens = readdirSync(golden).flatMap((file): [string, Entry[]][] => {
  const name = /^(.+)\.ndjson$/u.exec(file)?.[1]
  if (name === undefined) return []
  const lines = readFileSync(new URL(file, golden), 'utf8').trimEnd().split('\n')
  return [[name, woven(spelled(lines.map((line) => JSON.parse(line) as Entry)))]]
})
const random = fc.sample(arbitraryRun, { numRuns: 12, seed: 3 }).map((run, i): [string, Entry[]] => {
  return [`random ${i}`, woven(spelled(JSON.parse(JSON.stringify(run)) as Entry[]))]
})

const folder = mkdtempSync(join(tmpdir(), 'millrace-compacted-'))
const whole = memoryStore()
let compacted: Store
const runs = [...goldens, ...random].map(([name, entries], i): [string, string, Entry[]] => {
  const id = `r${i}`
  return [name, id, entries.map((entry) => (entry.type === 'run-start' ? { ...entry, runId: id } : entry))]
})

beforeAll(async () => {
  compacted = sqliteStore(join(folder, 'millrace.db'))
  for (const [, id, entries] of runs) {
    await compacted.log.append(id, 1, entries)
    await whole.log.append(id, 1, entries)
  }
  await compactRuns(compacted.upkeep!, { endedBefore: Infinity })
})
afterAll(async () => {
  await Promise.all([compacted.close(), whole.close()])
  rmSync(folder, { recursive: true, force: true })
})

async function read(pieces: AsyncIterable<string>): Promise<string> {
  const all: string[] = []
  try {
    for await (const piece of pieces) all.push(piece)
  } catch (error) {
    if ((error as { code?: string }).code !== 'incomplete') throw error
    all.push('<transfer broken>')
  }
  return all.join('')
}

describe.each(runs)('%s', (_, id, entries) => {
  test('has the same view', async () => {
    const view = await readView(compacted, id)
    expect(view).toEqual(await readView(whole, id))
    expect(view!.lastSeq).toBe(entries.length)
  })

  test('says the same through every wire', async () => {
    for (const format of builtinWires.keys()) {
      const [before, after] = await Promise.all(
        [whole, compacted].map((store) => read(replay(store, id, { format, speed: Infinity }))),
      )
      expect(contentOf(format, after!), format).toEqual(contentOf(format, before!))
    }
  })

  test('is exported, imported and exported again byte by byte, and accepted', async () => {
    const stored = await entriesOf(compacted, id)
    expect(verify(stored)).toEqual([])
    const lines = await read(exportRun(compacted, id))
    const other = memoryStore()
    expect(await importNdjson(other, lines)).toMatchObject({ id, isNew: true })
    expect(await read(exportRun(other, id))).toBe(lines)
    expect(await readView(other, id)).toEqual(await readView(whole, id))
    await other.close()
  })

  test('does not differ from itself, in either direction; a letter less does', async () => {
    const [one, other] = [recordedRun(whole.log, id), recordedRun(compacted.log, id)]
    for (const found of [await diffRuns(one, other), await diffRuns(other, one)]) {
      expect(found.divergence).toBeUndefined()
      expect({ ...found.a, entries: 0 }).toEqual({ ...found.b, entries: 0 })
    }
    const stored = await entriesOf(compacted, id)
    const at = stored.findLastIndex((entry) => isDelta(entry) && entry.delta !== '')
    if (at === -1) return
    const cut = stored.map((entry, i) =>
      i === at && isDelta(entry) ? { ...entry, delta: entry.delta.slice(1) } : entry,
    )
    expect((await diffRuns(one, recordedEntries('cut', cut))).same).toBe(false)
  })
})

test('there was much to merge', async () => {
  let merged = 0
  for (const [, id] of runs) merged += (await entriesOf(compacted, id)).filter((entry) => entry.firstSeq).length
  expect(merged).toBeGreaterThan(60)
})

const messages = [{ role: 'user', content: 'What is 1 + 1?' }]
const agents = { a: agent('tools: [calculator]') }
const script = () => [
  [
    reasoning('I ', 'must ', 'add.'),
    text('Let ', 'me ', 'see.'),
    toolCall('c', 'calculator', { expression: '1+1' }),
    finish('tool-calls'),
  ],
  [text('It ', 'is ', 'two, ', 'I ', 'think.'), finish('stop', { in: 3, out: 5 })],
]

test('a compacted run as a model says the same, in fewer pieces; the run on it does not differ', async () => {
  const first = createEngine({
    agents,
    scripts: { m: createScriptedModel(script()) },
  })
  onTestFinished(() => first.close())
  const run = await (await first.runtime.start('a', { messages })).result
  const before = await entriesOf(first.store, run.id)
  await compactRuns(first.store.upkeep!, { endedBefore: Infinity })
  const recording = recordedRun(first.store.log, run.id)
  const model = createRecordingModel(recording, { usage: 'recorded' })
  const again = createEngine({ agents, scripts: { m: model } })
  onTestFinished(() => again.close())
  const result = await (await again.runtime.start('a', { messages })).result
  expect(result).toMatchObject({
    outcome: 'completed',
    text: run.text,
    usage: run.usage,
  })
  const entries = await entriesOf(again.store, result.id)
  const calls = (of: Entry[]) => only(of, 'tool-call').map(({ toolName, input }) => [toolName, input])
  expect(calls(entries)).toEqual(calls(before))
  expect(only(entries, 'text-delta').length).toBeLessThan(only(before, 'text-delta').length)
  const rerun = recordedRun(again.store.log, result.id)
  for (const source of [recording, recordedEntries('before', before)])
    expect((await diffRuns(source, rerun)).divergence).toBeUndefined()
})

test('a place inside merged deltas is gone for a replay and a fork; the places around it are there', async () => {
  const server = await startServer({
    agents,
    scripts: { m: createScriptedModel([...script(), ...script()]) },
  })
  onTestFinished(() => server.close())
  const { id } = await (await server.runtime.start('a', { messages })).result
  const wholeText = (await (await fetch(`${server.url}/api/runs/${id}/replay?speed=max&format=text`)).text()).length
  await compactRuns(server.store.upkeep!, { endedBefore: Infinity })
  const merged = only(await entriesOf(server.store, id), 'text-delta').findLast(
    ({ firstSeq }) => firstSeq !== undefined,
  )!
  const { firstSeq = 0, seq } = merged
  expect(seq - firstSeq).toBe(3)
  const replayed = (query: string) => fetch(`${server.url}/api/runs/${id}/replay?speed=max&${query}`)
  const fork = (at: number) => server.post(`/api/runs/${id}/fork`, { at })
  const gone = {
    error: {
      code: 'compacted',
      message: expect.stringContaining(`Use ${firstSeq - 1} or ${seq}`),
    },
  }
  const refused = async (response: Response) =>
    expect([response.status, await response.json()]).toMatchObject([410, gone])
  for (let inside = firstSeq; inside < seq; inside++) {
    await refused(await fetch(`${server.url}/api/runs/${id}/events?after=${inside}`))
    for (const format of ['parts', 'text', 'ui']) {
      await refused(await replayed(`format=${format}&from=${inside + 1}`))
      await refused(await replayed(`format=${format}&to=${inside}`))
    }
    await refused(await fork(inside))
  }
  const rest = await (await replayed(`format=text&from=${firstSeq}`)).text()
  expect(rest).toBe(merged.delta)
  expect((await (await replayed('format=text&from=1')).text()).length).toBe(wholeText)
  expect(await (await replayed(`format=text&from=${seq + 1}`)).text()).toBe('')
  for (const at of [firstSeq - 1, seq]) {
    const forked = await fork(at)
    expect(forked.status).toBe(201)
    const { id: branch } = (await forked.json()) as { id: string }
    expect(await (await fetch(`${server.url}/api/runs/${branch}/events?follow=1`)).text()).toContain('"run-end"')
  }
  const events = await fetch(`${server.url}/api/runs/${id}/events?after=0`)
  expect((await events.text()).match(/"seq":/gu)!.length).toBe((await entriesOf(server.store, id)).length)
})
