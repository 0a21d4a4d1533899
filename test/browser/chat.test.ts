/** The playground in a real browser. Models are held on latches. */
import { describe, expect, test } from 'vitest'
import {
  createScriptedModel,
  errorPart,
  finish,
  latch,
  text,
  toolCall,
} from '../../src/models/testing/scripted-model.ts'
import { agent } from '../support/engine.ts'
import { answers, ask, growing } from './chat-page.ts'
import { launchBrowser } from './chromium.ts'
import { openWeb } from './web.ts'

const { browser, fault } = await launchBrowser()

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
    expect(await page.getByRole('link', { name: 'Open run' }).getAttribute('href')).toMatch(/^\/runs\/run_/u)
  })

  test('Stop stops the run on the server; a failure has its code, and another try answers again as another branch', async () => {
    const gate = latch()
    const m = createScriptedModel([
      [...growing('Some words', gate, ' more'), finish()],
      [text('Half'), errorPart(new Error('the model fell over')), finish('error')],
      [text('Whole'), finish()],
    ])
    const { page } = await openWeb(browser, {
      engine: { agents: { assistant: agent('retries: 0') }, scripts: { m } },
    })
    await ask(page, 'one')
    await gate.reached
    await page.getByTestId('stop-button').click()
    await expect.poll(() => answers(page).innerText()).toMatch(/Some words[^]*Stopped\./u)
    gate.open()
    expect(await page.getByTestId('stop-button').count()).toBe(0)

    await ask(page, 'two')
    const alert = answers(page).last().getByRole('alert')
    await expect.poll(() => alert.innerText()).toMatch(/^The model failed\n[^]*the model fell over/u)
    await answers(page).last().getByRole('button', { name: 'Try again' }).click()
    await expect.poll(() => answers(page).last().innerText()).toContain('Whole')
    await expect.poll(() => page.getByText('2/2', { exact: true }).count()).toBe(1)
  })

  test('a message is edited and answered again: branches that a link restores', async () => {
    const m = createScriptedModel(['first', 'second', 'edited', 'again', 'on'].map((word) => [text(word), finish()]))
    const { page, server } = await openWeb(browser, { engine: { agents: { assistant: agent() }, scripts: { m } } })
    await ask(page, 'one')
    await expect.poll(() => answers(page).allInnerTexts()).toEqual(['first'])
    await ask(page, 'two')
    await expect.poll(() => answers(page).allInnerTexts()).toEqual(['first', 'second'])
    await page.getByRole('button', { name: 'Edit and send again' }).last().click()
    await page.getByLabel('Your message').fill('two, in other words')
    await page.getByLabel('Your message').press('Enter')
    await expect.poll(() => answers(page).allInnerTexts()).toEqual(['first', 'edited'])
    await page.getByRole('button', { name: 'Answer again' }).first().click()
    await expect.poll(() => answers(page).allInnerTexts()).toEqual(['again'])

    await page.getByRole('button', { name: 'Earlier version' }).click()
    await expect.poll(() => answers(page).allInnerTexts()).toEqual(['first', 'edited'])
    await page.getByRole('button', { name: 'Earlier version' }).last().click()
    await expect.poll(() => answers(page).allInnerTexts()).toEqual(['first', 'second'])
    await page.reload()
    await expect.poll(() => answers(page).allInnerTexts()).toEqual(['first', 'second'])
    // What is said now continues what is shown, and not what is newest.
    await ask(page, 'three')
    await expect.poll(() => answers(page).allInnerTexts()).toEqual(['first', 'second', 'on'])
    const [newest] = await server.store.runs.list({ limit: 1 })
    const start = (await (await fetch(`${server.url}/api/runs/${newest!.id}`)).json()) as { previousRunId: string }
    const texts = (await (await fetch(`${server.url}/api/runs/${start.previousRunId}`)).json()) as { text: string }
    expect(texts.text).toBe('second')
  })

  test('keyboard only: write, break a line, send, open a tool; the draft is kept in the tab', async () => {
    const m = createScriptedModel([
      [...toolCall('c', 'calculator', { expression: '6*7' }), finish('tool-calls')],
      [text('42'), finish()],
    ])
    const { page } = await openWeb(browser, {
      engine: { agents: { assistant: agent('tools:\n  - name: calculator\n') }, scripts: { m } },
    })
    await expect.poll(() => page.evaluate(() => document.activeElement?.getAttribute('data-testid'))).toBe('chat-input')
    await page.keyboard.type('What is')
    await page.keyboard.press('Shift+Enter')
    await page.keyboard.type('6*7?')
    await page.reload()
    await expect.poll(() => page.getByTestId('chat-input').inputValue()).toBe('What is\n6*7?')
    await page.keyboard.press('Enter')
    await expect.poll(() => answers(page).innerText()).toContain('42')
    expect(await page.getByTestId('chat-input').inputValue()).toBe('')
    const isOnTool = () => page.evaluate(() => document.activeElement?.closest('[data-testid=tool-card]') !== null)
    for (let i = 0; i < 20 && !(await isOnTool()); i++) await page.keyboard.press('Shift+Tab')
    await page.keyboard.press('Enter')
    await expect.poll(() => page.getByTestId('tool-card').innerText()).toMatch(/Arguments[^]*6\*7[^]*Result[^]*42/u)
  })

  test('what is typed and sent while the first message is on its way is of its thread; who has left stays where they are', async () => {
    const say = (words: string) => [text(words), finish()]
    const m = createScriptedModel([say('One.'), say('Two.'), say('Three.')])
    const { page, server } = await openWeb(browser, { engine: { agents: { assistant: agent() }, scripts: { m } } })
    let gate = latch()
    await page.route('**/api/runs', async (route) => {
      if (route.request().method() === 'POST') await gate.opened
      await route.continue()
    })
    const input = page.getByTestId('chat-input')
    const thread = () => new URL(page.url()).searchParams.get('thread')
    await expect.poll(() => input.evaluate((field) => field === document.activeElement)).toBe(true)
    for (const words of ['first', 'second']) {
      await page.keyboard.type(words)
      await page.keyboard.press('Enter')
    }
    await page.keyboard.type('not sent yet')
    gate.open()
    await expect.poll(() => answers(page).allInnerTexts()).toEqual(['One.', 'Two.'])
    expect(await input.inputValue()).toBe('not sent yet')
    expect(await server.store.runs.list({ threadId: thread()! })).toHaveLength(2)

    // Back in the first chat before the second one has begun.
    const first = thread()
    await page.getByRole('button', { name: 'New chat', exact: true }).click()
    await expect.poll(() => answers(page).count()).toBe(0)
    gate = latch()
    const posted = page.waitForResponse((response) => response.request().method() === 'POST')
    await page.keyboard.type('elsewhere')
    await page.keyboard.press('Enter')
    await page.goBack()
    await expect.poll(() => answers(page).count()).toBe(2)
    gate.open()
    await (await posted).finished()
    await expect.poll(async () => (await server.store.runs.list({ status: 'completed' })).length).toBe(3)
    await page.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))')
    expect(thread()).toBe(first)
    expect(await input.inputValue()).toBe('not sent yet')
  })

  test('who has scrolled up is not moved while the answer grows, and gets back by a button', async () => {
    const gates = [latch(), latch()] as const
    const paragraphs = 'A paragraph of the answer.\n\n'.repeat(80)
    const m = createScriptedModel([
      [...growing(paragraphs, gates[0], `${paragraphs}middle\n\n`, gates[1], `${paragraphs}the end`), finish()],
    ])
    const { page } = await openWeb(browser, { engine: { agents: { assistant: agent() }, scripts: { m } } })
    await ask(page, 'go')
    const box = page.getByRole('log')
    const fromEnd = () => box.evaluate((element) => element.scrollHeight - element.scrollTop - element.clientHeight)
    await gates[0].reached
    await expect.poll(() => box.evaluate((element) => element.scrollTop)).toBeGreaterThan(500)
    await expect.poll(fromEnd).toBeLessThan(2)
    await box.hover()
    await page.mouse.wheel(0, -600)
    await expect.poll(fromEnd).toBeGreaterThan(300)
    const before = await box.evaluate((element) => element.scrollTop)
    gates[0].open()
    await gates[1].reached
    await expect.poll(() => box.innerText()).toContain('middle')
    expect(await box.evaluate((element) => element.scrollTop)).toBe(before)
    await page.getByRole('button', { name: 'New', exact: true }).click()
    await expect.poll(fromEnd).toBeLessThan(2)
    gates[1].open()
    await expect.poll(() => box.innerText()).toContain('the end')
    await expect.poll(fromEnd).toBeLessThan(2)
  })

  test('without a connection the content stays, and the rest comes when it is back', async () => {
    const gate = latch()
    const m = createScriptedModel([[...growing('before', gate, ' after'), finish()]])
    const { page } = await openWeb(browser, {
      engine: { agents: { assistant: agent() }, scripts: { m } },
      allows: /ERR_INTERNET_DISCONNECTED|Failed to load resource/u,
    })
    await ask(page, 'go')
    await expect.poll(() => answers(page).innerText()).toContain('before')
    await page.context().setOffline(true)
    gate.open()
    await ask(page, 'said while offline')
    const notSent = page.getByRole('log').getByRole('alert')
    await expect.poll(() => notSent.innerText()).toBe('Not sent: the server cannot be reached.')
    await page.getByRole('button', { name: 'Send again', exact: true }).waitFor()
    expect(await answers(page).first().innerText()).toContain('before')
    await page.context().setOffline(false)
    await expect.poll(() => answers(page).first().innerText()).toContain('before after')
    await page.getByRole('button', { name: 'Discard' }).click()
    expect(await page.getByRole('alert').count()).toBe(0)

    // What was not sent is not lost when the room is left, nor when the page is loaded anew.
    await page.context().setOffline(true)
    await ask(page, 'said again')
    await notSent.waitFor()
    await page.context().setOffline(false)
    await page.getByRole('link', { name: 'Agents', exact: true }).click()
    await page.getByTestId('agent-row').first().waitFor()
    await page.goBack()
    await expect.poll(() => page.getByTestId('chat-input').inputValue()).toBe('said again')
  })
})
