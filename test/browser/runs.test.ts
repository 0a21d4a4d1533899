/** The list of runs in a real browser: it is live, nothing moves under the reader, and every state is a link. */
import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import type { ExecutionContext } from '../../src/engine/registry.ts'
import { createScriptedModel, finish, latch, text, throws, toolCall } from '../../src/models/testing/scripted-model.ts'
import { agent, until } from '../support/engine.ts'
import { timed } from '../support/recorded.ts'
import type { TestServer } from '../support/server.ts'
import { expectAccessible } from './axe.ts'
import { duration } from '../../web/kit/format.ts'
import { launchBrowser } from './chromium.ts'
import { flaws } from './flaws.ts'
import { enter } from './keys.ts'
import { atEachScreen } from './screens.ts'
import { openWeb } from './web.ts'

const { browser, fault } = await launchBrowser()

const answers = (n: number) => Array.from({ length: n }, () => [text('Hello.'), finish()])

async function start({ post, store }: TestServer, agentId: string, words: string, threadId?: string): Promise<string> {
  const messages = [{ role: 'user', content: words }]
  const { id } = await (await post('/api/runs', { agentId, threadId, input: { messages } })).json()
  if (agentId === 'assistant') await until(store, id, ({ type }) => type === 'run-end')
  return id
}

const startOf = (runId: string, name: string) => ({
  type: 'run-start' as const,
  runId,
  agent: name,
  pipeline: agent(),
  threadId: `thread_${runId}`,
  protocol: 'api' as const,
  input: {},
})

const shortRun = (id: string, name: string, from: number) =>
  timed(id, from, [
    [0, '', startOf(id, name)],
    [9000, '', { type: 'run-end', outcome: 'completed', usage: { source: 'reported' } }],
  ])

/** It asks at once. */
const askedRun = (id: string, from: number) =>
  timed(id, from, [
    [0, '', startOf(id, 'asker')],
    [0, 'main/ask', { type: 'step-start', stepType: 'ask', kind: 'custom', attempt: 1 }],
    [0, 'main/ask', { type: 'request', requestId: 'q', kind: 'input', message: 'Go on?', deadline: from + 9e7 }],
    [0, '', { type: 'suspend', requests: ['q'] }],
  ])

const rowOf = (page: Page, words: string) => page.getByTestId('run-row').filter({ hasText: words })
const topOf = async (page: Page, words: string) => (await rowOf(page, words).boundingBox())!.y
const search = (page: Page) => new URL(page.url()).searchParams

describe.skipIf(browser === undefined)(`the runs${fault}`, () => {
  test('a row changes in its place while it runs; new ones wait unless the reader is at the top', async () => {
    const gate = latch()
    const held = createScriptedModel([[text('Hel', 'lo'), gate, finish()]])
    const { page, server } = await openWeb(browser, {
      engine: {
        agents: { assistant: agent(), held: agent().replace('script:m', 'script:held') },
        scripts: { m: createScriptedModel(answers(60)), held },
      },
      path: '/runs?lanes=off',
    })
    await page.getByText('Nothing has run yet.').waitFor()
    for (let i = 0; i < 50; i++) await start(server, 'assistant', `question ${i}.`)
    await start(server, 'held', 'the held one')
    await gate.reached
    const row = rowOf(page, 'the held one')
    await row.getByText('running').waitFor()
    expect(await page.getByTestId('run-row').first().textContent()).toContain('the held one')

    // The reader has scrolled: nothing moves, whatever begins and ends.
    const pane = page.getByTestId('list-pane')
    await pane.evaluate((element) => element.scrollTo({ top: 120 }))
    const before = await topOf(page, 'question 41.')
    await start(server, 'assistant', 'new one')
    await start(server, 'assistant', 'new two')
    gate.open()
    await page.getByRole('button', { name: '2 new' }).waitFor()
    expect(await topOf(page, 'question 41.')).toBe(before)
    await page.getByRole('button', { name: '2 new' }).click()
    await rowOf(page, 'new two').waitFor()
    expect(await pane.evaluate(({ scrollTop }) => scrollTop)).toBe(0)
    await row.getByText('completed').waitFor()
    expect(await page.getByTestId('run-row').nth(2).textContent()).toContain('the held one')
  })

  test('the timeline: whole lanes above its times, all on demand; what waits for long is there, and stays hatched', async () => {
    const m = createScriptedModel([[toolCall('c', 'pay', {}), finish('tool-calls')], ...answers(1)])
    const names = Array.from({ length: 9 }, (_, i) => `agent${i}`)
    const { page, server } = await openWeb(browser, {
      engine: {
        agents: { asker: agent('tools: [{ name: pay, approval: true }]'), assistant: agent() },
        scripts: { m },
        tools: { pay: { parameters: { type: 'object' }, execute: () => 'paid' } },
      },
    })
    const now = Date.now()
    for (const name of names)
      await server.store.log.append(`run_${name}`, 1, shortRun(`run_${name}`, name, now - 60_000))
    // It was asked two hours ago.
    await server.store.log.append('run_old', 1, askedRun('run_old', now - 7_200_000))
    // It waited for five minutes, and has ended.
    await server.store.log.append('run_yes', 1, [
      ...askedRun('run_yes', now - 400_000),
      ...timed('run_yes', now - 100_000, [
        [0, 'main/ask', { type: 'response', requestId: 'q', outcome: 'answered' }],
        [0, '', { type: 'resume', protocol: 'api' }],
        [1, 'main/ask', { type: 'step-finish', duration: 1 }],
        [20_000, '', { type: 'run-end', outcome: 'completed', usage: { source: 'reported' } }],
      ]).map((entry, i) => ({ ...entry, seq: 5 + i })),
    ])
    await page.goto(`${server.url}/runs`)
    const lanes = page.getByTestId('agent-lanes')
    const bar = (id: string) => lanes.locator(`a[href="/runs/${id}"]`)
    await page.getByRole('button', { name: 'Show all 10 agents' }).waitFor()
    await bar('run_old').waitFor({ state: 'attached' })
    const waited = (await bar('run_yes').getByTestId('waited').boundingBox())!
    const whole = (await bar('run_yes').boundingBox())!
    expect(waited.width / whole.width).toBeCloseTo(300 / 320, 1)

    // Whole lanes, the times below them, and more on demand.
    const places = () =>
      lanes.evaluate((element) => {
        const { bottom } = element.getBoundingClientRect()
        const rows = [...element.children].map((each) => each.getBoundingClientRect())
        return {
          cut: rows.filter((each) => each.top < bottom - 1 && each.bottom > bottom + 1).length,
          hidden: rows.filter((each) => each.top >= bottom - 1).length,
          below: document.querySelector('[data-testid=lanes-axis]')!.getBoundingClientRect().top >= bottom - 1,
        }
      })
    const folded = await places()
    expect(folded).toMatchObject({ cut: 0, below: true })
    expect(folded.hidden).toBeGreaterThan(0)
    await atEachScreen(page, 'runs-lanes', async ({ name }) => {
      expect(await flaws(page), name).toEqual([])
      await expectAccessible(page)
    })
    await page.setViewportSize({ width: 1440, height: 900 })
    await page.getByRole('button', { name: 'Show all 10 agents' }).press('Enter')
    await expect.poll(places).toEqual({ cut: 0, hidden: 0, below: true })
  })

  test('filters, search and selection are links; keys select, mark and open', async () => {
    const { page, server, openTab } = await openWeb(browser, {
      engine: {
        agents: { assistant: agent(), broken: agent().replace('script:m', 'script:broken') },
        scripts: {
          m: createScriptedModel([[text('Hello.'), finish('stop', { in: 30, out: 10 })], ...answers(2)]),
          broken: createScriptedModel([[throws(new Error('no'))]]),
        },
        pricing: { 'script:m': { input: 1e5, output: 2e5 } },
      },
      path: '/overview',
    })
    const first = await start(server, 'assistant', 'first words')
    const second = await start(server, 'assistant', 'second words')
    await start(server, 'broken', 'it breaks')
    await page.getByRole('link', { name: 'Runs' }).click()
    await rowOf(page, 'it breaks').getByText('failed', { exact: true }).waitFor()
    // Age, time taken, first token, tokens, cost: those of the stored row, and `–` for what nobody knows.
    const numbers = async (words: string) => (await rowOf(page, words).getByRole('cell').allInnerTexts()).slice(5, 10)
    const { endedAt, startedAt, firstTokenMs } = (await server.store.runs.get(first))!
    const [, took, firstToken, tokens, cost] = await numbers('first words')
    expect([took, firstToken, tokens, cost]).toEqual([
      duration(endedAt! - startedAt),
      duration(firstTokenMs!),
      '40',
      '$5.00',
    ])
    const failed = await numbers('it breaks')
    expect([failed[2], failed[4]]).toEqual(['–', '–'])

    // The timeline: a lane for each agent, a bar for each run, which leads there.
    const lanes = page.getByRole('region', { name: 'Recent runs by agent' })
    await expect
      .poll(() =>
        lanes
          .locator('[class*=lane]:has(> ul)')
          .evaluateAll((all) =>
            all.map((lane) => [lane.querySelector('span')!.textContent, lane.querySelectorAll('a').length]),
          ),
      )
      .toEqual([
        ['assistant', 2],
        ['broken', 1],
      ])
    const bar = lanes.getByRole('link', { name: 'failed: it breaks' })
    const [left, older] = await Promise.all([
      bar.boundingBox(),
      lanes.getByRole('link', { name: 'completed: first words' }).boundingBox(),
    ])
    expect(left!.x).toBeGreaterThanOrEqual(older!.x)
    expect(await bar.getAttribute('href')).toMatch(/^\/runs\/run_/u)

    await page.getByRole('button', { name: 'Failed' }).click()
    await expect.poll(() => search(page).get('status')).toContain('failed')
    await rowOf(page, 'first words').waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'Failed' }).click()
    await page.getByLabel('Agent', { exact: true }).selectOption('assistant')
    await rowOf(page, 'it breaks').waitFor({ state: 'detached' })
    await page.keyboard.press('/')
    await page.keyboard.type('words')
    await expect.poll(() => search(page).get('q')).toBe('words')
    await page.keyboard.press('Escape')
    await page.keyboard.press('Escape')
    await expect.poll(() => search(page).has('q')).toBe(false)

    await page.keyboard.press('j')
    await expect.poll(() => search(page).get('sel')).toBe(second)
    await page.keyboard.press('j')
    await expect.poll(() => search(page).get('sel')).toBe(first)

    // The same link shows the same to somebody else. There, two marks lead to the comparison.
    const other = await openTab(new URL(page.url()).pathname + new URL(page.url()).search)
    await rowOf(other, 'first words').waitFor()
    expect(await rowOf(other, 'first words').getAttribute('data-selected')).toBe('true')
    expect(await rowOf(other, 'it breaks').count()).toBe(0)
    await other.keyboard.press('x')
    await other.getByText('Mark another run to compare.').waitFor()
    await other.keyboard.press('k')
    await expect.poll(() => search(other).get('sel')).toBe(second)
    await other.keyboard.press('x')
    await expect.poll(() => new URL(other.url()).search).toBe(`?a=${first}&b=${second}`)

    await page.keyboard.press('k')
    await expect.poll(() => search(page).get('sel')).toBe(second)
    await page.keyboard.press('Enter')
    await expect.poll(() => new URL(page.url()).pathname).toBe(`/runs/${second}`)
  })

  /** An agent whose tool needs approval, one that asks a tool of the client, one that asks for a value. */
  const asking = (count: number) => {
    const calls = Array.from({ length: count }, (_, i) => [
      ...toolCall(`c${i}`, 'pay', { to: 'Ann', amount: 12 + i, why: 'broken on arrival' }),
      finish('tool-calls'),
    ])
    const choose = async (_: unknown, context: ExecutionContext) =>
      await context.request({ message: 'Which size?', schema: { enum: ['small', 'large'] } })
    return {
      agents: {
        payer: agent('tools: [{ name: pay, approval: true }]'),
        asker: agent('tools: [locate]').replace('script:m', 'script:asker'),
        chooser: 'workflow:\n  - { id: size, type: choose, result: size }\nreturn: "$size"\n',
      },
      scripts: {
        m: createScriptedModel([...calls, ...answers(count)]),
        asker: createScriptedModel([[...toolCall('l1', 'locate'), finish('tool-calls')], answers(1)[0]!]),
      },
      steps: { choose: choose as never },
      tools: {
        pay: { parameters: { type: 'object' }, execute: () => 'paid' },
        locate: { parameters: { type: 'object' } },
      },
    }
  }
  const waits = (page: Page) => page.getByRole('region', { name: 'Waits for you' })
  const line = (page: Page, words: string) => waits(page).getByRole('button', { name: words, exact: true })

  test('what waits is one line; it opens to a few rows that say for whom, since when and until when', async () => {
    const { page, server } = await openWeb(browser, { engine: asking(5), path: '/runs' })
    for (let i = 0; i < 4; i++) await start(server, 'payer', `pay Ann ${i}.`)
    await start(server, 'asker', 'where am I?')
    await start(server, 'chooser', 'a shirt')
    await line(page, '6 wait for you').waitFor()
    const rows = waits(page).getByTestId('open-request')
    expect(await rows.count()).toBe(0)
    await expect.poll(() => page.getByTestId('run-row').count()).toBe(6)
    expect(await rowOf(page, 'pay Ann 0.').isVisible()).toBe(true)

    await line(page, '6 wait for you').click()
    await expect.poll(() => rows.count()).toBe(3)
    expect(search(page).get('waits')).toBe('few')
    const first = rows.filter({ hasText: 'pay Ann 0.' })
    expect((await first.innerText()).replaceAll(/\s+/gu, ' ')).toMatch(
      /^Allow pay\? to Ann amount 12 why broken on arrival payer · “pay Ann 0\.” · thread · asked (just now|\d+ s ago) · expires tomorrow \d\d:\d\d Edit Deny Allow$/u,
    )
    const [run, thread] = await first
      .getByRole('link')
      .evaluateAll((all) => all.map((each) => each.getAttribute('href')))
    expect([run, thread]).toEqual([expect.stringMatching(/^\/runs\/run_/u), expect.stringMatching(/^\/threads\//u)])
    await atEachScreen(page, 'runs-waits', async ({ name }) => {
      expect(await flaws(page), name).toEqual([])
      if (!name.startsWith('1024')) await expectAccessible(page)
    })
    await page.setViewportSize({ width: 1440, height: 900 })
    await waits(page).getByRole('button', { name: 'Show all 6' }).click()
    await expect.poll(() => rows.count()).toBe(6)
    expect(await waits(page).innerText()).toMatch(/Answer locate\?[^]*Which size\?/u)
    // The same link shows the same.
    await page.reload()
    await expect.poll(() => rows.count()).toBe(6)

    // The filters of the list are its own, too.
    await page.getByLabel('Agent', { exact: true }).selectOption('asker')
    await line(page, '1 waits for you').waitFor()
    await expect.poll(() => rows.allInnerTexts()).toEqual([expect.stringContaining('locate')])
    await page.getByLabel('Agent', { exact: true }).selectOption('')
    await page.getByRole('searchbox').fill('Ann 2')
    await line(page, '1 waits for you').waitFor()
    await expect.poll(() => rows.allInnerTexts()).toEqual([expect.stringContaining('pay Ann 2.')])
    await page.getByRole('searchbox').fill('')
    await line(page, '6 wait for you').waitFor()
    await page.getByRole('button', { name: 'Failed' }).click()
    await page.getByText('No run fits this filter.').waitFor()
    await waits(page).waitFor({ state: 'detached' })
    // Who asks for the runs that wait sees what they ask.
    await page.goto(`${server.url}/runs?status=suspended`)
    await expect.poll(() => rows.count()).toBe(3)
    await line(page, '6 wait for you').click()
    await expect.poll(() => rows.count()).toBe(0)
  })

  test('an open request is answered in place, and nothing moves under the pointer', async () => {
    const { page, server } = await openWeb(browser, { engine: asking(2), path: '/runs' })
    await start(server, 'payer', 'pay Ann')
    await line(page, '1 waits for you').waitFor()
    await start(server, 'payer', 'pay Ann again')
    await line(page, '2 wait for you').waitFor()
    await expectAccessible(page)
    await atEachScreen(page, 'runs', async ({ name }) => {
      expect(await flaws(page), name).toEqual([])
      if (name.endsWith('dark')) await expectAccessible(page)
    })
    // By keys alone: what is folded opens, and the first question has the focus.
    await page.keyboard.press('o')
    const rows = waits(page).getByTestId('open-request')
    await expect.poll(() => rows.first().locator(':focus').getAttribute('aria-label')).toBe('Edit the arguments of pay')
    await expect.poll(() => rows.count()).toBe(2)
    const second = waits(page).getByRole('listitem').nth(1)
    const before = await second.boundingBox()
    await enter(page, rows.first().getByRole('button', { name: 'Allow pay' }))
    await page.getByTestId('run-row').getByText('completed').waitFor()
    expect(await second.boundingBox()).toEqual(before)
    expect(await rows.first().innerText()).toContain('Allowed')
    await second.getByRole('button', { name: 'Deny pay' }).click()
    await expect.poll(() => page.getByTestId('run-row').getByText('completed').count()).toBe(2)
    await page.getByRole('button', { name: 'Clear answered' }).click()
    await waits(page).waitFor({ state: 'detached' })

    // The result of a tool of the client; a value.
    await start(server, 'asker', 'where am I?')
    await waits(page).getByRole('button', { name: 'Answer locate' }).click()
    await waits(page).getByLabel('Your app would answer this call. What should it return? (JSON or text)').fill('Oslo')
    await waits(page).getByRole('button', { name: 'Send result' }).click()
    await rowOf(page, 'where am I?').getByText('completed').waitFor()
    await start(server, 'chooser', 'a shirt')
    await waits(page).getByRole('button', { name: 'Answer Which size?' }).click()
    await waits(page).getByLabel('Answer').selectOption('large')
    await waits(page).getByRole('button', { name: 'Answer', exact: true }).click()
    await rowOf(page, 'a shirt').getByText('completed').waitFor()
  })

  test('several approvals are denied at once', async () => {
    const { page, server } = await openWeb(browser, { engine: asking(5), path: '/runs?status=suspended&lanes=off' })
    for (let i = 0; i < 5; i++) await start(server, 'payer', `pay Ann ${i}.`)
    await start(server, 'asker', 'where am I?')
    await line(page, '6 wait for you').waitFor()
    await waits(page).getByRole('button', { name: 'Select', exact: true }).click()
    const box = (words: string) => waits(page).getByRole('checkbox', { name: `Select pay, ${words}` })
    await expect.poll(() => waits(page).getByRole('checkbox').count()).toBe(5)
    expect(await waits(page).getByRole('button', { name: 'Deny selected (0)' }).isDisabled()).toBe(true)
    await waits(page).getByRole('button', { name: 'Select all' }).click()
    await box('pay Ann 3.').click()
    await atEachScreen(page, 'runs-select', async ({ name }) => {
      expect(await flaws(page), name).toEqual([])
      if (name.endsWith('dark')) await expectAccessible(page)
    })
    await waits(page).getByRole('button', { name: 'Deny selected (4)' }).click()
    await line(page, '2 wait for you').waitFor()
    const told = waits(page).getByTestId('open-request')
    await expect.poll(() => told.filter({ hasText: 'Denied' }).count()).toBe(4)
    expect(await told.filter({ hasText: 'pay Ann 3.' }).innerText()).toContain('Deny')
    await expect.poll(async () => (await server.store.runs.list({ status: 'completed' })).length).toBe(4)
  })

  test('a long list is loaded page by page, and only what is seen is in the page', async () => {
    const { page, server } = await openWeb(browser, { engine: { agents: { assistant: agent() } }, path: '/overview' })
    const startedAt = Date.now() - 600_000
    for (let i = 0; i < 700; i++) {
      const [id, timestamp] = [`run_${i}`, startedAt + i]
      const input = { messages: [{ role: 'user', content: `question ${i}.` }] }
      const first = { agent: 'assistant', pipeline: '', threadId: 't', protocol: 'api', input }
      await server.store.log.append(id, 1, [
        { type: 'run-start', runId: id, ...first, seq: 1, step: '', timestamp },
        { type: 'run-end', outcome: 'completed', usage: { source: 'reported' }, seq: 2, step: '', timestamp },
      ])
    }
    await page.getByRole('link', { name: 'Runs', exact: true }).first().click()
    await rowOf(page, 'question 699.').waitFor()
    const pane = page.getByTestId('list-pane')
    await expect
      .poll(async () => {
        await pane.evaluate((element) => element.scrollTo({ top: element.scrollHeight }))
        return rowOf(page, 'question 0.').count()
      })
      .toBe(1)
    expect(await page.locator('*').count()).toBeLessThan(3000)
    // The last page is full: that nothing comes after it is known one request later.
    await expect.poll(() => page.getByRole('table', { name: 'Runs' }).getAttribute('aria-rowcount')).toBe('701')
  })
})
