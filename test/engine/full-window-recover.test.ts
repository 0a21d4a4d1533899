/** The runtime is dropped at every entry of a run that uses all that long runs have: nothing is made twice, and the end is the same. */
import { beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { Entry } from '../../src/part/entry.ts'
import { createEngine, entriesOf, only, type EngineOptions } from '../support/engine.ts'
import { cutAfter } from '../support/going-on.ts'
import { startStrictServer, type StrictServer } from '../support/strict-model-server.ts'
import { watchInbox } from '../support/steering.ts'
import { placesOf } from '../support/thorough.ts'
import { firstTask, isSummary, pageText, readPages, windowAgent } from '../support/window-kills.ts'

const skills = '[{ name: counting, description: How pages are counted, folder: skills/counting }]'

function live(server: StrictServer, onRead: (page: number) => unknown = () => undefined) {
  const ran: number[] = []
  const execute = async ({ page }: { page: number }) => {
    ran.push(page)
    await onRead(page)
    return pageText(page)
  }
  const options: EngineOptions = {
    agents: { a: windowAgent('box:m', skills) },
    tools: { read: { parameters: z.object({ page: z.number() }), execute } },
    models: { endpoints: [{ name: 'box', baseURL: server.baseURL, protocol: 'anthropic' }] },
  }
  return { options, ran }
}

describe('a crash behind any entry', () => {
  let whole: Entry[]
  beforeAll(async () => {
    const server = await startStrictServer({ window: 16_000, answer: (asked) => readPages(asked) })
    const inbox = watchInbox()
    let tell = (): unknown => undefined
    const { options } = live(server, (page) => (page === 3 ? tell() : undefined))
    const engine = createEngine({ ...options, wrapStore: inbox.wrapStore })
    try {
      const run = await engine.runtime.start(
        'a',
        { messages: [{ role: 'user', content: firstTask }] },
        { threadId: 't' },
      )
      tell = async () => {
        await engine.runtime.tell(run.id, { id: 'm1', content: 'Only the last year' })
        await inbox.heard('m1')
      }
      expect(await run.result).toMatchObject({ outcome: 'completed', text: `22 pages. I was told: ${firstTask}` })
      whole = await entriesOf(engine.store, run.id)
      expect(server.refused).toEqual([])
    } finally {
      await engine.close()
      await server.close()
    }
  })

  test('the whole run uses all of it', () => {
    expect(only(whole, 'summarized').length).toBeGreaterThan(1)
    expect(only(whole, 'prompt').some(({ shortened }) => shortened !== undefined)).toBe(true)
    expect(only(whole, 'message')).toMatchObject([{ id: 'm1' }])
    expect(only(whole, 'tool-call')[0]).toMatchObject({ toolName: 'useSkill' })
  })

  test('nothing twice, the same end, and no summary again that is recorded', { timeout: 600_000 }, async () => {
    const { runId } = only(whole, 'run-start')[0]!
    for (const k of placesOf(whole.length - 1, 0, 25)) {
      const prefix = whole.slice(0, k)
      const where = `cut after ${k}, ${prefix.at(-1)!.type} ${prefix.at(-1)!.step}`
      const server = await startStrictServer({ window: 16_000, answer: (asked) => readPages(asked) })
      const { options, ran } = live(server)
      const engine = await cutAfter(whole, k, options)
      try {
        expect(await engine.runtime.recover(), where).toEqual({ resumed: 1, interrupted: 0 })
        const result = await (await engine.runtime.open(runId))!.result
        expect([server.refused, result.error], where).toEqual([[], undefined])
        expect(result, where).toMatchObject({ outcome: 'completed', text: expect.stringContaining('22 pages.') })
        const entries = await entriesOf(engine.store, runId)
        expect(entries.slice(0, k), where).toEqual(prefix)
        expect(only(entries, 'run-end')[0], where).toMatchObject({ outcome: 'completed' })
        // A page whose reading has begun is not read again.
        const begun = only(prefix, 'step-start').filter(({ toolName }) => toolName === 'read').length
        expect(ran.length, where).toBe(22 - begun)
        expect(new Set(ran).size, where).toBe(ran.length)
        // Each summary is made once, but for one whose call had not ended.
        const made = only(entries, 'summarized')
        const recorded = only(prefix, 'summarized').length
        const last = prefix.findLastIndex(({ type }) => type === 'summarized')
        const inner = only(prefix.slice(last + 1), 'step-start').filter(({ stepType }) => stepType === 'summary')
        const isSaid =
          inner.length > 0 &&
          only(prefix.slice(last + 1), 'finish').some(({ step }) => step.startsWith(`${inner[0]!.step}/`))
        expect(server.requests.filter(isSummary).length, where).toBe(made.length - recorded - Number(isSaid))
        expect(made.slice(0, recorded), where).toEqual(only(prefix, 'summarized'))
        expect(
          only(entries, 'warning').map(({ code }) => code),
          where,
        ).not.toContain('history-cut')
        for (const [i, { upTo }] of made.entries()) expect(upTo, where).toBeGreaterThan(made[i - 1]?.upTo ?? 0)
      } finally {
        await engine.close()
        await server.close()
      }
    }
  })
})

test('a crash within a summary that a refused call has asked for: the call and its summary are made again', async () => {
  const overflowing = (server: StrictServer): EngineOptions => {
    const { options } = live(server)
    const yaml = windowAgent('box:m', skills).replace('{ window: 16k, keep: 4k }', '{}')
    return { ...options, agents: { a: yaml } }
  }
  const start = () => startStrictServer({ window: 16_000, answer: (asked) => readPages(asked, 8) })
  const server = await start()
  const engine = createEngine(overflowing(server))
  const input = { messages: [{ role: 'user', content: firstTask }] }
  const run = await engine.runtime.start('a', input, { threadId: 't' })
  expect(await run.result).toMatchObject({ outcome: 'completed' })
  const whole = await entriesOf(engine.store, run.id)
  await engine.close()
  await server.close()
  const from = only(whole, 'step-start').find(({ stepType }) => stepType === 'summary')!.seq
  const [made] = only(whole, 'summarized')
  expect(made).toMatchObject({ reason: 'overflow' })
  for (let k = from; k < made!.seq; k++) {
    const where = `cut after ${k}, ${whole[k - 1]!.type} ${whole[k - 1]!.step}`
    const again = await start()
    const next = await cutAfter(whole, k, overflowing(again))
    try {
      await next.runtime.recover()
      const result = await (await next.runtime.open(run.id))!.result
      expect(result, where).toMatchObject({ outcome: 'completed', text: expect.stringContaining('8 pages.') })
      const entries = await entriesOf(next.store, run.id)
      // A call that was cut off counts, too.
      expect(only(entries, 'usage').length, where).toBe(only(entries, 'prompt').length)
    } finally {
      await next.close()
      await again.close()
    }
  }
})
