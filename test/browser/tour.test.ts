/**
 * The page as somebody uses it who has an empty folder and no terminal: an agent is made, asked beside another model, allowed to use a tool, judged, tested,
 * changed and compared. Clicks are counted, and so is each Enter that sends something.
 */
import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Locator } from 'playwright-core'
import { describe, expect, onTestFinished, test } from 'vitest'
import { serve } from '../../src/server/serve.ts'
import { folder } from '../support/cli.ts'
import { startUpstream } from '../support/upstream.ts'
import { launchBrowser } from './chromium.ts'
import { openTabs } from './web.ts'

const { browser, fault } = await launchBrowser()

/** How many clicks a newcomer needs, at most. */
const most = 25

describe.skipIf(browser === undefined)(`a tour of the page${fault}`, () => {
  test(`from an empty folder to an agent that is played with, judged, tested and compared: ${most} clicks`, async () => {
    // The model that says what its prompt says: the first words of its instructions.
    const model = await startUpstream((reply) => {
      const system = String(reply.body.messages.find(({ role }) => role === 'system')?.content)
      reply.say(system.includes('briefly') ? 'Good day.' : 'A very good day to you, and what a day it is.')
      reply.finish()
    })
    onTestFinished(() => model.close())
    const root = folder({})
    const dir = join(root, 'agents')
    mkdirSync(dir)
    const server = await serve({
      dir,
      data: join(root, 'data'),
      env: { MILLRACE_DEMO_DELAY_MS: '0' },
      port: 0,
      endpoints: [{ name: 'box', baseURL: model.baseURL }],
      log: () => undefined,
    })
    const { page } = await openTabs(browser, server, { path: '/' })
    const clicks: string[] = []
    const click = async (target: Locator) => {
      await target.click()
      clicks.push(String(target))
    }
    const enter = async () => {
      await page.keyboard.press('Enter')
      clicks.push('Enter')
    }
    const button = (name: string | RegExp, within: Locator = page.locator('body')) =>
      within.getByRole('button', { name, exact: true })
    const dialog = page.getByRole('dialog')
    const answers = page.getByTestId('assistant-message')

    // An agent from a template, in the folder that has none.
    await click(page.getByRole('link', { name: 'Make the first one' }))
    await dialog.getByRole('radio').first().waitFor()
    await page.keyboard.type('Till')
    await click(dialog.getByRole('radio', { name: /Approval/u }))
    await enter()
    await expect.poll(() => new URL(page.url()).pathname).toBe('/agents/till')

    // Its tool is allowed.
    await click(button('Try'))
    await page.getByTestId('chat-input').fill('What is 6*7?')
    await enter()
    await click(button(/^Allow/u))
    await answers.getByText('42').first().waitFor()

    // Two models side by side.
    await click(button('Side by side'))
    const column = (n: number) => page.getByTestId('column').nth(n - 1)
    await click(column(2).getByLabel('Model of column 2'))
    await page.keyboard.type('box:m')
    await click(page.getByTestId('chat-input'))
    await page.keyboard.type('Greet me')
    await enter()
    const second = column(2).getByTestId('assistant-message')
    await expect.poll(() => second.innerText()).toBe('A very good day to you, and what a day it is.')
    await expect.poll(() => column(1).getByTestId('assistant-message').innerText()).toMatch(/\w/u)
    await expect
      .poll(() => column(2).getByTestId('answer-line').innerText())
      .toMatch(/Time\s+[\d.]+ m?s[^]*Tokens\s+\d+[^]*Cost/u)

    // The answer of one of them is bad, and becomes a test of how it should have been.
    await click(button('Bad answer', column(2)))
    await click(button('Add as test', column(2)))
    await click(dialog.getByLabel('Text'))
    await page.keyboard.press('ControlOrMeta+a')
    await page.keyboard.type('Good day.')
    await click(button('Add', dialog))
    await click(dialog.getByRole('link', { name: 'Open the test' }))
    const last = page.getByTestId('last-result')
    await expect.poll(() => last.getAttribute('data-state')).toBe('failed')
    await click(button('Run'))
    await expect.poll(() => page.getByTestId('result').count()).toBe(2)

    // The prompt is changed for one more run, and the two are compared: the prompt comes first.
    await click(page.getByRole('link', { name: 'Open the recorded run' }))
    await click(button('Fork'))
    await click(button('Edit the agent’s YAML for this run', dialog))
    await click(dialog.locator('.cm-line', { hasText: 'never in your head' }))
    await page.keyboard.press('End')
    await page.keyboard.type(' Answer briefly.')
    await click(button('Run again', dialog))
    await page.getByText('Good day.').first().waitFor()
    await click(button('Compare'))
    await page.locator('ins', { hasText: 'briefly' }).first().waitFor()

    expect(readFileSync(join(root, 'tests/till.yaml'), 'utf8')).toContain('equals: Good day.')
    expect(clicks.length, clicks.join('\n')).toBeLessThanOrEqual(most)
  })
})
