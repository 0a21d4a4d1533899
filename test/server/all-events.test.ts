/** `GET /api/events`: what happens in all runs, as it happens, for monitors. */
import { describe, expect, test } from 'vitest'
import type { Entry } from '../../src/part/entry.ts'
import { createScriptedModel, finish, latch, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import { agent, entriesOf } from '../support/engine.ts'
import { parseSse } from '../sse.ts'
import { messages, says, type Body, start } from './all-events-readers.ts'

type Frame = { at: string; run: string } & Entry

function framesIn(body: string): Frame[] {
  const whole = body.slice(0, body.lastIndexOf('\n\n') + 2)
  return parseSse(new TextEncoder().encode(whole)).map(({ id, data }) => ({ at: id, ...JSON.parse(data) }) as Frame)
}

/** Reads until a frame is this. */
async function until(body: Body, fits: (frame: Frame) => boolean): Promise<Frame[]> {
  for (;;) {
    const frames = framesIn(body.text)
    if (frames.some(fits)) return frames
    await body.more()
  }
}

describe('events of all runs', () => {
  test('an entry is at the monitor while the model is held; deltas only when they are asked for', async () => {
    const gate = latch()
    const held = says([text('Hal', 'f'), gate, finish()])
    const { watch, runtime } = await start({ scripts: { m: held } })
    const [all, deltas] = [await watch(), await watch('?types=text-delta')]
    const run = await runtime.start('a', { messages })
    await until(all, ({ type }) => type === 'text-start')
    await until(deltas, (entry) => entry.type === 'text-delta' && entry.delta.endsWith('f'))
    gate.open()
    await run.result
    const frames = await until(all, ({ type }) => type === 'run-end')
    expect(frames[0]).toMatchObject({ run: run.id, seq: 1, type: 'run-start', agent: 'a' })
    expect(frames.some(({ type }) => type === 'text-delta')).toBe(false)
    expect(framesIn(deltas.text).map(({ type }) => type)).toContain('text-delta')
  })

  test('no secret reaches a monitor: not from a prompt, an answer or a tool', async () => {
    const secret = 'canary-7f3a-9c21'
    const model = createScriptedModel([
      [toolCall('c', 'look', { q: secret }), finish('tool-calls')],
      [text('It is canary-', '7f3a-9c21'), finish()],
    ])
    const tools = { look: { parameters: { type: 'object' }, execute: () => secret } }
    const { watch, runtime } = await start({
      agents: { a: agent('tools: [look]') },
      scripts: { m: model },
      tools,
      secrets: { values: [secret] },
    })
    const monitors = [await watch(), await watch('?types=text-delta,tool-input-delta,run-end')]
    await (
      await runtime.start('a', { messages: [{ role: 'user', content: secret }] })
    ).result
    for (const each of monitors) {
      const frames = await until(each, ({ type }) => type === 'run-end')
      expect(JSON.stringify(frames)).not.toMatch(/canary|7f3a/u)
    }
    expect(monitors[0]!.text).toContain('"type":"tool-result"')
  })

  test('from any frame on a monitor gets exactly the rest', async () => {
    const { watch, run, store } = await start()
    const ids = [(await run('a')).id, (await run('b')).id]
    const ended = async (search: string, headers?: Record<string, string>) => {
      const body = await watch(search, headers)
      return until(body, ({ run: id, type }) => id === ids[1] && type === 'run-end')
    }
    const frames = await ended('?after=0')
    const told = await Promise.all(
      ids.map(async (id) => (await entriesOf(store, id)).map((entry) => ({ run: id, ...entry }))),
    )
    const expected = told.flat().filter(({ type }) => type !== 'text-delta')
    const plain = JSON.parse(JSON.stringify(expected)) as Omit<Frame, 'at'>[]
    expect(frames).toEqual(plain.map((entry) => ({ at: expect.stringMatching(/^[\d.]+$/u) as string, ...entry })))
    // Entries that were stored together have ids of their own.
    expect(new Set(frames.map(({ at }) => at)).size).toBe(frames.length)
    for (const [i, { at }] of frames.slice(0, -1).entries()) {
      const rest = frames.slice(i + 1)
      expect(await ended('', { 'last-event-id': at })).toEqual(rest)
      if (i % 4 === 0) expect(await ended(`?after=${at}`)).toEqual(rest)
    }
  })

  test('by agent, by thread, and by runs that do not exist yet', async () => {
    const { watch, run, runtime } = await start()
    await run('a')
    const bodies = {
      b: await watch('?agent=b'),
      thread: await watch('?thread=t1,t2'),
      both: await watch('?agent=b&thread=t2'),
    }
    const first = await run('a', 't1')
    const second = await run('b', 't2')
    const late = await watch('?run=run_later,' + second.id + '&after=0')
    for (const body of [...Object.values(bodies), late]) {
      await until(body, ({ run: id, type }) => id === second.id && type === 'run-end')
    }
    const runsIn = (body: { text: string }) => [...new Set(framesIn(body.text).map(({ run: id }) => id))]
    expect(runsIn(bodies.b)).toEqual([second.id])
    expect(runsIn(bodies.both)).toEqual([second.id])
    expect(runsIn(bodies.thread)).toEqual([first.id, second.id])
    expect(runsIn(late)).toEqual([second.id])
    expect(runtime.active).toBe(0)
  })

  test('an idle monitor is kept, and goes on from where the others have come', async () => {
    const { watch, run, store } = await start({}, { keepAliveMs: 20 })
    const body = await watch('?run=none')
    await run('a')
    const last = await store.log.position()
    while (!body.text.includes(`: keep-alive\nid: ${last}\n\n`)) await body.more()
    expect(framesIn(body.text)).toEqual([])
  })

  test('positions of no event are refused; a client that reconnects after the log was lost gets the new one', async () => {
    const { watch, run, url } = await start()
    const { id } = await run('a')
    for (const [search, words] of [
      ['?after=99', /^after must be at most \d+, the position of the last event\.$/u],
      ['?after=x', /^after must be a whole number/u],
      ['?after=1.2.3', /^after must be a position/u],
      ['?types=run-star', /"run-star" is not one \(did you mean "run-start"\?\)/u],
      ['?runs=x', /^Unknown parameter "runs" \(did you mean "run"\?\)/u],
    ] as const) {
      const response = await fetch(`${url}/api/events${search}`)
      const { error } = (await response.json()) as { error: { message: string } }
      expect([response.status, error.message]).toEqual([400, expect.stringMatching(words)])
    }
    await until(await watch('', { 'last-event-id': '99' }), ({ run: of, seq }) => of === id && seq === 1)
  })

  test('who stood inside a change of a run that was deleted since gets all of the next run', async () => {
    const { watch, run, store } = await start({ keep: true })
    const gone = await run()
    const body = await watch('?after=0')
    const inside = (await until(body, ({ type }) => type === 'run-end')).find(({ at }) => at.includes('.'))
    await store.upkeep!.drop(gone.id)
    const next = await run()
    const frames = await until(await watch('', { 'last-event-id': inside!.at }), ({ type }) => type === 'run-end')
    expect(frames[0]).toMatchObject({ run: next.id, seq: 1, type: 'run-start' })
  })
})
