/** The list of runs in a real browser: it is live, nothing moves under the reader, and every state is a link. */
import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import type { ExecutionContext } from '../../src/engine/registry.ts'
import { createScriptedModel, finish, latch, text, throws, toolCall } from '../../src/models/testing/scripted-model.ts'
import { agent, until } from '../support/engine.ts'
import { timed } from '../support/recorded.ts'
import type { TestServer } from '../support/server.ts'
import { expectAccessible, expectAccessibleAt } from './axe.ts'
import { duration } from '../../web/kit/format.ts'
import { launchBrowser } from './chromium.ts'
import { flaws } from './flaws.ts'
import { enter } from './keys.ts'
import { rowsSeen } from './rows-seen.ts'
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
    await expect.poll(async () => (await places()).hidden).toBeGreaterThan(0)
    expect(await places()).toMatchObject({ cut: 0, below: true })
    await atEachScreen(page, 'runs-lanes', async ({ name }) => {
      expect(await flaws(page), name).toEqual([])
      await expectAccessibleAt(page, { name })
    })
    await page.setViewportSize({ width: 1440, height: 900 })
    // One stop for Tab, and arrows to all of it: the list is not behind hundreds of bars.
    await page.getByRole('button', { name: 'Show all 10 agents' }).focus()
    await page.keyboard.press('Tab')
    const focused = () => page.evaluate(() => document.activeElement!.getAttribute('href'))
    expect(await focused()).toBe('/runs/run_agent0')
    await page.keyboard.press('ArrowDown')
    expect(await focused()).toBe('/runs/run_agent1')
    await page.keyboard.press('Tab')
    expect(await focused()).toBeNull()
    await page.keyboard.press('Shift+Tab')
    expect(await focused()).toBe('/runs/run_agent1')
    await page.getByRole('button', { name: 'Show all 10 agents' }).press('Enter')
    await expect.poll(places).toEqual({ cut: 0, hidden: 0, below: true })
  })

  test('filters, search and selection are links; keys select, mark and open', async () => {
    const { page, server, openTab } = await openWeb(browser, {
      engine: {
        agents: {
          assistant: agent(),
          broken: agent().replace('script:m', 'script:broken'),
          other: agent().replace('script:m', 'script:other'),
        },
        scripts: {
          m: createScriptedModel([[text('Hello.'), finish('stop', { in: 30, out: 10 })], ...answers(2)]),
          broken: createScriptedModel([[throws(new Error('no'))], [throws(new Error('no'))]]),
          other: createScriptedModel(answers(1)),
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
    const inLanes = () =>
      lanes
        .locator('[class*=lane]:has(> ul)')
        .evaluateAll((all) =>
          all.map((lane) => `${lane.querySelector('span')!.textContent} ${lane.querySelectorAll('a').length}`),
        )
    await expect.poll(inLanes).toEqual(['assistant 2', 'broken 1'])
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
    // The timeline shows what the list shows; what begins later too, and nothing else.
    await expect.poll(inLanes).toEqual(['broken 1'])
    await start(server, 'other', 'it is another one')
    await start(server, 'broken', 'it breaks again')
    await rowOf(page, 'it breaks again').waitFor()
    await expect.poll(inLanes).toEqual(['broken 2'])
    await page.getByRole('button', { name: 'Failed' }).click()
    await page.getByLabel('Agent', { exact: true }).selectOption('assistant')
    await rowOf(page, 'it breaks').first().waitFor({ state: 'detached' })
    await expect.poll(inLanes).toEqual(['assistant 2'])
    await page.keyboard.press('/')
    // Enter does not wait for the next letter; the arrow down leads to what was found.
    await page.keyboard.type('second')
    await page.keyboard.press('Enter')
    expect(search(page).get('q')).toBe('second')
    await expect.poll(inLanes).toEqual(['assistant 1'])
    await rowOf(page, 'first words').waitFor({ state: 'detached' })
    await page.keyboard.press('ArrowDown')
    expect(search(page).get('sel')).toBe(second)
    await expect.poll(() => page.evaluate(() => document.activeElement!.textContent)).toBe('second words')
    await page.keyboard.press('Escape')
    await page.keyboard.press('/')
    await page.keyboard.press('Escape')
    await page.keyboard.press('Escape')
    await expect.poll(() => search(page).has('q')).toBe(false)
    await rowOf(page, 'first words').waitFor()

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
    // Both keys in one frame: the second one is for what the first one has selected.
    await other.evaluate(() => {
      for (const key of ['k', 'x']) {
        const code = `Key${key.toUpperCase()}`
        document.activeElement!.dispatchEvent(
          new KeyboardEvent('keydown', { key, code, bubbles: true, cancelable: true }),
        )
      }
    })
    expect(search(other).get('sel')).toBe(second)
    await other.getByRole('button', { name: 'Compare' }).click()
    await expect.poll(() => new URL(other.url()).search).toBe(`?a=${first}&b=${second}`)

    await page.keyboard.press('k')
    await expect.poll(() => search(page).get('sel')).toBe(second)
    await page.keyboard.press('Enter')
    await expect.poll(() => new URL(page.url()).pathname).toBe(`/runs/${second}`)
  })

  /** Runs that differ in all that a list can be sorted and filtered by. */
  async function manyRuns({ store }: TestServer, count: number): Promise<void> {
    const now = Date.now()
    for (let i = 0; i < count; i++) {
      const id = `run_many_${String(i).padStart(3, '0')}`
      const input = { messages: [{ role: 'user', content: `question ${i}.` }] }
      const usage = { inputTokens: 100 + i, source: 'reported' } as const
      const model = i % 10 === 0 ? 'rare/model' : 'usual/model'
      const threadId = i === 5 ? 'thread_alone' : `thread_of_team_${i % 7}`
      const from = { ...startOf(id, i % 2 === 0 ? 'even' : 'odd'), input, threadId }
      const start = { ...from, protocol: i % 4 === 0 ? 'page' : 'api' }
      const cost = ((i * 7) % count) / 1000
      const outcome = i % 9 === 0 ? 'failed' : 'completed'
      const entries = timed(id, now - (count - i) * 60_000, [
        [0, '', start],
        [0, 'main/a', { type: 'usage', model, usage, cost }],
        [i * 10, '', { type: 'run-end', outcome, usage, cost }],
      ])
      // Number 5 goes on.
      await store.log.append(id, 1, i === 5 ? entries.slice(0, 2) : entries)
    }
  }
  const words = (page: Page, most: number) =>
    page
      .getByTestId('run-row')
      .evaluateAll((rows, n) => rows.slice(0, n).map((row) => /question \d+/u.exec(row.textContent!)?.[0]), most)
  const counted = (page: Page) => page.getByLabel('Number of runs').textContent()

  test('columns, order and filters are the address; a view of that has a name, and another tab sees the same', async () => {
    const { page, server, openTab } = await openWeb(browser, {
      engine: { agents: { assistant: agent() } },
      path: '/overview',
    })
    await manyRuns(server, 150)
    await page.goto(`${server.url}/runs?lanes=off`)
    await expect.poll(() => counted(page)).toBe('150 runs')
    await expect.poll(() => words(page, 2)).toEqual(['question 149', 'question 148'])
    const head = (name: string) => page.getByRole('columnheader', { name })
    await head('Cost').getByRole('button').click()
    await expect.poll(() => search(page).get('sort')).toBe('cost')
    await expect.poll(() => words(page, 2)).toEqual(['question 107', 'question 64'])
    expect(await head('Cost').getAttribute('aria-sort')).toBe('descending')
    await head('Took').getByRole('button').click()
    await head('Took').getByRole('button').click()
    await expect.poll(() => words(page, 2)).toEqual(['question 0', 'question 5'])
    expect(await head('Took').getAttribute('aria-sort')).toBe('ascending')

    // What is cut says so at its end, and no cost is cut.
    const thread = page.getByRole('link', { name: 'of_team_5', exact: true }).first()
    expect(await thread.getAttribute('title')).toBe('Thread thread_of_team_5')
    await page.getByRole('button', { name: 'More filters' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Model').fill('rare/model')
    await dialog.getByLabel('Client').fill('page')
    await dialog.getByLabel('Cost, in USD: at least').fill('0.01')
    await dialog.getByLabel('Took, in seconds: at most').fill('1.5')
    await expectAccessible(page)
    await dialog.getByRole('button', { name: 'Show runs' }).click()
    await expect.poll(() => counted(page)).toBe('7 of 150')
    const found = ['client=page', 'cost=0.01..', 'model=rare/model', 'took=..1.5s']
    for (const each of found) expect(new URL(page.url()).search).toContain(each)
    // The first ones of `question n` with n % 20 = 0, without number 0, which has cost nothing.
    await expect.poll(() => words(page, 9)).toEqual([20, 40, 60, 80, 100, 120, 140].map((n) => `question ${n}`))
    await page.getByRole('button', { name: 'Without over page' }).click()
    await expect.poll(() => counted(page)).toBe('14 of 150')

    // Columns.
    await page.getByRole('button', { name: /^View/u }).click()
    const menu = page.locator('[popover]:popover-open')
    await menu.getByRole('checkbox', { name: 'Model' }).check()
    await menu.getByRole('checkbox', { name: 'Thread' }).uncheck()
    await head('Model').waitFor()
    await head('Thread').waitFor({ state: 'detached' })
    expect(search(page).get('cols')).toBe('status,agent,user,words,error,started,took,first,tokens,cost,model')
    await menu.getByLabel('Name of this view').fill('Rare and dear')
    await expectAccessible(page)
    await menu.getByRole('button', { name: 'Save view' }).click()
    await menu.getByRole('link', { name: 'Rare and dear' }).waitFor()
    await page.keyboard.press('Escape')
    const address = new URL(page.url())
    await page.goto(`${server.url}/runs?lanes=off`)
    await expect.poll(() => counted(page)).toBe('150 runs')
    // Columns are remembered.
    await head('Model').waitFor()
    await page.getByRole('button', { name: /^View/u }).click()
    await menu.getByRole('link', { name: 'Rare and dear' }).click()
    await expect.poll(() => counted(page)).toBe('14 of 150')
    await page.getByRole('button', { name: 'View: Rare and dear' }).waitFor()
    const other = await openTab(address.pathname + address.search)
    await expect.poll(() => counted(other)).toBe('14 of 150')
    await other.getByRole('columnheader', { name: 'Model' }).waitFor()

    // A time from and to.
    await page.goto(`${server.url}/runs?lanes=off&since=${Date.now() - 3_600_000}&until=${Date.now() - 1_800_000}`)
    await expect.poll(() => counted(page)).toBe('30 of 150')
    await atEachScreen(page, 'runs-filtered', async ({ name }) => {
      expect(await flaws(page), name).toEqual([])
      await expectAccessibleAt(page, { name })
    })
  })

  test('many runs are marked; stopped, exported and deleted at once, and what cannot be is told', async () => {
    const { page, server } = await openWeb(browser, {
      engine: { agents: { assistant: agent() } },
      path: '/overview',
      allows: /status of 409/u,
    })
    await manyRuns(server, 130)
    await page.goto(`${server.url}/runs?lanes=off`)
    const box = (n: number) => page.getByRole('checkbox', { name: `Mark: question ${n}.`, exact: true })
    const bar = page.getByRole('group', { name: 'Marked runs' })
    const dialog = page.getByRole('dialog')
    await box(129).click()
    await box(120).click({ modifiers: ['Shift'] })
    await bar.getByText('10 marked').waitFor()
    await bar.getByRole('button', { name: 'Mark all 130 that fit' }).click()
    await bar.getByText('130 marked').waitFor()
    await bar.getByRole('button', { name: 'Clear' }).click()
    await box(129).click()
    await box(128).click()
    await bar.getByRole('button', { name: 'Export' }).click()
    await dialog.getByText('Export 2 runs').waitFor()
    const [zip] = await Promise.all([
      page.waitForEvent('download'),
      dialog.getByRole('button', { name: 'Logs (ZIP)' }).click(),
    ])
    expect(zip.suggestedFilename()).toBe('runs.zip')
    await dialog.getByText('2 runs exported.').waitFor()
    await dialog.getByRole('button', { name: 'Close' }).last().click()
    await bar.getByRole('button', { name: 'Clear' }).click()

    // A fork of one that is marked shares its log: it is kept, the others go.
    await server.store.log.fork('run_many_120', 2, 'run_fork', Date.now())
    await rowOf(page, 'question 120.').first().waitFor()
    await box(129).click()
    await box(120).click({ modifiers: ['Shift'] })
    await bar.getByText('10 marked').waitFor()
    await bar.getByRole('button', { name: 'Delete' }).click()
    await dialog.getByText('This cannot be undone.').waitFor()
    await expectAccessible(page)
    await dialog.getByRole('button', { name: 'Delete 10 runs' }).click()
    await dialog.getByText('9 runs deleted. 1 run could not be.').waitFor()
    expect(await dialog.getByRole('list', { name: 'What could not be done' }).innerText()).toContain(
      'Forks share the log of run run_many_120: run_fork.',
    )
    await dialog.getByRole('button', { name: 'Close' }).last().click()
    await box(129).waitFor({ state: 'detached' })
    await bar.getByText('question 120.').waitFor()
    expect((await server.store.runs.list({ limit: 1000 })).length).toBe(122)
    await bar.getByRole('button', { name: 'Clear' }).click()

    // Only what goes on is stopped: number 5, and the fork.
    await page.goto(`${server.url}/runs?lanes=off&sort=duration&order=asc`)
    await box(5).click()
    await box(0).click()
    await bar.getByRole('button', { name: 'Stop' }).click()
    await dialog.getByText('1 run of those that are marked is over.').waitFor()
    await dialog.getByRole('button', { name: 'Stop 1 run' }).click()
    await dialog.getByText('1 run stopped.').waitFor()
  })

  test('at a zoom of 200 % and on a phone a list shows at least eight rows', async () => {
    const others = Array.from({ length: 9 }, (_, i) => [`agent${i}`, agent()] as const)
    const { agents, ...engine } = asking(9)
    const { page, server } = await openWeb(browser, {
      engine: { ...engine, agents: { ...agents, ...Object.fromEntries(others) } },
      path: '/overview',
      context: { viewport: { width: 720, height: 450 }, deviceScaleFactor: 2 },
    })
    await manyRuns(server, 40)
    for (let i = 0; i < 9; i++) await start(server, 'payer', `pay Ann ${i}.`)
    const [desk, phone] = [
      { width: 720, height: 450 },
      { width: 390, height: 844 },
    ]
    for (const [path, row, onPhone] of [
      ['/runs', '[data-testid=run-row]', 8],
      ['/runs?waits=all', '[data-testid=open-request]', 5],
      ['/threads', 'tr[data-id]', 8],
      ['/agents', '[data-testid=agent-row]', 8],
    ] as const) {
      for (const size of [desk, phone]) {
        await page.setViewportSize(size!)
        await page.goto(server.url + path)
        await page.locator(row).nth(7).waitFor()
        if (path === '/runs') await line(page, '9 wait for you').waitFor()
        const least = size === desk ? 8 : onPhone
        await expect
          .poll(() => rowsSeen(page, row), { message: `${path} at ${size!.width}` })
          .toBeGreaterThanOrEqual(least)
        expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true)
      }
    }
    // Also when something is marked.
    await page.setViewportSize(desk!)
    await page.goto(`${server.url}/runs`)
    await page
      .getByRole('checkbox', { name: /^Mark: / })
      .first()
      .click()
    await page.getByRole('group', { name: 'Marked runs' }).waitFor()
    await expect.poll(() => page.getByTestId('list-pane').evaluate((pane) => pane.clientHeight)).toBeGreaterThan(8 * 28)
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
      await expectAccessibleAt(page, { name })
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
      await expectAccessibleAt(page, { name })
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

  test('several approvals are denied or allowed at once', async () => {
    const { page, server } = await openWeb(browser, { engine: asking(7), path: '/runs?status=suspended&lanes=off' })
    for (let i = 0; i < 7; i++) await start(server, 'payer', `pay Ann ${i}.`)
    await start(server, 'asker', 'where am I?')
    await line(page, '8 wait for you').waitFor()
    await waits(page).getByRole('button', { name: 'Select', exact: true }).click()
    const box = (words: string) => waits(page).getByRole('checkbox', { name: `Select pay, ${words}` })
    await expect.poll(() => waits(page).getByRole('checkbox').count()).toBe(7)
    expect(await waits(page).getByRole('button', { name: 'Deny selected (0)' }).isDisabled()).toBe(true)
    await waits(page).getByRole('button', { name: 'Select all' }).click()
    for (const i of [3, 5, 6]) await box(`pay Ann ${i}.`).click()
    await atEachScreen(page, 'runs-select', async ({ name }) => {
      expect(await flaws(page), name).toEqual([])
      await expectAccessibleAt(page, { name })
    })
    await waits(page).getByRole('button', { name: 'Deny selected (4)' }).click()
    await line(page, '4 wait for you').waitFor()
    const told = waits(page).getByTestId('open-request')
    await expect.poll(() => told.filter({ hasText: 'Denied' }).count()).toBe(4)
    expect(await told.filter({ hasText: 'pay Ann 3.' }).innerText()).toContain('Deny')
    await expect.poll(async () => (await server.store.runs.list({ status: 'completed' })).length).toBe(4)
    await waits(page).getByRole('button', { name: 'Select', exact: true }).click()
    await box('pay Ann 5.').click()
    await box('pay Ann 6.').click()
    await waits(page).getByRole('button', { name: 'Allow selected (2)' }).click()
    await expect.poll(() => told.filter({ hasText: 'Allowed' }).count()).toBe(2)
    await expect.poll(async () => (await server.store.runs.list({ status: 'completed' })).length).toBe(6)
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
