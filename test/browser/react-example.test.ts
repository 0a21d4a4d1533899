/** examples/react in a real browser: its page, in React's strict mode, its agent, a model that waits for the test. */
import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { createScriptedModel, finish, latch, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import { launchBrowser } from './chromium.ts'
import { inExample, say } from './example.ts'

const { browser, fault } = await launchBrowser()

const linesOf = (page: Page) => page.locator('ol[aria-label=Conversation] li').allTextContents()
const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true })

describe.skipIf(browser === undefined)(`the page of examples/react${fault}`, () => {
  const example = inExample(browser, 'react')
  const { open, status } = example

  test('text before the model has finished; a reload in the middle; Stop; another answer', async () => {
    const gate = latch()
    const model = createScriptedModel([
      [text('Hel'), gate, text('lo 👋'), finish()],
      [text('On and'), latch(), finish()],
      [text('Done.'), finish()],
    ])
    const page = await open(model)
    await say(page, 'Hi')
    await expect.poll(() => linesOf(page)).toEqual(['Hi', 'Hel'])
    await page.reload()
    await expect.poll(() => linesOf(page)).toEqual(['Hi', 'Hel'])
    gate.open()
    await expect.poll(() => linesOf(page)).toEqual(['Hi', 'Hello 👋'])
    await expect.poll(() => page.locator('output').textContent()).toBe('ready')
    await say(page, 'And on?')
    await expect.poll(() => linesOf(page)).toEqual(['Hi', 'Hello 👋', 'And on?', 'On and'])
    await button(page, 'Stop').click()
    await expect.poll(status).toBe('aborted')
    expect(model.calls[1]!.options.abortSignal?.aborted).toBe(true)
    await button(page, 'Again').click()
    await expect.poll(() => linesOf(page)).toEqual(['Hi', 'Hello 👋', 'And on?', 'Done.'])
    expect(JSON.stringify(model.calls[2]!.options.prompt)).not.toContain('On and')
    expect(await page.getByRole('alert').isVisible()).toBe(false)
  })

  test('a tool of the page runs; one that must be confirmed asks, also after a reload, and runs once', async () => {
    const model = createScriptedModel([
      [toolCall('c1', 'pageTitle', {}), finish('tool-calls')],
      [toolCall('c2', 'setBackground', { color: 'rgb(1, 2, 3)' }), finish('tool-calls')],
      [text('Dark enough?'), finish()],
    ])
    const page = await open(model)
    // The first tool has run, and its result is on its way when the page is reloaded: it runs again, and the run goes on.
    const isSent = Promise.withResolvers<void>()
    await page.route(/\/api\/runs\/[^/]+\/requests\//u, () => isSent.resolve(), { times: 1 })
    await say(page, 'Make it dark')
    await isSent.promise
    expect([await status(), model.calls.length]).toEqual(['suspended', 1])
    await page.reload()
    await button(page, 'Approve').waitFor()
    expect(await page.getByRole('group', { name: 'Question' }).textContent()).toContain('Make the page rgb(1, 2, 3)?')
    expect(await status()).toBe('suspended')
    await page.reload()
    await button(page, 'Approve').click()
    await expect.poll(async () => (await linesOf(page))[1]).toContain('Dark enough?')
    expect(await page.evaluate(() => getComputedStyle(document.body).backgroundColor)).toBe('rgb(1, 2, 3)')
    expect((await linesOf(page))[1]).toContain('pageTitle {} "React and Millrace"')
    expect(JSON.stringify(model.calls[2]!.options.prompt)).toContain('The background is rgb(1, 2, 3) now.')
    expect([await status(), (await example.server.store.runs.list({})).length, model.calls.length]).toEqual([
      'completed',
      1,
      3,
    ])
    expect(await button(page, 'Approve').isVisible()).toBe(false)
  })

  test('the steps, the answer and the log of the last run grow while the model speaks, over one connection', async () => {
    const [gate, rest] = [latch(), latch()]
    const model = createScriptedModel([
      [toolCall('c1', 'pageTitle', {}), finish('tool-calls')],
      [text('Its title'), gate, text(' is long.'), rest, finish()],
    ])
    const page = await open(model)
    await say(page, 'What is the title?')
    await expect.poll(async () => (await linesOf(page))[1]).toContain('Its title')
    const asked: string[] = []
    page.on('request', (request) => void asked.push(new URL(request.url()).pathname))
    await page.getByText('The last run').click()
    const answer = page.getByRole('region', { name: 'Answer' })
    const steps = page.getByRole('list', { name: 'Steps' }).getByRole('listitem')
    const log = page.getByRole('list', { name: 'Log' })
    await expect.poll(() => answer.textContent()).toContain('Its title')
    expect(await answer.getAttribute('data-status')).toBe('running')
    expect(await answer.textContent()).toContain('pageTitle')
    await expect.poll(() => steps.last().getAttribute('data-state')).toBe('running')
    gate.open()
    await expect.poll(() => answer.locator('.millrace-text').allTextContents()).toEqual(['Its title', ' is long.'])
    await expect.poll(() => log.textContent()).toContain(' is long.')
    expect(await log.textContent()).not.toContain('run-end')
    rest.open()
    await expect.poll(() => answer.getAttribute('data-status')).toBe('ended')
    await expect.poll(() => log.textContent()).toContain('run-end')
    expect(await steps.evaluateAll((all) => all.map((each) => (each as HTMLElement).dataset['state']))).toEqual(
      Array.from({ length: 4 }, () => 'done'),
    )
    expect(asked.filter((path) => path.endsWith('/events'))).toHaveLength(1)
  })
})
