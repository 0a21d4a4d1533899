/** The playground at every size and in both themes. */
import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { createScriptedModel, finish, reasoning, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import { agent } from '../support/engine.ts'
import { expectAccessible } from './axe.ts'
import { answers, ask } from './chat-page.ts'
import { launchBrowser } from './chromium.ts'
import { flaws } from './flaws.ts'
import { atEachScreen } from './screens.ts'
import { openWeb } from './web.ts'

const { browser, fault } = await launchBrowser()

const card = (page: Page) => page.getByTestId('tool-card').last()

const named = 'Researcher who listens'
const gated = `metadata: { name: ${named} }\n${agent('tools:\n  - { name: calculator, approval: true }\n')}`
const calculate = (id: string, expression: string) => [
  ...toolCall(id, 'calculator', { expression }),
  finish('tool-calls'),
]

describe.skipIf(browser === undefined)(`the look of the playground${fault}`, () => {
  test('every size and theme shows all of it, and axe finds nothing serious', async () => {
    const m = createScriptedModel([
      [reasoning('I must ', 'calculate'), text('Let me see.\n'), ...calculate('c1', '12*7')],
      [
        text(
          '## Result\n\nIt is **84**.\n\n```js\nconst answer = 12 * 7 // "84", and a line that is longer than the screen of a phone is wide\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n- one\n- [two](https://a.example)\n\n```mermaid\ngraph TD\n  A[Ask] --> B{Known?}\n```\n',
        ),
        finish(),
      ],
      calculate('c2', '(1+2)*3'),
    ])
    const { page } = await openWeb(browser, { engine: { agents: { assistant: gated }, scripts: { m } } })
    await expect.poll(() => page.getByTestId('chat-input').count()).toBe(1)
    const look = async () => expect(await flaws(page)).toEqual([])
    await atEachScreen(page, 'chat-empty', look)
    await ask(page, 'What is 12*7?')
    await card(page).getByRole('button', { name: 'Allow' }).click()
    await expect.poll(() => answers(page).last().getAttribute('data-status')).toBe('completed')
    // A diagram is code, as it was written.
    const diagram = page.getByRole('figure').filter({ hasText: 'graph TD' })
    expect(await diagram.getByRole('button', { name: 'Copy code' }).count()).toBe(1)
    expect(await answers(page).last().innerText()).toContain('graph TD\n  A[Ask] --> B{Known?}')
    await ask(page, 'And (1+2)*3?')
    await expect.poll(() => card(page).innerText()).toContain('waiting for you')
    await atEachScreen(page, 'chat', async ({ width }) => {
      await look()
      if (width !== 1024) await expectAccessible(page)
    })
    await page.setViewportSize({ width: 1440, height: 900 })
    await page.getByRole('button', { name: 'Stream', exact: true }).click()
    await expect.poll(() => page.getByTestId('frame').count()).toBeGreaterThan(2)
    await atEachScreen(page, 'chat-frames', look)
    await expectAccessible(page)

    // On a phone the agent's name can be read, and what can be done has words.
    await page.setViewportSize({ width: 360, height: 740 })
    await page.getByRole('button', { name: 'Close Stream' }).click()
    const chosen = page.getByRole('combobox', { name: 'Agent' })
    const widths = await chosen.evaluate((select: HTMLSelectElement) => {
      const text = document.body.appendChild(document.createElement('b'))
      text.style.font = getComputedStyle(select).font
      text.textContent = select.selectedOptions[0]!.text
      const { width } = text.getBoundingClientRect()
      text.remove()
      return { text: width, room: select.clientWidth - 24 }
    })
    expect(widths.room).toBeGreaterThan(widths.text)
    const more = page.getByRole('main').getByRole('button', { name: 'More', exact: true })
    await more.press('Enter')
    const words = page.locator('main [popover]:popover-open button')
    expect(await words.allInnerTexts()).toEqual(['New chat', 'Agent', 'Stream', 'Side by side', 'Code'])
    await page.keyboard.press('ArrowUp')
    await page.keyboard.press('ArrowUp')
    expect(await page.evaluate('document.activeElement.innerText')).toBe('Side by side')
    await look()
    await expectAccessible(page)
    await page.getByRole('button', { name: 'Agent', exact: true }).click()
    await page.getByTestId('agent-panel').getByText(named).waitFor()
    await page.getByRole('button', { name: 'Close Agent' }).click()
    await more.press('Enter')
    await page.getByRole('button', { name: 'Code', exact: true }).press('Enter')
    await page.getByRole('dialog').getByRole('button', { name: 'Copy' }).waitFor()
    await page.keyboard.press('Escape')
    await expect.poll(() => more.evaluate((button) => button === document.activeElement)).toBe(true)
    const ofAnswer = answers(page).first().locator('xpath=..').getByRole('button', { name: 'More about this answer' })
    await ofAnswer.press('Enter')
    expect(await words.allInnerTexts()).toEqual(['Answer again'])
    await page.keyboard.press('Escape')
    await more.press('Enter')
    await page.getByRole('button', { name: 'New chat' }).click()
    await page.getByRole('heading', { name: named }).waitFor()
    await expect
      .poll(() => page.getByTestId('chat-input').evaluate((field) => field === document.activeElement))
      .toBe(true)
  })
})
