/** The playground in a real browser. Models are held on latches. */
import type { Page } from 'playwright-core'
import { afterAll, describe, expect, test } from 'vitest'
import {
  createScriptedModel,
  finish,
  latch,
  reasoning,
  text,
  toolCall,
  type Latch,
  type ScriptStep,
} from '../../src/models/testing/scripted-model.ts'
import { agent } from '../support/engine.ts'
import { expectAccessible } from './axe.ts'
import { launchBrowser } from './chromium.ts'
import { atEachScreen, sticksOut } from './screens.ts'
import { openWeb } from './web.ts'

const { browser, fault } = await launchBrowser()
afterAll(() => browser?.close())

const answers = (page: Page) => page.getByTestId('assistant-message')

/** One block of text, with latches in it. */
function growing(...pieces: (string | Latch)[]): ScriptStep[] {
  const id = 'block'
  return [
    { type: 'text-start', id },
    ...pieces.map((piece) => (typeof piece === 'string' ? ({ type: 'text-delta', id, delta: piece } as const) : piece)),
    { type: 'text-end', id },
  ]
}

async function ask(page: Page, words: string): Promise<void> {
  await page.getByTestId('chat-input').fill(words)
  await page.getByTestId('send-button').click()
}

describe.skipIf(browser === undefined)(`the playground${fault}`, () => {
  test('a first visit needs one click to the first streamed word, and the text grows while the model is held', async () => {
    const gates = [latch(), latch()] as const
    const m = createScriptedModel([[...growing('**Hel', 'lo', gates[0], ' there**', gates[1]), finish()]])
    const { page, openTab, server } = await openWeb(browser, {
      engine: { agents: { assistant: agent() }, scripts: { m } },
    })
    await expect.poll(() => page.evaluate(() => document.activeElement?.getAttribute('data-testid'))).toBe('chat-input')
    await page.getByRole('button', { name: 'What can you do?' }).click()
    await gates[0].reached
    await expect.poll(() => answers(page).innerText()).toContain('Hello')
    expect(await answers(page).locator('strong').count()).toBe(1)
    expect(new URL(page.url()).searchParams.get('thread')).toMatch(/^thread_/u)

    // Reloaded in the middle of the answer, and in a second tab.
    await page.reload()
    const second = await openTab(page.url().slice(server.url.length))
    for (const tab of [page, second]) await expect.poll(() => answers(tab).innerText()).toContain('Hello')
    gates[0].open()
    await gates[1].reached
    for (const tab of [page, second]) await expect.poll(() => answers(tab).innerText()).toContain('there')
    expect(await answers(page).getAttribute('data-status')).toBe('running')
    gates[1].open()
    for (const tab of [page, second])
      await expect.poll(() => answers(tab).getAttribute('data-status')).toBe('completed')
    expect(await page.getByRole('link', { name: 'run', exact: true }).getAttribute('href')).toMatch(/^\/runs\/run_/u)
  })

  test('looks', async () => {
    const gate = latch()
    const m = createScriptedModel([
      [
        reasoning('I must ', 'calculate'),
        text('Let me see.\n'),
        ...toolCall('c1', 'calculator', { expression: '12*7' }),
        finish('tool-calls'),
      ],
      [
        text(
          '## Result\n\nIt is **84**.\n\n```js\nconst answer = 12 * 7 // "84"\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n- one\n- [two](https://a.example)\n',
        ),
        finish(),
      ],
      [...toolCall('c2', 'calculator', { expression: '1+1' }), finish('tool-calls')],
      [text('A long answer that goes on and on. '.repeat(30)), gate, finish()],
    ])
    const { page } = await openWeb(browser, {
      engine: { agents: { assistant: agent('tools:\n  - name: calculator\n') }, scripts: { m } },
    })
    await atEachScreen(page, 'chat-empty', async () => expect(await sticksOut(page)).toEqual([]))
    await ask(page, 'What is 12*7?')
    await expect.poll(() => answers(page).last().getAttribute('data-status')).toBe('completed')
    await page.getByTestId('tool-card').getByRole('button').first().click()
    await atEachScreen(page, 'chat', async () => expect(await sticksOut(page)).toEqual([]))
    await expectAccessible(page)
    gate.open()
  })
})
