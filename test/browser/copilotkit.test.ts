/** examples/copilotkit in a real browser: its page, its agent, a model that waits for the test. */
import { describe, expect, test } from 'vitest'
import { createScriptedModel, finish, latch, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import { launchBrowser } from './chromium.ts'
import { inExample, linesOf, say } from './example.ts'

const { browser, fault } = await launchBrowser()

describe.skipIf(browser === undefined)(`the page of examples/copilotkit${fault}`, () => {
  const example = inExample(browser, 'copilotkit')
  const { open, status } = example

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
    expect(await example.server.store.runs.list({})).toHaveLength(1)
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
