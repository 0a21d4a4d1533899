import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import type { Entry } from '../../part/entry.ts'
import { recordedEntries, recordedRun } from '../../part/recording.ts'
import { withoutSuperseded } from '../../fold/superseded.ts'
import type { Store } from '../../part/log.ts'
import { memoryStore } from '../../store/memory-store.ts'
import { sqliteStore } from '../../store/sqlite/store.ts'
import { builtinWires } from '../../wire/builtin-wires.ts'
import { uiWire } from '../../wire/ui/ui.ts'
import { lastResume } from '../../wire/wire.contract.ts'
import { diffRuns } from '../diff/diff.ts'
import { importNdjson } from '../transfer/import.ts'
import { exportRun } from '../transfer/export.ts'
import { longestPause, type ReplayClock } from './pace.ts'
import { replay, replayRecording, type ReplayOptions } from './replay.ts'

const folder = new URL('../../wire/golden/', import.meta.url)
const names = readdirSync(folder).flatMap((file) => /^(.+)\.ndjson$/u.exec(file)?.[1] ?? [])
const read = (file: string) => readFileSync(new URL(file, folder), 'utf8')
const entriesOf = (name: string) =>
  read(`${name}.ndjson`)
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Entry)

async function text(pieces: AsyncIterable<string>): Promise<string> {
  const all: string[] = []
  try {
    for await (const piece of pieces) all.push(piece)
  } catch (error) {
    if ((error as { code?: string }).code !== 'incomplete') throw error
    all.push('<transfer broken>')
  }
  return all.join('')
}

const played = (entries: readonly Entry[], options: ReplayOptions) =>
  text(replayRecording(recordedEntries('r', entries), { speed: Infinity, ...options }))

/** The golden files: the ending of each, and the wire and the options with which it was written. */
const forms: [ending: string, format: string, options?: object][] = [
  ['text', 'text'],
  ['ui', 'ui'],
  ['ui7', 'ui', { ui7: true }],
  ['openai', 'openai'],
  ['openai-extensions', 'openai', { includeUsage: true, extensions: ['tools', 'trace'], toolOutputMaxChars: 40 }],
  ['ag-ui', 'ag-ui'],
  ['ag-ui-old', 'ag-ui', { old: true }],
]
const dir = mkdtempSync(join(tmpdir(), 'millrace-replay-'))
afterAll(() => rmSync(dir, { recursive: true }))
const stores: [string, (name: string) => Store][] = [
  ['memory', () => memoryStore()],
  ['SQLite', (name) => sqliteStore(join(dir, `${name}.db`))],
]

describe.each(names)('%s, replayed', (name) => {
  const entries = entriesOf(name)
  const isReset = entries.some(({ type }) => type === 'step-reset')
  const shown = withoutSuperseded(entries)

  test.each(stores)('is what the live run sent, through every wire, from %s', async (_, open) => {
    const store = open(name)
    const { id } = await importNdjson(store, read(`${name}.ndjson`))
    for (const [ending, format, options = {}] of forms) {
      const sent = await text(replay(store, id, { format, options, speed: Infinity }))
      const file = `${name}.${ending}.txt`
      // Who reads it later never sees what a crash retracted.
      if (isReset) expect(sent, ending).toBe(await played(shown, { format, options }))
      // The older clients have a file of their own where it differs.
      else expect(sent, ending).toBe(read(existsSync(new URL(file, folder)) ? file : `${name}.ag-ui.txt`))
    }
    expect(await text(replay(store, id, { format: 'parts', speed: Infinity }))).toBe(read(`${name}.ndjson`))
    const exported = await text(exportRun(store, id))
    expect(exported).toBe(read(`${name}.ndjson`))
    const other = memoryStore()
    await importNdjson(other, exported)
    expect((await diffRuns(recordedRun(store.log, id), recordedRun(other.log, id))).same).toBe(true)
    await Promise.all([store.close(), other.close()])
  })

  test('up to a place it is what a client gets of a log that ends there', async () => {
    for (const [, format, options = {}] of forms) {
      for (let k = 1; k <= entries.length; k += 3) {
        const so = entries.slice(0, k)
        const encoder = builtinWires.get(format)!.createEncoder({ resumedAt: lastResume(so) }, options)
        const sent = withoutSuperseded(so)
          .map((entry) => encoder.encode(entry))
          .join('')
        const expected = `${sent}${encoder.state === 'broken' ? '<transfer broken>' : ''}`
        expect(await played(entries, { format, options, to: k }), `${format} to ${k}`).toBe(expected)
      }
    }
  })

  test('up to a place and from there on is the whole, where no crash or pause lies ahead', async () => {
    const resumedAt = lastResume(entries)
    const gone = entries.flatMap((entry) => (shown.includes(entry) ? [] : [entry.seq]))
    for (const format of builtinWires.keys()) {
      const whole = await played(entries, { format })
      for (let k = 1; k < entries.length; k += 3) {
        const isShownLater = gone.length > 0 && k >= gone[0]! && k < gone.at(-1)!
        if (k < resumedAt || isShownLater) continue
        const start = await played(entries, { format, to: k })
        const rest = await played(entries, { format, from: k + 1 })
        expect(start.replace('<transfer broken>', '') + rest, `${format} at ${k}`).toBe(whole)
      }
    }
  })
})

/** A clock that goes only when somebody waits. */
function fakeClock(): ReplayClock & { waits: number[] } {
  let now = 0
  const waits: number[] = []
  return {
    waits,
    now: () => now,
    async wait(ms) {
      waits.push(ms)
      now += ms
    },
  }
}

const at = (times: number[]): Entry[] =>
  entriesOf('plain-text')
    .slice(0, times.length)
    .map((entry, i) => ({ ...entry, timestamp: times[i]! }))

test.each([
  [1, [100, 50, longestPause]],
  [10, [10, 5, longestPause]],
  [0.5, [200, 100, longestPause]],
  [Infinity, []],
])('at speed %d the entries come in their rhythm, without long pauses', async (speed, expected) => {
  const clock = fakeClock()
  const entries = at([1000, 1100, 1150, 1150 + 3_600_000])
  const pieces: string[] = []
  for await (const piece of replayRecording(recordedEntries('r', entries), { speed, clock })) pieces.push(piece)
  expect(clock.waits).toEqual(expected)
  expect(pieces).toHaveLength(speed === Infinity ? 1 : 4)
})

test('a clock that was set back does not stop it, and what the sending takes does not slow it down', async () => {
  const clock = fakeClock()
  const entries = at([1000, 900, 1100, 1200])
  for await (const _ of replayRecording(recordedEntries('r', entries), { clock })) await clock.wait(30, undefined)
  expect(clock.waits.filter((ms) => ms !== 30)).toEqual([70, 70])
})

test('it is left by its signal, also while it waits; step by step it asks before each entry', async () => {
  const leave = new AbortController()
  const clock: ReplayClock = { now: () => 0, wait: async () => leave.abort() }
  const pieces: string[] = []
  for await (const piece of replayRecording(recordedEntries('r', at([1, 2, 3])), { clock, signal: leave.signal })) {
    pieces.push(piece)
  }
  expect(pieces).toHaveLength(1)
  const asked: number[] = []
  const step = async ({ seq }: Entry) => asked.push(seq) < 3
  expect((await played(at([1, 2, 3, 4]), { step })).split('\n')).toHaveLength(3)
  expect(asked).toEqual([1, 2, 3])
})

test('of a run that goes on, what is recorded so far is played; a failure can end it', async () => {
  const store = memoryStore()
  const entries = entriesOf('plain-text')
  const { runId } = entries[0] as Extract<Entry, { type: 'run-start' }>
  await store.log.append(runId, 1, entries.slice(0, 6))
  const whole = await played(entries, { format: 'ui' })
  const far = await text(replay(store, runId, { wire: uiWire, speed: Infinity }))
  expect(far.length).toBeGreaterThan(0)
  expect(whole.startsWith(far) && far.length < whole.length).toBe(true)
  const unfinished = { code: 'replay-over', message: 'It goes on.' }
  expect(await text(replay(store, runId, { wire: uiWire, speed: Infinity, unfinished }))).toContain('It goes on.')
  await store.close()
})

test.each([
  ['an unknown run', 'none', {}, 'unknown-run', 'There is no run none.'],
  ['no speed', 'r', { speed: 0 }, 'bad-input', '"speed" must be a number from 0.1 on, or max.'],
  ['a place behind its end', 'r', { to: 99 }, 'bad-input', '"to" must be between 1 and 4, the last entry.'],
  [
    'an end before its start',
    'r',
    { from: 3, to: 2 },
    'bad-input',
    '"to" must be at least 3, where the replay begins.',
  ],
  [
    'no such wire',
    'r',
    { format: 'xml' },
    'bad-input',
    `"format" must be one of ${[...builtinWires.keys()].join(', ')}.`,
  ],
])('%s is refused', async (_, run, options, code, message) => {
  const store = memoryStore()
  await store.log.append('r', 1, [
    { ...entriesOf('plain-text')[0]!, runId: 'r' } as Entry,
    ...at([1, 2, 3, 4]).slice(1),
  ])
  await expect(text(replay(store, run, options))).rejects.toMatchObject({ code, message })
  await store.close()
})
