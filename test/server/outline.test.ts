/** What the page reads of one run: its outline, the run as it was after an entry, and whole prompts. */
import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, onTestFinished, test } from 'vitest'
import { clipOutline, mergeOutline } from '../../src/fold/merge-outline.ts'
import { createOutline } from '../../src/fold/outline.ts'
import type { OutlineItem, OutlineMore } from '../../src/fold/outline-item.ts'
import { createRunFold } from '../../src/fold/run-fold.ts'
import type { WholePrompt } from '../../src/fold/whole-prompt.ts'
import type { Entry } from '../../src/part/entry.ts'
import type { Log } from '../../src/part/log.ts'
import { createHandler } from '../../src/server/handler.ts'
import { createScriptedModel, finish, latch, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import { agent, createEngine, until, type EngineOptions } from '../support/engine.ts'

const messages = [{ role: 'user' as const, content: 'Hi' }]

function serve(options: EngineOptions) {
  const engine = createEngine(options)
  onTestFinished(() => engine.close())
  const handler = createHandler({ runtime: engine.runtime, authorize: () => true })
  const get = (path: string) => handler(new Request(`http://x/api/runs/${path}`))
  const outline = async (id: string, query = '') => lines<OutlineItem>(await get(`${id}/outline${query}`))
  return { ...engine, get, outline }
}

async function lines<T>(response: Response): Promise<T[]> {
  return (await response.text())
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as T)
}

const golden = new URL('../../src/wire/golden/', import.meta.url)

/** All recorded runs, each with an id of its own. */
async function recorded({ store }: ReturnType<typeof serve>): Promise<[id: string, entries: Entry[]][]> {
  const runs: [string, Entry[]][] = []
  for (const name of readdirSync(golden).filter((each) => each.endsWith('.ndjson'))) {
    const id = `run_${name.replace('.ndjson', '')}`
    const entries = readFileSync(new URL(name, golden), 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Entry)
    entries[0] = { ...entries[0]!, runId: id } as Entry
    await store.log.append(id, 1, entries)
    runs.push([id, entries])
  }
  return runs
}

describe('outline route', () => {
  test('the outline of a run, all of it or what has changed behind an entry; and the run as it was after any entry', async () => {
    const server = serve({ agents: { a: agent() }, scripts: { m: createScriptedModel([]) } })
    for (const [id, entries] of await recorded(server)) {
      const outline = createOutline()
      const fold = createRunFold()
      for (const [i, entry] of entries.entries()) {
        outline.apply(entry)
        fold.apply(entry)
        if (i % 5 !== 2 && i < entries.length - 1) continue
        const { runId, ...view } = JSON.parse(JSON.stringify(fold.view())) as { runId: string }
        expect(await (await server.get(`${id}?at=${entry.seq}`)).json()).toEqual({ id: runId, ...view })
        const later = await server.outline(id, `?after=${entry.seq}`)
        const before = outline.items()
        expect(mergeOutline([...before, ...later])).toEqual(await server.outline(id).then(mergeOutline))
        expect(clipOutline(later, entry.seq).every((item) => before.some((old) => fromOf(old) === fromOf(item)))).toBe(
          true,
        )
      }
      expect(await server.outline(id, `?after=${entries.length}`)).toEqual([])
      expect(mergeOutline(await server.outline(id))).toEqual(outline.items())
    }
    const { error } = (await (await server.get('run_router?at=100')).json()) as { error: { message: string } }
    expect(error.message).toContain('at must be a whole number from 1 to')
    expect((await server.get('run_router/outline?after=100')).status).toBe(400)
    expect((await server.get('nothing/outline')).status).toBe(404)
    expect((await server.get('nothing?at=1')).status).toBe(404)
  })

  function fromOf(item: OutlineItem): number {
    return item.k === 'mark' ? item.seq : item.from
  }

  test('the outline of a run that goes on has what is open', async () => {
    const gate = latch()
    const model = createScriptedModel([
      [
        { type: 'text-start', id: 't' },
        { type: 'text-delta', id: 't', delta: 'Hello' },
        gate,
        { type: 'text-end', id: 't' },
        finish(),
      ],
    ])
    const server = serve({ agents: { a: agent() }, scripts: { m: model } })
    const run = await server.runtime.start('a', { messages })
    await until(server.store, run.id, ({ type }) => type === 'text-delta')
    const live = await server.outline(run.id)
    const block = live.find((item) => item.k === 'block')!
    expect(block).toMatchObject({ kind: 'text', chars: 5, n: 1 })
    expect(block).not.toHaveProperty('end')
    gate.open()
    await run.result
    const rest = await server.outline(run.id, `?after=${createOutline(live).lastSeq}`)
    expect(rest).toContainEqual(expect.objectContaining({ k: 'block', end: expect.any(Number) }))
    expect(rest).toContainEqual(expect.objectContaining({ k: 'mark', type: 'run-end', note: 'completed' }))
  })

  test('the whole prompt of each model call is what the model was sent', async () => {
    const model = createScriptedModel([
      [text('I look.'), toolCall('c', 'look', { at: 1 }), finish('tool-calls')],
      [text('Seen.'), finish()],
    ])
    const server = serve({
      agents: { a: agent('system: Be brief.\ntools: [look]') },
      scripts: { m: model },
      tools: { look: { parameters: { type: 'object' }, execute: () => ({ seen: true }) } },
    })
    const run = await server.runtime.start('a', { messages })
    await run.result
    const read = async (step: string) =>
      (await (await server.get(`${run.id}/prompt?step=${step}`)).json()) as WholePrompt
    expect(await read('main/answer/1')).toMatchObject({
      step: 'main/answer/1',
      model: 'script:m',
      system: 'Be brief.',
      messages,
      tools: [{ name: 'look' }],
    })
    const second = await read('main/answer/3')
    expect(second.messages).toMatchObject([
      ...messages,
      {
        role: 'assistant',
        content: [
          { type: 'text', text: 'I look.' },
          { type: 'tool-call', toolCallId: 'c', input: { at: 1 } },
        ],
      },
      { role: 'tool', content: [{ type: 'tool-result', toolCallId: 'c', output: { value: { seen: true } } }] },
    ])
    // The same turns as those of the call.
    const sent = model.calls[1]!.options.prompt.filter(({ role }) => role !== 'system')
    expect(second.messages.map(({ role }) => role)).toEqual(sent.map(({ role }) => role))
    expect(await read('main/answr/1')).toMatchObject({
      error: { message: expect.stringContaining('did you mean "main/answer/1"') },
    })
  })
})

test('a page of an outline costs as much in a long run as in a short one, and the pages come to the whole', async () => {
  let read = 0
  const server = serve({
    agents: { a: agent() },
    scripts: { m: createScriptedModel([]) },
    wrapStore: (store) => ({
      ...store,
      log: Object.assign(Object.create(store.log) as Log, { read: counted(store.log) }),
    }),
  })
  function counted(log: Log): Log['read'] {
    return ((...asked: Parameters<Log['read']>) => count(log.read(...asked))) as Log['read']
  }
  async function* count(batches: AsyncIterable<Entry[]>): AsyncGenerator<Entry[]> {
    for await (const batch of batches) {
      read += batch.length
      yield batch
    }
  }
  const sizes = []
  for (const steps of [2000, 6000]) {
    const id = `run_${steps}`
    const entries = longRun(id, steps)
    for (let at = 0; at < entries.length; at += 500) await server.store.log.append(id, 1, entries.slice(at, at + 500))
    read = 0
    const page = await server.outline(id, '?limit=100')
    // Redis reads a page of 256 appends, however long these are.
    sizes.push({ read: server.store.fleet.shared ? 0 : read, items: page.length, bytes: JSON.stringify(page).length })
    const all: OutlineItem[] = []
    for (let query: string | undefined = '?limit=1500'; query !== undefined;) {
      const lines: (OutlineItem | OutlineMore)[] = await server.outline(id, query)
      const more = lines.find((line) => line.k === 'more')
      all.push(...lines.filter((line) => line.k !== 'more'))
      // The third one is all of the rest.
      query = more && (query.includes('after') ? `?after=${more.after}` : `?after=${more.after}&limit=1500`)
      if (more !== undefined) expect(lines.length).toBe(1501)
    }
    expect(mergeOutline(all)).toEqual(mergeOutline(await server.outline(id)))
  }
  expect(sizes[1]).toEqual(sizes[0])
  expect(sizes[0]).toMatchObject({ items: 101 })
  expect((await server.get('run_2000/outline?limit=0')).status).toBe(400)
})

/** A run of tool calls, one after the other. */
function longRun(runId: string, steps: number): Entry[] {
  const entries: object[] = [
    { step: '', type: 'run-start', runId, agent: 'a', threadId: runId, protocol: 'api', pipeline: '', input: {} },
  ]
  const start = (step: string, kind: string) =>
    entries.push({ step, type: 'step-start', stepType: kind, kind, attempt: 1 })
  start('main/a', 'tool-loop')
  for (let i = 1; i <= steps; i++) {
    const step = `main/a/${i}`
    start(step, 'tool-call')
    entries.push({ step, type: 'step-finish', duration: 1, result: `seen ${10_000 + i}` })
  }
  entries.push({ step: 'main/a', type: 'step-finish', duration: 1 })
  entries.push({ step: '', type: 'run-end', outcome: 'completed', usage: {} })
  return entries.map((entry, i) => ({ seq: i + 1, timestamp: 1000 + i, ...entry })) as Entry[]
}
