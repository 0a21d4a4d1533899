/** examples/socket-io in a real browser: its page, its agent, a model that waits for the test. */
import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { createScriptedModel, finish, latch, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import { launchBrowser } from './chromium.ts'
import { inExample, linesOf, say } from './example.ts'

const { browser, fault } = await launchBrowser()

describe.skipIf(browser === undefined)(`the page of examples/socket-io${fault}`, () => {
  const example = inExample(browser, 'socket-io')
  const { open, status } = example
  const stop = (page: Page) => page.getByRole('button', { name: 'Stop' })

  test('text before the model has finished; a tool of the page in the same run; a reload shows all of it again', async () => {
    const gate = latch()
    const model = createScriptedModel([
      [text('Let me. '), gate, toolCall('c1', 'setBackground', { color: 'rgb(1, 2, 3)' }), finish('tool-calls')],
      [text('Dark enough?'), finish()],
    ])
    const page = await open(model)
    await say(page, 'Make it dark')
    await expect.poll(() => linesOf(page)).toEqual(['Make it dark', 'Let me. '])
    gate.open()
    const all = ['Make it dark', 'Let me. ', 'setBackground {"color":"rgb(1, 2, 3)"}', 'Dark enough?']
    await expect.poll(() => linesOf(page)).toEqual(all)
    await expect.poll(() => stop(page).isDisabled()).toBe(true)
    const colour = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor)
    expect(await colour()).toBe('rgb(1, 2, 3)')
    expect(JSON.stringify(model.calls[1]!.options.prompt)).toContain('The background is rgb(1, 2, 3) now.')
    expect([await status(), (await example.server.store.runs.list({})).length]).toEqual(['completed', 1])
    await page.reload()
    await expect.poll(() => linesOf(page)).toEqual(all)
    await expect.poll(colour).toBe('rgb(1, 2, 3)')
    expect([model.calls.length, await page.getByRole('alert').isVisible()]).toEqual([2, false])
  })

  test('a reload in the middle of an answer, then Stop; the next message knows the thread', async () => {
    const model = createScriptedModel([
      [{ type: 'text-start', id: 't' }, { type: 'text-delta', id: 't', delta: 'Hel' }, latch(), finish()],
      [text('Here I am.'), finish()],
    ])
    const page = await open(model)
    await say(page, 'Hi')
    await expect.poll(() => linesOf(page)).toEqual(['Hi', 'Hel'])
    await page.reload()
    await expect.poll(() => linesOf(page)).toEqual(['Hi', 'Hel'])
    await stop(page).click()
    await expect.poll(() => stop(page).isDisabled()).toBe(true)
    await expect.poll(status).toBe('aborted')
    expect(model.calls[0]!.options.abortSignal?.aborted).toBe(true)
    await say(page, 'Still there?')
    await expect.poll(() => linesOf(page)).toContain('Here I am.')
    expect(await page.getByRole('alert').isVisible()).toBe(false)
    expect(JSON.stringify(model.calls[1]!.options.prompt)).toContain('"Hi"')
  })
})
