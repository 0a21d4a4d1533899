/** examples/copilotkit in a real browser: its page, its agent, a model that waits for the test. */
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { createScriptedModel, finish, latch, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import type { ScriptedModel } from '../../src/models/testing/scripted-model.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { launchBrowser } from './chromium.ts'
import { servePage, type ServedPage } from './page.ts'

const folder = resolve('examples/copilotkit')
const { browser, fault } = await launchBrowser()
afterAll(() => browser?.close())

/** The agent as it stands there, with another model. Nothing but Stop stops it. */
const shipped = readFileSync(resolve(folder, 'agents/assistant.yaml'), 'utf8')
const yaml = `onDisconnect: detach\n${shipped.replace('demo:assistant', 'script:m')}`

describe.skipIf(browser === undefined)(`the page of examples/copilotkit${fault}`, () => {
  let site: ServedPage
  let server: TestServer
  beforeAll(async () => void (site = await servePage(folder)))
  afterAll(() => site.close())
  afterEach(() => server.close())

  async function open(model: ScriptedModel): Promise<Page> {
    server = await startServer(
      { agents: { assistant: yaml }, scripts: { m: model } },
      { allowedOrigins: [site.origin], localOnly: true },
    )
    const context = await browser!.newContext()
    const page = await context.newPage()
    const faults: unknown[] = []
    page.on('pageerror', (error) => void faults.push(error))
    onTestFinished(async () => {
      await context.close()
      expect(faults).toEqual([])
    })
    await page.goto(`${site.origin}/?server=${server.url}`)
    return page
  }

  async function say(page: Page, words: string): Promise<void> {
    await page.getByLabel('Message').fill(words)
    await page.getByRole('button', { name: 'Send' }).click()
  }

  const linesOf = (page: Page) => page.locator('#messages p').allTextContents()
  const status = async () => (await server.store.runs.list({}))[0]?.status

  test('text is there before the model has finished', async () => {
    const gate = latch()
    const model = createScriptedModel([
      [
        { type: 'text-start', id: 't' },
        { type: 'text-delta', id: 't', delta: 'Hel' },
        gate,
        { type: 'text-delta', id: 't', delta: 'lo 👋' },
        { type: 'text-end', id: 't' },
        finish(),
      ],
    ])
    const page = await open(model)
    await say(page, 'Hi')
    await expect.poll(() => linesOf(page)).toEqual(['Hi', 'Hel'])
    gate.open()
    await expect.poll(() => linesOf(page)).toEqual(['Hi', 'Hello 👋'])
    await expect.poll(() => page.getByRole('button', { name: 'Stop' }).isDisabled()).toBe(true)
    expect(await page.getByRole('alert').isVisible()).toBe(false)
  })

  test('a tool of the page colours it, and the model is told', async () => {
    const model = createScriptedModel([
      [toolCall('c1', 'setBackground', { color: 'rgb(1, 2, 3)' }), finish('tool-calls')],
      [text('Dark enough?'), finish()],
    ])
    const page = await open(model)
    await say(page, 'Make it dark')
    await expect.poll(() => linesOf(page)).toContain('Dark enough?')
    expect(await page.evaluate(() => getComputedStyle(document.body).backgroundColor)).toBe('rgb(1, 2, 3)')
    expect(JSON.stringify(model.calls[1]!.options.prompt)).toContain('The background is rgb(1, 2, 3) now.')
    expect(await server.store.runs.list({})).toHaveLength(1)
    expect(await status()).toBe('completed')
  })

  test('the server’s tool waits for the button, over a reload', async () => {
    const model = createScriptedModel([
      [toolCall('c1', 'calculator', { expression: '12*7' }), finish('tool-calls')],
      [text('It is 84.'), finish()],
    ])
    const page = await open(model)
    await say(page, 'What is 12*7?')
    const approve = page.getByRole('button', { name: 'Approve' })
    await approve.waitFor()
    expect([await status(), model.calls.length]).toEqual(['suspended', 1])
    await page.reload()
    await approve.waitFor()
    expect(await linesOf(page)).toEqual(['What is 12*7?', 'calculator {"expression":"12*7"}'])
    await approve.click()
    await expect.poll(() => linesOf(page)).toContain('It is 84.')
    expect(await approve.isVisible()).toBe(false)
    expect(JSON.stringify(model.calls[1]!.options.prompt)).toContain('84')
  })

  test('Deny: the tool does not run, and the model is told', async () => {
    const model = createScriptedModel([
      [toolCall('c1', 'calculator', { expression: '12*7' }), finish('tool-calls')],
      [text('As you like.'), finish()],
    ])
    const page = await open(model)
    await say(page, 'What is 12*7?')
    await page.getByRole('button', { name: 'Deny' }).click()
    await expect.poll(() => linesOf(page)).toContain('As you like.')
    expect(JSON.stringify(model.calls[1]!.options.prompt)).not.toContain('84')
  })

  test('Stop ends the run on the server', async () => {
    const model = createScriptedModel([
      [{ type: 'text-start', id: 't' }, { type: 'text-delta', id: 't', delta: 'Hel' }, latch(), finish()],
      [text('Here I am.'), finish()],
    ])
    const page = await open(model)
    await say(page, 'Hi')
    await expect.poll(() => linesOf(page)).toEqual(['Hi', 'Hel'])
    await page.getByRole('button', { name: 'Stop' }).click()
    await expect.poll(() => page.getByRole('button', { name: 'Stop' }).isDisabled()).toBe(true)
    await expect.poll(status).toBe('aborted')
    expect(model.calls[0]!.options.abortSignal?.aborted).toBe(true)
    await say(page, 'Still there?')
    await expect.poll(() => linesOf(page)).toContain('Here I am.')
    expect(await page.getByRole('alert').isVisible()).toBe(false)
  })

  test('a reload in the middle of an answer shows the thread, and the rest as it comes', async () => {
    const gate = latch()
    const model = createScriptedModel([
      [
        { type: 'text-start', id: 't' },
        { type: 'text-delta', id: 't', delta: 'Hel' },
        gate,
        { type: 'text-delta', id: 't', delta: 'lo' },
        { type: 'text-end', id: 't' },
        finish(),
      ],
    ])
    const page = await open(model)
    await say(page, 'Hi')
    await expect.poll(() => linesOf(page)).toEqual(['Hi', 'Hel'])
    await page.reload()
    await expect.poll(() => linesOf(page)).toEqual(['Hi', 'Hel'])
    gate.open()
    await expect.poll(() => linesOf(page)).toEqual(['Hi', 'Hello'])
  })
})
