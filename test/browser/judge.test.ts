/** Thumbs and notes on answers, in the chat and in the room of a run. */
import { describe, expect, test } from 'vitest'
import { serve } from '../../src/server/serve.ts'
import { folder } from '../support/cli.ts'
import { expectAccessibleAt } from './axe.ts'
import { launchBrowser } from './chromium.ts'
import { flaws } from './flaws.ts'
import { atEachScreen } from './screens.ts'
import { openTabs } from './web.ts'

const { browser, fault } = await launchBrowser()
const agent = `workflow:
  - id: answer
    type: llm
    config: { model: "demo:assistant", stream: true, messages: $input.messages }
`

describe.skipIf(browser === undefined)(`feedback in the page${fault}`, () => {
  test('an answer gets a thumb and a note, which stay after a reload and stand in the room of its run', async () => {
    const dir = folder({ 'assistant.yaml': agent, 'millrace.config.js': 'export default { server: { graceMs: 0 } }' })
    const server = await serve({ dir, data: 'none', env: { MILLRACE_DEMO_DELAY_MS: '0' }, port: 0 })
    const { page } = await openTabs(browser, server, { path: '/chat/assistant' })
    await page.getByRole('textbox', { name: /message/iu }).fill('Hello')
    await page.keyboard.press('Enter')
    const pressed = (name: RegExp) => page.getByRole('button', { name }).getAttribute('aria-pressed')
    const rows = async () =>
      ((await (await fetch(`${server.url}/api/feedback`)).json()) as { rows: Record<string, unknown>[] }).rows

    await page.getByRole('button', { name: 'Good answer' }).click()
    await expect.poll(() => pressed(/Good answer/u)).toBe('true')
    await page.getByRole('button', { name: 'Bad answer' }).click()
    await expect.poll(() => pressed(/Bad answer/u)).toBe('true')
    expect(await pressed(/Good answer/u)).toBe('false')

    await page.getByRole('button', { name: 'Add a note' }).click()
    await page.getByRole('textbox', { name: 'What was good or bad about it?' }).fill('Too long')
    await page.keyboard.press('Control+Enter')
    await page.getByRole('button', { name: 'Your note' }).waitFor()
    expect(await rows()).toMatchObject([{ verdict: 'down', note: 'Too long', agent: 'assistant' }])

    await page.reload()
    await expect.poll(() => pressed(/Bad answer/u)).toBe('true')
    await page.getByRole('link', { name: 'Open run' }).click()
    await page.getByTestId('run-room').waitFor()
    await expect.poll(() => pressed(/Bad answer/u)).toBe('true')
    // The same once more takes the thumb back, and the note stays.
    await page.getByRole('button', { name: 'Bad answer' }).click()
    await expect.poll(() => pressed(/Bad answer/u)).toBe('false')
    expect(await rows()).toMatchObject([{ note: 'Too long' }])
    await page.getByRole('button', { name: 'Your note' }).click()
    await page.getByRole('textbox', { name: 'What was good or bad about it?' }).fill('')
    await page.getByRole('button', { name: 'Save', exact: true }).click()
    await page.getByRole('button', { name: 'Add a note' }).waitFor()
    expect(await rows()).toEqual([])

    const look = (name: string) =>
      atEachScreen(page, name, async (screen) => {
        expect(await flaws(page), screen.name).toEqual([])
        await expectAccessibleAt(page, screen)
      })
    await look('judged-run')
    await page.getByRole('button', { name: 'Add a note' }).click()
    await look('note')
  })
})
