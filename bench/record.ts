/**
 * The record of a run of a million deltas: what it takes to write and to fill the tables, what is asked of it, and how large it is before
 * and after its compaction. Run with `npm run bench -- record`.
 */
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createOutline } from '../src/fold/outline.ts'
import { readView } from '../src/fold/read-view.ts'
import type { Entry } from '../src/part/entry.ts'
import type { Log } from '../src/part/log.ts'
import { createRuntime } from '../src/project/create-runtime.ts'
import { replay } from '../src/record/replay/replay.ts'
import { exportRun } from '../src/record/transfer/export.ts'
import { getStreamEvents } from '../src/store/stream-events.ts'
import { sqliteStore } from '../src/store/sqlite/store.ts'
import { uiWire } from '../src/wire/ui/ui.ts'
import { answerCalls } from './calls.ts'
import { pipelineOfRun, recordedEntries, wordAt, wordsOfBlock } from './recorded-run.ts'
import type { Options, Result, ResultRow } from './scenario.ts'

const run = 'run_record'

/** The query of the Smithers document. */
const slowCalls = `SELECT * FROM agent_stream_events WHERE event_type = 'tool-call' AND agent_id IN (
  SELECT agent_id FROM agent_stream_events WHERE event_type = 'tool-result' AND timestamp - (
    SELECT timestamp FROM agent_stream_events e2
    WHERE e2.event_type = 'tool-call' AND e2.event_id = agent_stream_events.event_id) > 5000)`

async function drain(pieces: AsyncIterable<string | Uint8Array>): Promise<number> {
  let size = 0
  for await (const piece of pieces) size += piece.length
  return size
}

async function outlineOf(log: Log): Promise<number> {
  const outline = createOutline()
  let size = 0
  for await (const batch of log.read(run)) {
    for (const entry of batch) outline.apply(entry)
    size += JSON.stringify(outline.take({ settled: true })).length
  }
  return size
}

async function measure({ quick }: Options): Promise<Result[]> {
  const deltas = quick ? 4000 : 1_000_000
  const dir = mkdtempSync(join(tmpdir(), 'millrace-bench-'))
  const file = join(dir, 'millrace.db')
  const rows: ResultRow[] = []
  const notes: string[] = []
  let store = sqliteStore(file)
  const records = () => store.records!

  async function time(name: string, title: string, work: () => Promise<unknown>): Promise<void> {
    globalThis.gc?.()
    const before = process.memoryUsage().rss
    let peak = before
    const sampler = setInterval(() => (peak = Math.max(peak, process.memoryUsage().rss)), 5)
    const cpu = process.cpuUsage()
    const began = performance.now()
    await work()
    const ms = performance.now() - began
    const { user, system } = process.cpuUsage(cpu)
    clearInterval(sampler)
    peak = Math.max(peak, process.memoryUsage().rss)
    rows.push({ name, title, samples: [{ ms, cpu: (user + system) / 1000, mb: (peak - before) / 2 ** 20 }] })
  }

  /** The size of the file when everything is written back. */
  async function sizeOf(): Promise<number> {
    await store.close()
    const { size } = statSync(file)
    store = sqliteStore(file)
    return size
  }

  async function ask(when: string): Promise<void> {
    const named = (name: string) => `${name}${when === '' ? '' : '-compacted'}`
    const titled = (title: string) => `${title}${when}`
    const types = ['tool-call', 'tool-result']
    await time(named('show'), titled('show: the view, folded or kept'), () => readView(store, run))
    await time(named('outline'), titled('the outline, for a page'), () => outlineOf(store.log))
    await time(named('events'), titled('tool calls and results by getStreamEvents'), () =>
      getStreamEvents(store, run, { types }),
    )
    await time(named('page'), titled('1,000 deltas from the middle by getStreamEvents'), () =>
      getStreamEvents(store, run, { types: ['text-delta'], after: deltas >> 1, limit: 1000 }),
    )
    await time(named('slow'), titled('tool calls over 5 s, as in the Smithers document'), () =>
      records().query(slowCalls),
    )
    await time(named('search'), titled('search: two words, 50 places'), () =>
      records().search({ q: `${wordAt(1)}${wordAt(2)}` }),
    )
    await time(named('replay'), titled('replay at once as a UI stream'), () =>
      drain(replay(store, run, { wire: uiWire, speed: Infinity })),
    )
    await time(named('export'), titled('export as NDJSON'), () => drain(exportRun(store, run)))
  }

  try {
    let text = 0
    await time('append', 'append, 50 entries at a time', async () => {
      let batch: Entry[] = []
      for (const entry of recordedEntries(run, deltas)) {
        if (entry.type === 'text-delta') text += entry.delta.length
        batch.push(entry)
        if (batch.length < 50 && entry.type !== 'run-end') continue
        await store.log.append(run, 1, batch)
        batch = []
      }
    })
    await time('fill', 'fill the tables and the search', () => records().settle())
    notes.push(`${deltas} deltas with ${mb(text)} MB of text: the file has ${mb(await sizeOf())} MB.`)
    await ask('')
    const { lastSeq } = (await store.runs.get(run))!
    const runtime = createRuntime({ agents: { a: pipelineOfRun }, store })
    await time('fork', 'fork at its end, which goes on to its own', async () => {
      const { result } = await runtime.fork(run, { at: lastSeq, runId: 'run_fork' })
      const { outcome } = await result
      if (outcome !== 'completed') throw new Error(`the fork ended ${outcome}`)
    })
    await runtime.close(0)
    store = sqliteStore(file)
    await store.upkeep!.drop('run_fork')
    let log = 0
    await time('compact', 'compact', async () => {
      log = (await store.upkeep!.compact(run))!.bytesAfter
    })
    await time('vacuum', 'vacuum', () => store.upkeep!.vacuum())
    const size = await sizeOf()
    notes.push(`Compacted, its log has ${mb(log)} MB: ${(log / text).toFixed(2)} × its text.`)
    notes.push(`The file then has ${mb(size)} MB: ${(size / text).toFixed(2)} × its text, tables and search included.`)
    await ask(', compacted')
  } finally {
    await store.close()
    rmSync(dir, { recursive: true, force: true })
  }
  return [
    {
      scenario: 'record',
      title: `One run of ${deltas} deltas in blocks of ${wordsOfBlock}`,
      reference: 'append',
      columns: [
        { key: 'ms', title: 'ms', digits: 1 },
        { key: 'cpu', title: 'CPU ms', digits: 1 },
        { key: 'mb', title: 'memory +MB', digits: 0 },
      ],
      rows,
      notes,
    },
  ]
}

function mb(bytes: number): string {
  return (bytes / 1e6).toFixed(1)
}

answerCalls({ measure })
