/** The room of one run, in a real browser: live, rewound, searched, answered, forked. */
import { readFileSync } from 'node:fs'
import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { RunView } from '../../src/fold/run-view.ts'
import type { Entry } from '../../src/part/entry.ts'
import { refuse } from '../../src/models/scripted.ts'
import {
  createScriptedModel,
  finish,
  latch,
  reasoning,
  text,
  toolCall,
} from '../../src/models/testing/scripted-model.ts'
import type { RunRow, Store } from '../../src/part/log.ts'
import { agent, until } from '../support/engine.ts'
import { agentThat, createStranger, ndjson, recordElsewhere } from '../support/foreign.ts'
import type { TestServer } from '../support/server.ts'
import { expectAccessible, expectAccessibleAt } from './axe.ts'
import { launchBrowser } from './chromium.ts'
import { flaws } from './flaws.ts'
import { enter, tabTo } from './keys.ts'
import { atEachScreen } from './screens.ts'
import { openWeb } from './web.ts'
import { timed } from '../support/recorded.ts'
import { placesOf } from '../support/thorough.ts'

const { browser, fault } = await launchBrowser()

const pay = { parameters: z.looseObject({}), execute: () => 'paid' }
const calculator = { parameters: z.looseObject({}), execute: () => ({ value: 84 }) }

async function start(server: TestServer, agentId: string, input: object = {}): Promise<string> {
  const messages = [{ role: 'user', content: 'What is 12*7?' }]
  const response = await server.post('/api/runs', { agentId, input: { messages, ...input } })
  return ((await response.json()) as { id: string }).id
}

const ended = (store: Store, id: string) => until(store, id, ({ type }) => type === 'run-end')

/** A recorded run with an id of its own. */
async function record(store: Store, name: string): Promise<string> {
  const entries = readFileSync(new URL(`../../src/wire/golden/${name}.ndjson`, import.meta.url), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Entry)
  const id = `run_${name}`
  entries[0] = { ...entries[0], runId: id } as Entry
  await store.log.append(id, 1, entries)
  return id
}

const rows = (page: Page) => page.getByTestId('step-row')
const row = (page: Page, path: string) => page.locator(`[data-testid=step-row][data-path="${path}"]`)

/** What the page shows of a run, in the words of its view. */
function shown(page: Page): Promise<{ status: string; text: string; steps: Record<string, string> }> {
  return page.evaluate(() => ({
    status: document.querySelector<HTMLElement>('[data-testid=run-status]')!.dataset['status'] ?? '',
    text: [...document.querySelectorAll('[data-testid=run-text] [data-piece=text]')]
      .map((each) => each.textContent)
      .join('')
      .replaceAll(/\s/gu, ''),
    steps: Object.fromEntries(
      [...document.querySelectorAll<HTMLElement>('[data-testid=step-row]')]
        // What a crash has discarded runs until its next attempt has begun, which is a row behind it.
        .map((each) => [each.dataset['path']!, each.dataset['state']!.replace(/waiting|superseded/u, 'running')]),
    ),
  }))
}

function expected({ status, text: said, steps }: RunView): Awaited<ReturnType<typeof shown>> {
  const states = steps.map(({ path, duration, error }) => [
    path,
    error ? 'failed' : duration === undefined ? 'running' : 'done',
  ])
  return { status, text: said.replaceAll(/\s/gu, ''), steps: Object.fromEntries(states) as Record<string, string> }
}

async function scrub(page: Page, seq: number): Promise<void> {
  await page.getByTestId('scrubber').evaluate((input: HTMLInputElement, value) => {
    Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value')!.set!.call(input, String(value))
    input.dispatchEvent(new Event('input', { bubbles: true }))
  }, seq)
}

const startOf = (runId: string) => ({
  type: 'run-start' as const,
  runId,
  agent: 'a',
  pipeline: agent(),
  threadId: `thread_${runId}`,
  protocol: 'api' as const,
  input: { messages: [{ role: 'user' as const, content: 'Hi' }] },
})
const usage = { inputTokens: 10, outputTokens: 4, totalTokens: 14, source: 'reported' as const }
const stepStart = (kind: 'tool-loop' | 'model-call' | 'client-tool', more: object = {}) =>
  ({ type: 'step-start' as const, stepType: kind === 'tool-loop' ? 'llm' : kind, kind, attempt: 1, ...more }) as const

/** It asks its client for a place, and waits since then. */
function waitingRun(id: string, from: number): Entry[] {
  const call = { toolCallId: 'c', toolName: 'locate' }
  return timed(id, from, [
    [0, '', startOf(id)],
    [10, 'main/answer', stepStart('tool-loop', { answer: true })],
    [1, 'main/answer/1', stepStart('model-call')],
    [1, 'main/answer/1', { type: 'prompt', stage: 'response', model: 'script:m', messages: [] }],
    [50, 'main/answer/1', { type: 'tool-call', ...call, input: '{}' }],
    [1, 'main/answer/1', { type: 'step-finish', duration: 52, usage, finishReason: 'tool-calls' }],
    [1, 'main/answer/2', stepStart('client-tool', call)],
    [0, 'main/answer/2', { type: 'request', requestId: 'q', kind: 'tool', ...call, input: {}, deadline: from + 9e7 }],
    [0, '', { type: 'suspend', requests: ['q'] }],
  ])
}

/** It thought for 20 s before it asked its model, which took 5 s. */
function doneRun(id: string, from: number): Entry[] {
  const model = 'main/answer/1'
  return timed(id, from, [
    [0, '', startOf(id)],
    [20_000, 'main/answer', stepStart('tool-loop', { answer: true })],
    [1, model, stepStart('model-call')],
    [1, model, { type: 'prompt', stage: 'response', model: 'script:m', messages: [] }],
    [50, model, { type: 'text-start', id: 't' }],
    [4000, model, { type: 'text-delta', id: 't', delta: 'One answer.' }],
    [1000, model, { type: 'text-end', id: 't' }],
    [1, model, { type: 'usage', model: 'script:m', usage }],
    [1, model, { type: 'step-finish', duration: 5000, usage, finishReason: 'stop' }],
    [1, 'main/answer', { type: 'step-finish', duration: 5010, usage }],
    [1, '', { type: 'run-end', outcome: 'completed', usage }],
  ])
}

const hello = (id: string) => `{ id: ${id}, type: output-generator, config: { template: hello } }`

describe.skipIf(browser === undefined)(`one run${fault}`, () => {
  test('grows while the model is held; what is selected stays where it is; f follows again', async () => {
    const gates = [latch(), latch()]
    const m = createScriptedModel([
      [
        { type: 'text-start', id: 'a' },
        { type: 'text-delta', id: 'a', delta: 'One ' },
        gates[0]!,
        { type: 'text-delta', id: 'a', delta: 'two.' },
        { type: 'text-end', id: 'a' },
        toolCall('c', 'calculator', {}),
        finish('tool-calls'),
      ],
      [text('Three'), gates[1]!, finish()],
    ])
    const engine = { agents: { a: agent('tools: [{ name: calculator }]') }, scripts: { m }, tools: { calculator } }
    const { page, server } = await openWeb(browser, { engine })
    const id = await start(server, 'a')
    await gates[0]!.reached
    await page.goto(`${server.url}/runs/${id}`)
    await expect
      .poll(() => shown(page))
      .toEqual({ status: 'running', text: 'One', steps: { 'main/answer': 'running', 'main/answer/1': 'running' } })
    expect(await page.getByText('live', { exact: true }).count()).toBeGreaterThan(0)

    // Rewound while it goes on: it stays there, whatever comes.
    const seq = () => page.getByTestId('run-room').getAttribute('data-seq')
    const heard = Number(await seq())
    await page.keyboard.press(',')
    await expect.poll(seq).toBe(String(heard - 1))
    expect((await shown(page)).text).toBe('')
    await expect.poll(() => new URL(page.url()).searchParams.get('at')).toBe(String(heard - 1))
    gates[0]!.open()
    await gates[1]!.reached
    await expect.poll(() => page.getByTestId('scrubber').getAttribute('max').then(Number)).toBeGreaterThan(heard + 5)
    expect([await seq(), (await shown(page)).text, await rows(page).count()]).toEqual([String(heard - 1), '', 2])
    await page.keyboard.press('f')
    await expect.poll(() => rows(page).count()).toBe(4)
    await expect.poll(async () => (await shown(page)).text).toBe('Onetwo.Three')

    await row(page, 'main/answer/1').click()
    await expect.poll(() => page.url()).toContain('sel=main/answer/1')
    const back = page.getByRole('button', { name: 'Back to live' })
    await back.waitFor()
    await page.keyboard.press('f')
    await back.waitFor({ state: 'detached' })
    await row(page, 'main/answer/2').click()
    await row(page, 'main/answer/1').click()
    await back.waitFor()
    const place = () =>
      row(page, 'main/answer/1').evaluate((each) =>
        JSON.stringify([...each.querySelectorAll('i')].map((bar) => bar.getBoundingClientRect())),
      )
    const before = await place()
    gates[1]!.open()
    await ended(server.store, id)
    await expect.poll(async () => (await shown(page)).status).toBe('completed')
    expect(await place()).toBe(before)
    expect(await page.getByTestId('log-row').last().isVisible()).toBe(true)
  })

  test('the scrubber is the log at every entry; a link restores it; . , and play move it', async () => {
    const { page, server } = await openWeb(browser, { engine: { agents: { a: agent() } } })
    for (const name of ['approval', 'reset', 'failing-branch', 'error-midway']) {
      const id = await record(server.store, name)
      await page.goto(`${server.url}/runs/${id}`)
      const views: RunView[] = []
      const last = (await server.store.runs.get(id))!.lastSeq
      for (const at of placesOf(last)) {
        const view = (await (await fetch(`${server.url}/api/runs/${id}?at=${at}`)).json()) as RunView
        views.push(view)
        if (at === 1) await rows(page).first().waitFor()
        await scrub(page, at)
        await expect.poll(() => shown(page), { message: `${name} at ${at}`, interval: 10 }).toEqual(expected(view))
      }
    }
    const id = 'run_approval'
    await page.goto(`${server.url}/runs/${id}?at=21`)
    await expect.poll(async () => (await shown(page)).status).toBe('suspended')
    await page.keyboard.press('.')
    await page.keyboard.press('.')
    const seq = () => page.getByTestId('run-room').getAttribute('data-seq')
    await expect.poll(seq).toBe('23')
    await page.keyboard.press('Shift+,')
    await expect.poll(seq).toBe('22')
    await expect.poll(() => new URL(page.url()).searchParams.get('at')).toBe('22')
    await page.keyboard.press('2')
    await page.keyboard.press('Space')
    await expect.poll(seq).toBe('42')
    await page.getByRole('button', { name: 'Back to the end' }).click()
    await expect.poll(() => new URL(page.url()).searchParams.get('at')).toBe(null)
  })

  test('the log: windows of rows, types, words, and an entry that a link names', async () => {
    const { page, server } = await openWeb(browser, { engine: { agents: { a: agent() } } })
    const id = await record(server.store, 'server-tool')
    await page.goto(`${server.url}/runs/${id}`)
    const entries = page.getByTestId('log-row')
    await expect.poll(() => entries.filter({ hasText: 'calculator' }).count()).toBeGreaterThan(0)
    await page.getByRole('button', { name: 'Tools' }).click()
    await expect.poll(() => page.url()).toContain('types=tool-input-start,')
    await expect
      .poll(() =>
        entries.evaluateAll((all) => all.every((each) => (each as HTMLElement).dataset['type']!.startsWith('tool-'))),
      )
      .toBe(true)
    await page.getByRole('button', { name: 'Tools' }).click()
    await page.keyboard.press('/')
    await page.keyboard.type('step-finish')
    await expect
      .poll(() => entries.evaluateAll((all) => new Set(all.map((each) => (each as HTMLElement).dataset['type'])).size))
      .toBe(1)
    await entries.first().click()
    const seq = await entries.first().getAttribute('data-seq')
    await expect.poll(() => new URL(page.url()).searchParams.get('sel')).toBe(seq)
    await page.reload()
    await page.getByRole('heading', { name: `#${seq} step-finish` }).waitFor()
    expect(await page.getByLabel('Find in the log').inputValue()).toBe('step-finish')

    // What a tool says before it has finished is its progress.
    const result = page.locator('[data-piece=result] h4')
    for (const [at, name] of [
      ['20', 'progress'],
      ['24', 'result'],
    ]) {
      await page.goto(`${server.url}/runs/${id}?sel=main/answer/2&at=${at}`)
      await expect.poll(() => result.textContent()).toBe(name)
    }
  })

  test('of 20,000 rows only those that are seen are in the page, and what they say is read where the reader scrolls', async () => {
    const { page, server } = await openWeb(browser, { engine: { agents: { a: agent() } } })
    const id = 'run_long'
    const entries: Entry[] = []
    const add = (step: string, part: object) =>
      void entries.push({ seq: entries.length + 1, timestamp: 1e12 + entries.length, step, ...part } as Entry)
    add('', { type: 'run-start', runId: id, agent: 'a', pipeline: '', threadId: 't', protocol: 'api', input: {} })
    add('main/a', { type: 'step-start', stepType: 'llm', kind: 'tool-loop', attempt: 1, answer: true })
    // One row, of more characters than a row reads; the words looked for are far behind.
    add('main/a', { type: 'text-start', id: 't' })
    for (const delta of [...Array(20).fill('hay in a stack, '.repeat(50)), 'a nee', 'dle.']) {
      add('main/a', { type: 'text-delta', id: 't', delta })
    }
    add('main/a', { type: 'text-end', id: 't' })
    for (let i = 0; i < 5000; i++) {
      const call = { toolCallId: `c${i}`, toolName: 'search' }
      add(`main/a/${i}`, { type: 'step-start', stepType: 'tool-call', kind: 'tool-call', attempt: 1, ...call })
      add(`main/a/${i}`, { type: 'data', name: 'seen', data: { word: `word${i}` } })
      add(`main/a/${i}`, { type: 'warning', code: 'w', message: 'Slow.' })
      add(`main/a/${i}`, { type: 'step-finish', duration: 1 })
    }
    add('main/a', { type: 'step-finish', duration: 1 })
    add('', { type: 'run-end', outcome: 'completed', usage: { source: 'reported' } })
    await server.store.log.append(id, 1, entries)
    const asked: string[] = []
    page.on('request', (request) => void asked.push(request.url()))
    await page.goto(`${server.url}/runs/${id}`)
    await page.locator(`[data-testid=run-room][data-seq="${entries.length}"]`).waitFor()
    const marked = await page.evaluate(() => {
      const rows = document.querySelectorAll<HTMLElement>('[data-testid=step-row], [data-testid=log-row]')
      for (const each of rows) each.dataset['before'] = 'true'
      return rows.length
    })
    await page.getByRole('listbox', { name: 'Entries' }).evaluate((pane) => pane.scrollTo(0, pane.scrollHeight))
    await page.getByTestId('log-row').filter({ hasText: 'word4999' }).waitFor()
    await page.getByRole('treegrid').evaluate((pane) => pane.scrollTo(0, pane.scrollHeight))
    await row(page, 'main/a/4999').waitFor()
    // Rows that are seen now took over the elements of the first ones.
    expect(await page.locator('[data-before]').count()).toBeGreaterThan(marked / 2)
    expect(await row(page, 'main/a/0').count()).toBe(0)
    expect(await page.evaluate(() => document.querySelectorAll('*').length)).toBeLessThan(3000)
    const windows = asked.map((url) => new URL(url)).filter(({ searchParams }) => searchParams.get('cut') === '300')
    expect(windows.length).toBeGreaterThan(0)
    for (const { searchParams: window } of windows) {
      expect(Number(window.get('before')) - Number(window.get('after'))).toBeLessThan(200)
    }

    const find = page.getByLabel('Find in the log')
    const log = page.getByRole('region', { name: 'Log' })
    const found = page.getByTestId('log-row')
    await find.fill('needle')
    await log.getByText('1 row', { exact: true }).waitFor()
    expect(await found.textContent()).toContain('a needle.')
    await find.fill('slow')
    await log.getByText('5,000 rows').waitFor()
    expect(await log.getByText('Only the first').count()).toBe(0)
    await find.fill('main/a')
    await log.getByText('Only the first 5,000 are here.').waitFor()
  })

  test('steps that come above those that are seen do not move them', async () => {
    const { page, server } = await openWeb(browser, { engine: { agents: { a: agent() } } })
    const id = 'run_grows'
    let seq = 0
    const entry = (step: string, part: object) => ({ seq: ++seq, timestamp: 1e12 + seq, step, ...part }) as Entry
    const begin = (step: string, stepType: string) =>
      entry(step, { type: 'step-start', stepType, kind: stepType, attempt: 1 })
    const begun = { runId: id, agent: 'a', pipeline: '', threadId: 't', protocol: 'api', input: {} }
    const both = ['x', 'y'].map((branch) => `main/both/${branch}`)
    const inside = (branch: number, from: number, to: number) =>
      Array.from({ length: to - from }, (_, i) => begin(`${both[branch]}/${from + i}`, 'code'))
    const first = [entry('', { type: 'run-start', ...begun }), begin('main/both', 'parallel')]
    for (const branch of both) first.push(begin(branch, 'container'))
    await server.store.log.append(id, 1, [...first, ...inside(0, 0, 5), ...inside(1, 0, 100)])
    await page.goto(`${server.url}/runs/${id}`)
    const pane = page.getByRole('treegrid')
    // Who has chosen a row does not follow.
    await row(page, 'main/both/y/99').click()
    await pane.evaluate((each) => each.scrollTo(0, each.scrollHeight / 2))
    const seen = row(page, 'main/both/y/50')
    await seen.waitFor()
    const top = async () => Math.round((await seen.boundingBox())!.y)
    const before = await top()
    await server.store.log.append(id, 1, inside(0, 5, 25))
    await expect.poll(() => pane.getAttribute('aria-rowcount')).toBe('129')
    expect(await top()).toBe(before)
  })

  test('a click leaves the focus with the steps and the log, whose elements belong to other rows after scrolling', async () => {
    const both = `workflow:
  - { id: both, type: parallel, config: { branches: { x: [${hello('x')}], y: [${hello('y')}] } } }
`
    const { page, server } = await openWeb(browser, { engine: { agents: { both } } })
    const id = await start(server, 'both')
    await ended(server.store, id)
    await page.goto(`${server.url}/runs/${id}`)
    const focused = () => page.evaluate(() => document.activeElement?.getAttribute('aria-label'))
    await page.getByRole('button', { name: 'Fold both' }).click()
    await expect.poll(() => rows(page).count()).toBe(1)
    expect(await focused()).toBe('Steps')
    await page.getByRole('button', { name: 'Unfold both' }).click()
    await page.keyboard.press('ArrowDown')
    await expect.poll(() => row(page, 'main/both').getAttribute('aria-selected')).toBe('true')
    const { x, y, width, height } = (await page.getByTestId('log-row').nth(1).boundingBox())!
    await page.mouse.move(x + 2, y + height / 2)
    await page.mouse.down()
    await page.mouse.move(x + width / 2, y + height / 2, { steps: 5 })
    await page.mouse.up()
    expect(await page.evaluate(() => String(getSelection()))).toContain('step-start')
    expect(await focused()).toBe('Entries')
    await page.keyboard.press('ArrowDown')
    const entry = page.getByTestId('log-row').nth(2)
    await expect.poll(() => entry.getAttribute('aria-selected')).toBe('true')
    const active = page.getByRole('listbox', { name: 'Entries' }).getAttribute('aria-activedescendant')
    expect(await active).toBe(await entry.getAttribute('id'))
  })

  test('keys only: rows, folding, details, errors, scrubber, zoom, links, compare; prompts say what is new', async () => {
    const m = createScriptedModel([
      [refuse(503, 'overloaded')],
      [reasoning('Let me see.'), toolCall('c', 'calculator', { expression: '12*7' }), finish('tool-calls')],
      [text('It is 84.'), finish()],
    ])
    const broken = createScriptedModel([[refuse(400, 'too long')]])
    const team = `workflow:
  - id: both
    type: parallel
    config:
      branches:
        x: [{ id: ask, type: call-agent, config: { agent: a } }]
        y: [{ id: say, type: output-generator, config: { template: "hello" } }]
  - { id: try, type: llm, config: { model: "script:broken", messages: "$input.messages" } }
`
    const say = 'workflow: [{ id: say, type: output-generator, config: { template: "hello" } }]'
    const engine = {
      agents: { a: agent('tools: [{ name: calculator }]'), team, say },
      scripts: { m, broken },
      tools: { calculator },
    }
    const context = { permissions: ['clipboard-read', 'clipboard-write'] }
    const { page, server } = await openWeb(browser, { engine, context })
    const other = await start(server, 'say')
    await ended(server.store, other)
    const id = await start(server, 'team')
    await ended(server.store, id)
    await page.goto(`${server.url}/runs/${id}`)
    await rows(page).first().waitFor()
    await page.getByRole('alert').filter({ hasText: 'too long' }).first().waitFor()
    await page.keyboard.press('e')
    await expect.poll(() => page.locator('[role=row][aria-selected=true]').getAttribute('data-state')).toBe('failed')
    await page.keyboard.press('Escape')
    const selected = () =>
      page.evaluate(() => document.querySelector<HTMLElement>('[role=row][aria-selected=true]')?.dataset['path'])
    const next = async () => {
      const before = await selected()
      await page.keyboard.press('j')
      await expect.poll(selected).not.toBe(before)
    }
    for (let i = 0; i < 3; i++) await next()
    const path = await selected()
    const all = await rows(page).count()
    expect(all).toBeGreaterThan(6)
    await page.keyboard.press('h')
    await expect.poll(() => rows(page).count()).toBeLessThan(all)
    await page.keyboard.press('l')
    await expect.poll(() => rows(page).count()).toBe(all)
    expect(await selected()).toBe(path)
    const calls = page.locator('[data-testid=step-row]').filter({ hasText: 'script:m' })
    expect(await calls.count()).toBe(2)
    expect(await calls.first().locator('b[data-kind=retry]').count()).toBe(1)
    const answer = await calls.last().getAttribute('data-path')
    for (let i = 0; i < all && (await selected()) !== answer; i++) await next()
    expect(await selected()).toBe(answer)
    await page.keyboard.press('Enter')
    await page.getByText('It is 84.').waitFor()
    await tabTo(page, page.getByRole('tab', { selected: true }))
    for (let i = 0; i < 5 && !page.url().includes('tab=prompt'); i++) {
      const before = page.url()
      await page.keyboard.press('ArrowRight')
      await expect.poll(() => page.url()).not.toBe(before)
    }
    const prompt = page.getByTestId('prompt')
    await prompt.getByText('Show 1 message as in the call before').waitFor()
    await expect.poll(() => prompt.locator('ins').count()).toBe(2)
    await page.getByRole('tab', { name: 'Prompt' }).press('ArrowRight')
    await page.getByText('Tokens out').waitFor()
    expect(page.url()).toContain('tab=usage')
    const query = (name: string) => new URL(page.url()).searchParams.get(name)
    const span = () => (query('z') ?? '').split('-').map(Number) as [number, number]
    await page.keyboard.press('w')
    await expect.poll(() => query('z')).toMatch(/^\d+-\d+$/u)
    const [from, to] = span()
    await page.keyboard.press('a')
    await expect.poll(() => span()[0]).toBeLessThan(from)
    await page.keyboard.press('d')
    await expect.poll(() => span()[0]).toBe(from)
    await page.keyboard.press('w')
    await expect.poll(() => span()[1] - span()[0]).toBeLessThan(to - from)
    for (let i = 0; i < 4; i++) await page.keyboard.press('s')
    await expect.poll(() => query('z')).toBe(null)
    for (const [key, name] of [
      ['3', '100×'],
      ['2', '10×'],
      ['1', '1×'],
    ] as const) {
      await page.keyboard.press(key)
      await expect.poll(() => page.getByRole('button', { name, exact: true }).getAttribute('aria-pressed')).toBe('true')
    }
    const copied = () => page.evaluate(() => navigator.clipboard.readText())
    await page.keyboard.press('c')
    await expect.poll(copied).toBe(id)
    await page.keyboard.press('y')
    await expect.poll(copied).toBe(page.url())

    const scrubber = page.getByTestId('scrubber')
    const at = () => page.getByTestId('run-room').getAttribute('data-seq')
    const last = Number(await at())
    await tabTo(page, scrubber, 'Shift+Tab')
    await page.keyboard.press('ArrowLeft')
    await expect.poll(at).toBe(String(last - 1))
    await page.keyboard.press('Home')
    await expect.poll(at).toBe('1')
    await page.keyboard.press('End')
    await expect.poll(at).toBe(String(last))

    await page.keyboard.press('x')
    expect(await page.evaluate(() => sessionStorage.getItem('millrace-compare'))).toBe(id)
    await page.keyboard.type('gr')
    await page.getByTestId('run-row').nth(1).waitFor()
    for (let i = 0; i < 2; i++) await page.keyboard.press('j')
    await expect.poll(() => query('sel')).toBe(other)
    await page.keyboard.press('Enter')
    await expect.poll(() => page.url()).toContain(`/runs/${other}`)
    await rows(page).first().waitFor()
    await page.keyboard.press('x')
    await expect.poll(() => new URL(page.url()).search).toBe(`?a=${id}&b=${other}`)
    await page.getByRole('region', { name: 'First difference' }).waitFor()
  })

  test('a question is answered in its place, also with other arguments; a client tool by JSON or words', async () => {
    const m = createScriptedModel([
      [toolCall('c', 'pay', { amount: 12 }), toolCall('d', 'locate'), finish('tool-calls')],
      [text('Done.'), finish()],
    ])
    const engine = {
      agents: {
        a: agent(
          'tools: [{ name: pay, approval: true }, { name: locate, client: true, description: "Where", parameters: {} }]',
        ),
      },
      scripts: { m },
      tools: { pay },
    }
    const { page, server } = await openWeb(browser, { engine })
    const id = await start(server, 'a')
    await until(server.store, id, ({ type }) => type === 'suspend')
    await page.goto(`${server.url}/runs/${id}`)
    const asked = page.getByTestId('open-request')
    await expect.poll(() => asked.count()).toBe(2)
    const approval = asked.filter({ hasText: 'Allow pay?' })
    // By keys alone.
    await page.keyboard.press('o')
    await expect.poll(() => page.locator('[data-testid=open-request] :focus').count()).toBe(1)
    await enter(page, approval.getByRole('button', { name: 'Edit' }))
    await expect
      .poll(() => approval.getByLabel('amount', { exact: true }).evaluate((field) => field === document.activeElement))
      .toBe(true)
    await page.keyboard.press('Control+a')
    await page.keyboard.type('7')
    await enter(page, approval.getByRole('button', { name: 'Allow' }))
    const tool = asked.filter({ hasText: 'locate' })
    await tool.getByRole('button', { name: 'Answer locate' }).click()
    await tool.getByLabel('What should it return?').fill('nowhere')
    await tool.getByText('Not JSON: sent as text.').waitFor()
    await tool.getByLabel('What should it return?').fill('{"city": "Oslo"}')
    await tool.getByRole('button', { name: 'Send result' }).click()
    await ended(server.store, id)
    await expect.poll(async () => (await shown(page)).status).toBe('completed')
    await expect.poll(() => asked.count()).toBe(0)
    await row(page, 'main/answer/1').click()
  })

  test('what waits has a hatched bar to now and says for how long; what holds it waits, too', async () => {
    const { page, server } = await openWeb(browser, { engine: { agents: { a: agent() }, scripts: {} } })
    await server.store.log.append('run_waits', 1, waitingRun('run_waits', Date.now() - 660_000))
    await page.goto(`${server.url}/runs/run_waits`)
    await row(page, 'main/answer/2').getByText('waiting 11m').waitFor()
    const ask = (await row(page, 'main/answer/2').locator('[data-phase=ask]').boundingBox())!
    const lane = (await row(page, 'main/answer/2').getByRole('gridcell').nth(1).boundingBox())!
    expect(ask.x + ask.width).toBeGreaterThan(lane.x + lane.width - 4)
    for (const path of ['main/answer', 'main/answer/2']) {
      expect(await row(page, path).getAttribute('data-state')).toBe('waiting')
    }
    // The header counts what the run did, and beside it how long it waits.
    const facts = page.locator('dl').first()
    expect(await facts.innerText()).toMatch(/time\s+\d+ ms[\s\S]*waiting\s+11m/u)
    await atEachScreen(page, 'run-waits', async ({ name }) => {
      expect(await flaws(page), name).toEqual([])
      await expectAccessibleAt(page, { name })
    })
  })

  test('rewound, the page says where it stands, and the status is that of the run', async () => {
    const { page, server } = await openWeb(browser, { engine: { agents: { a: agent() }, scripts: {} } })
    const id = 'run_done'
    await server.store.log.append(id, 1, doneRun(id, Date.now() - 60_000))
    const last = (await server.store.runs.get(id))!.lastSeq
    await page.goto(`${server.url}/runs/${id}?at=5`)
    const band = page.getByRole('region', { name: 'Rewound' })
    await band.getByText(`You are looking at entry 5 of ${last}, 20.1 s after the start.`).waitFor()
    await expect.poll(() => page.getByTestId('run-status').innerText()).toMatch(/completed[^]*\(rewound\)/u)
    const scrubber = await page.getByTestId('scrubber').boundingBox()
    await atEachScreen(page, 'run-rewound', async ({ name }) => {
      expect(await flaws(page), name).toEqual([])
      await expectAccessibleAt(page, { name })
    })
    await page.setViewportSize({ width: 1440, height: 900 })
    await enter(page, band.getByRole('button', { name: 'Back to the end' }))
    await band.waitFor({ state: 'detached' })
    // Nothing that one drags has moved.
    await expect.poll(async () => (await page.getByTestId('scrubber').boundingBox())?.y).toBe(scrubber!.y)
    await expect.poll(() => page.getByTestId('run-status').innerText()).not.toContain('rewound')
  })

  test('a fork begins where something still runs, and its times count from there everywhere', async () => {
    const m = createScriptedModel([[text('Another answer.'), finish()]])
    const { page, server } = await openWeb(browser, {
      engine: { agents: { a: agent() }, scripts: { m } },
      handler: { edit: true },
    })
    const id = 'run_done'
    await server.store.log.append(id, 1, doneRun(id, Date.now() - 60_000))
    const { lastSeq } = (await server.store.runs.get(id))!
    await page.goto(`${server.url}/runs/${id}`)
    // Columns are chosen once, for all runs.
    const head = (name: string) => page.getByRole('columnheader', { name, exact: true })
    await head('cost').waitFor()
    await page.getByRole('button', { name: 'Columns' }).click()
    await page.getByRole('checkbox', { name: 'cost' }).uncheck()
    await head('cost').waitFor({ state: 'hidden' })
    await page.reload()
    await head('tokens').waitFor()
    expect(await head('cost').isVisible()).toBe(false)
    await page.getByRole('button', { name: 'Fork' }).click()
    const dialog = page.getByRole('dialog')
    const at = dialog.getByLabel('After entry')
    const go = dialog.getByRole('button', { name: 'Run again' })
    expect(await dialog.getByLabel('From').inputValue()).toBe('2')
    await dialog.getByText('Runs again: script:m.').waitFor()
    await dialog.getByText('Advanced').click()
    await at.fill(String(lastSeq))
    await dialog.getByText('Everything has run by then. Choose an earlier point.').waitFor()
    expect(await go.isDisabled()).toBe(true)
    await atEachScreen(page, 'run-fork', async ({ name }) => {
      expect(await flaws(page), name).toEqual([])
      await expectAccessibleAt(page, { name })
    })
    await page.setViewportSize({ width: 1440, height: 900 })
    await dialog.getByLabel('From').selectOption('Before model call 1: script:m')
    await go.click()
    await expect.poll(() => page.url()).toMatch(/\/runs\/run_(?!done)/u)
    await expect.poll(async () => (await shown(page)).status).toBe('completed')
    const fork = page.url().split('/').at(-1)!
    // The source took 25 s, 20 of them before its model call. The fork answers at once.
    const facts = await page.locator('dl').first().innerText()
    expect(facts).toContain('+20.0 s taken over')
    expect(facts).toMatch(/time\s+(\d+ ms|[0-9]\.\d s)/u)
    // Neither has what holds the model call lasted since the source began.
    expect(await row(page, 'main/answer').getByRole('gridcell').last().innerText()).toMatch(/^(20|21)\.\d s$|ms$/u)
    await atEachScreen(page, 'run-forked')
    await page.setViewportSize({ width: 1440, height: 900 })
    const list = await (await fetch(`${server.url}/api/runs?idPrefix=${fork}`)).json()
    const [{ startedAt, endedAt, firstTokenMs }] = (list as { runs: RunRow[] }).runs as [RunRow]
    expect([endedAt! - startedAt < 10_000, firstTokenMs! < 10_000]).toEqual([true, true])
    const stats = await (await fetch(`${server.url}/api/stats`)).json()
    expect((stats as { duration: { p50: number } }).duration.p50).toBeLessThan(10_000)
    await page.goto(`${server.url}/compare?a=${id}&b=${fork}`)
    await page.getByText('(+20.0 s taken over)').waitFor()
    expect(await page.getByRole('region', { name: 'First difference' }).innerText()).not.toContain('forked')
    await atEachScreen(page, 'compare-fork')
  })

  test('a fork in the middle of a model call: no bar goes through the time before the fork', async () => {
    const m = createScriptedModel([[text('Another answer.'), finish()]])
    const { page, server } = await openWeb(browser, { engine: { agents: { a: agent() }, scripts: { m } } })
    await server.store.log.append('run_done', 1, doneRun('run_done', Date.now() - 660_000))
    const { id } = (await (await server.post('/api/runs/run_done/fork', { at: 6 })).json()) as { id: string }
    await ended(server.store, id)
    await page.goto(`${server.url}/runs/${id}`)
    const first = row(page, 'main/answer/1').and(page.locator('[data-state=superseded]'))
    const phases = () => first.locator('[data-phase]').evaluateAll((all) => all.map((each) => each.dataset['phase']))
    await expect.poll(phases).toContain('idle')
    // All of the ten minutes are in it.
    expect(await first.locator('[data-phase=idle]').getAttribute('title')).toMatch(/^waiting 10m/u)
    expect(await first.getByRole('gridcell').last().innerText()).toMatch(/^4\.\d s$/u)
    // The strip tells how long it was, or nothing.
    await page
      .getByRole('group', { name: /^Activity/u })
      .getByText('11m', { exact: true })
      .waitFor()
    await page.setViewportSize({ width: 360, height: 740 })
    await atEachScreen(page, 'run-forked-midway', async ({ name }) => expect(await flaws(page), name).toEqual([]))
  })

  test('a log in no legal order is told, and a fork goes on by itself', async () => {
    const m = createScriptedModel([[text('Another answer.'), finish()]])
    const { page, server } = await openWeb(browser, {
      engine: { agents: { a: agent() }, scripts: { m } },
      handler: { edit: true },
    })
    const entry = (seq: number, part: object) => ({ seq, timestamp: seq, step: '', ...part }) as Entry
    await server.store.log.append('run_bad', 1, [
      entry(1, {
        type: 'run-start',
        runId: 'run_bad',
        agent: 'a',
        pipeline: agent(),
        threadId: 't',
        protocol: 'api',
        input: {},
      }),
      entry(2, { type: 'text-delta', id: 'x', delta: 'lost' }),
      entry(3, { type: 'run-end', outcome: 'completed', usage: { source: 'reported' } }),
    ])
    await page.goto(`${server.url}/runs/run_bad`)
    await page.getByRole('alert').filter({ hasText: 'text x is not open' }).waitFor()
    await enter(page, page.getByRole('button', { name: 'Fork' }))
    const dialog = page.getByRole('dialog')
    await enter(page, dialog.getByText('Advanced'))
    await tabTo(page, page.getByLabel('After entry'))
    await page.keyboard.press('Control+a')
    await page.keyboard.type('1')
    await page.setViewportSize({ width: 360, height: 740 })
    expect(await flaws(page)).toEqual([])
    await expectAccessible(page)
    await page.setViewportSize({ width: 1440, height: 900 })
    await tabTo(page, page.getByLabel('Other input, as JSON'))
    await page.keyboard.type('{"messages": [{"role": "user", "content": "Again"}]}')
    await enter(page, dialog.getByRole('button', { name: 'Run again' }))
    await expect.poll(() => page.url()).toMatch(/\/runs\/run_(?!bad)/u)
    await expect.poll(async () => (await shown(page)).text).toBe('Anotheranswer.')

    await page.getByRole('button', { name: 'Fork' }).click()
    await dialog.getByLabel('From').selectOption('The start')
    await dialog.getByRole('button', { name: 'Edit the agent’s YAML for this run' }).click()
    const yaml = dialog.getByRole('textbox', { name: 'YAML of the agent' })
    await dialog.getByText('No mistakes.').waitFor()
    const write = async (text: string) => {
      await yaml.click()
      await page.keyboard.press('Control+a')
      // Chromium gives what it types over coloured text a style of its own.
      await page.keyboard.press('Delete')
      await page.keyboard.insertText(text)
    }
    await write('workflow: 1')
    await dialog.getByTestId('agent-fault').filter({ hasText: '"workflow"' }).waitFor()
    expect(await dialog.getByRole('button', { name: 'Run again' }).isDisabled()).toBe(true)
    // The Tab key leaves the editor, as every control of a dialog.
    await yaml.press('Tab')
    expect(await yaml.evaluate((box) => box.contains(document.activeElement))).toBe(false)
    await atEachScreen(page, 'run-fork-yaml', async ({ name }) => {
      expect(await flaws(page), name).toEqual([])
      await expectAccessibleAt(page, { name })
    })
    await page.setViewportSize({ width: 1440, height: 900 })
    await write(
      'workflow: [{ id: other, type: output-generator, config: { template: "{{ $input.messages[0].content }}" } }]',
    )
    await dialog.getByText('Only the new run and its conversation have this text.').waitFor()
    await dialog.getByLabel('New message').fill('Something else')
    await dialog.getByRole('button', { name: 'Run again' }).click()
    await row(page, 'main/other').waitFor()
    await page.getByText('Something else').first().waitFor()
    // In the list it has its own message, and its conversation goes on with its text.
    const { id, title, threadId } = (await server.store.runs.list({ limit: 1 }))[0]!
    expect([new URL(page.url()).pathname, title]).toEqual([`/runs/${id}`, 'Something else'])
    const input = { messages: [{ role: 'user', content: 'And then?' }] }
    const next = await server.runtime.start('a', input, { threadId })
    expect((await next.result).output).toContain('And then?')
  })

  test('a fork of a run that was recorded elsewhere shows what it would set to work, before anybody agrees', async () => {
    const stranger = createStranger()
    const entries = await recordElsewhere(agentThat('client', stranger.evil), 'client')
    const { page, server } = await openWeb(browser, {
      engine: { agents: { a: agent() }, scripts: { m: createScriptedModel([[text('Safe.'), finish()]]) } },
      handler: { edit: true },
    })
    const body = ndjson(entries)
    const type = { 'content-type': 'application/x-ndjson' }
    const response = await fetch(`${server.url}/api/runs/import`, { method: 'POST', body, headers: type })
    const { id } = (await response.json()) as { id: string }
    await page.goto(`${server.url}/runs/${id}`)
    await page.getByRole('button', { name: 'Fork' }).click()
    const dialog = page.getByRole('dialog')
    const programs = dialog.getByRole('group', { name: 'What its recording would start here' })
    await programs.getByText('starts the program sh -c').waitFor()
    await page.setViewportSize({ width: 360, height: 740 })
    expect(await flaws(page)).toEqual([])
    await expectAccessible(page)
    await page.setViewportSize({ width: 1440, height: 900 })
    const agrees = dialog.getByRole('checkbox')
    await agrees.check()
    // Another place is another list, which nobody has agreed to.
    await dialog.getByText('Advanced').click()
    await page.getByLabel('After entry').fill('1')
    await expect.poll(() => agrees.isChecked()).toBe(false)
    const agents = dialog.getByRole('combobox', { name: 'Agent' })
    await agents.selectOption('a')
    await dialog.getByText('starts nothing here except models').waitFor()
    expect(stranger.hasRun()).toBe(false)
    await agents.selectOption('')
    await programs.waitFor()
    await agrees.check()
    await dialog.getByRole('button', { name: 'Run again' }).click()
    await expect.poll(stranger.hasRun).toBe(true)
  })

  test('at every size and in both themes nothing sticks out, and axe finds nothing serious', async () => {
    const { page, server } = await openWeb(browser, { engine: { agents: { a: agent() } } })
    const id = await record(server.store, 'approval')
    await page.goto(`${server.url}/runs/${id}`)
    await rows(page).first().waitFor()
    await atEachScreen(page, 'run', async ({ width }) => {
      expect(await flaws(page)).toEqual([])
      await expectAccessible(page)
      if (width > 720) return
      await row(page, 'main/answer/4').click()
      await page.getByRole('button', { name: 'Close Details' }).click()
      await page.getByRole('group', { name: 'What is shown' }).getByRole('button', { name: 'Log' }).click()
      await page.getByTestId('log-row').first().waitFor()
      await expectAccessible(page)
      await page.getByRole('group', { name: 'What is shown' }).getByRole('button', { name: 'Steps' }).click()
    })
  })
})
