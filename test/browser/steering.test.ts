/** Messages into a running turn, in the page: sent with Enter, waiting, taken back, given back by Stop, shown once, with who sent them. */
import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { finish, latch, text, toolCall, type Latch } from '../../src/models/testing/scripted-model.ts'
import { agent, entriesOf, only } from '../support/engine.ts'
import { createTestAccess, headersFor, tokenOf } from '../support/callers.ts'
import { createTold, resultsIn } from '../support/going-on.ts'
import { toldWords, watchInbox } from '../support/steering.ts'
import type { HandlerOptions } from '../../src/server/handler-context.ts'
import { expectAccessibleAt } from './axe.ts'
import { answers } from './chat-page.ts'
import { launchBrowser } from './chromium.ts'
import { flaws } from './flaws.ts'
import { atEachScreen } from './screens.ts'
import { openWeb } from './web.ts'

const { browser, fault } = await launchBrowser()

const said = (page: Page) => page.getByTestId('user-message')
const box = (page: Page) => page.getByTestId('chat-input')
const waits = (page: Page) => page.getByText('Waiting for the next call of the model…')
const takeBack = (page: Page) => page.getByRole('button', { name: 'Take back' })

interface Options {
  tool?: Latch
  /** Held before the last words of the answer. */
  words?: Latch
  config?: string
  handler?: Partial<HandlerOptions>
}

/** An agent that looks first, which takes until `tool` is opened, and then says how many messages it was told. */
async function open({ tool = latch(), words, config = 'tools: [look]', handler }: Options = {}) {
  const m = createTold((prompt) =>
    resultsIn(prompt).size === 0
      ? [text('I look.'), toolCall('c', 'look'), finish('tool-calls')]
      : [...(words ? [words] : []), text(`I was told ${toldIn(prompt)}.`), finish()],
  )
  const look = {
    parameters: { type: 'object' },
    async execute() {
      tool.arrive()
      await tool.opened
      return 'seen'
    },
  }
  const inbox = watchInbox()
  const engine = {
    agents: { assistant: agent(`messages: $input.messages\n${config}`, 'onBusy: steer') },
    tools: { look },
    scripts: { m },
    wrapStore: inbox.wrapStore,
  }
  const allows = /401|409|413/u
  const opened = await openWeb(browser, { engine, allows, path: '/chat/assistant', ...(handler && { handler }) })
  const { server } = opened
  const runs = async () => (await server.store.runs.list({})).toReversed()
  /** When the owner of the first run has read as many messages. */
  const heard = async (count: number) => {
    const { id } = (await runs())[0]!
    await expect.poll(async () => (await server.runtime.waiting(id)).length).toBe(count)
    await inbox.heard(...(await server.runtime.waiting(id)).map((each) => each.id))
    return id
  }
  /** Sends the first message, whose run looks then. */
  const begin = async (words: string) => {
    await send(opened.page, words)
    await tool.reached
    await opened.page.getByPlaceholder('Tell assistant while it works…').waitFor()
  }
  return { ...opened, m, tool, runs, heard, begin }
}

const toldIn = (prompt: readonly { role: string }[]) => prompt.filter(({ role }) => role === 'user').length

/** With Enter, as one who types. */
async function send(page: Page, words: string): Promise<void> {
  await box(page).fill(words)
  await box(page).press('Enter')
}

async function look(page: Page, name: string): Promise<void> {
  await atEachScreen(page, name, async (screen) => {
    expect(await flaws(page), screen.name).toEqual([])
    await expectAccessibleAt(page, screen)
  })
  await page.setViewportSize({ width: 1440, height: 900 })
}

describe.skipIf(browser === undefined)(`messages into a running turn${fault}`, () => {
  test('Enter steers: the message waits, over a reload, then stands between the steps in the chat, the run and the thread', async () => {
    const { page, server, tool, heard, begin, m } = await open()
    await begin('What happened last year?')
    await send(page, 'Only in spring')
    const run = await heard(1)
    await waits(page).waitFor()
    await look(page, 'chat-steering')
    await page.reload()
    await waits(page).waitFor()
    expect(await said(page).allInnerTexts()).toEqual(['What happened last year?', 'Only in spring'])

    tool.open()
    const whole = /I look\.[^]*look[^]*Only in spring[^]*I was told 2\./u
    for (const again of [false, true]) {
      if (again) await page.reload()
      await expect.poll(() => answers(page).innerText()).toMatch(whole)
      expect(await said(page).allInnerTexts()).toEqual(['What happened last year?', 'Only in spring'])
      expect([await answers(page).count(), await takeBack(page).count()]).toEqual([1, 0])
    }
    expect(toldWords(m.prompts[1]!).at(-1)).toBe('user: Only in spring')

    const [message] = only(await entriesOf(server.store, run), 'message')
    await page.goto(`${server.url}/runs/${run}`)
    const row = page.getByTestId('message-row')
    await expect.poll(() => row.innerText()).toMatch(/message\s+Only in spring/u)
    const paths = await page
      .getByRole('treegrid')
      .getByRole('row')
      .evaluateAll((all) => all.map((each) => each.dataset['path'] ?? each.dataset['testid']))
    expect(paths).toEqual([undefined, 'main/answer', 'main/answer/1', 'main/answer/2', 'message-row', 'main/answer/3'])
    for (let i = 0; i < 4; i++) await page.keyboard.press('j')
    await expect.poll(() => row.getAttribute('aria-selected')).toBe('true')
    expect(new URL(page.url()).searchParams.get('sel')).toBe(String(message!.seq))
    await page.getByRole('heading', { name: `#${message!.seq} message` }).waitFor()
    await look(page, 'run-message')
    // Before it was told it is not there.
    await page.goto(`${server.url}/runs/${run}?at=${message!.seq - 1}`)
    await page.getByTestId('step-row').first().waitFor()
    expect(await row.count()).toBe(0)
    await page.goto(`${server.url}/threads/${(await server.store.runs.get(run))!.threadId}`)
    await expect
      .poll(() => page.getByTestId('thread-pane').innerText())
      .toMatch(/What happened last year\?[^]*I look\.[^]*Only in spring[^]*I was told 2\./u)
  })

  test('a message that waits is taken back, with its file, into the box; the model is told the other one only', async () => {
    const { page, tool, heard, begin, m } = await open()
    await begin('Hi')
    await page
      .getByTestId('file-input')
      .setInputFiles({ name: 'notes.txt', mimeType: 'text/plain', buffer: Buffer.from('n') })
    await page.getByLabel('Attached files').waitFor()
    await send(page, 'Shorter')
    await heard(1)
    await send(page, 'In French')
    await heard(2)
    await box(page).fill('Half a thought')
    await takeBack(page).first().click()
    await expect.poll(() => box(page).inputValue()).toBe('Shorter\n\nHalf a thought')
    expect(await page.getByLabel('Attached files').innerText()).toBe('notes.txt')
    expect(await box(page).evaluate((each) => each === document.activeElement)).toBe(true)
    await expect.poll(() => said(page).allInnerTexts()).toEqual(['Hi', 'In French'])
    tool.open()
    await expect.poll(() => answers(page).innerText()).toMatch(/In French[^]*I was told 2\./u)
    expect(toldWords(m.prompts.at(-1)!).filter((each) => each.startsWith('user'))).toEqual([
      'user: Hi',
      'user: In French',
    ])
    await page.reload()
    await expect.poll(() => said(page).allInnerTexts()).toEqual(['Hi', 'In French'])
    expect(await box(page).inputValue()).toBe('Shorter\n\nHalf a thought')
  })

  test('Stop gives back what was not delivered, words and files; the chat says that it was not', async () => {
    const { page, tool, heard, begin, runs } = await open()
    await begin('Hi')
    await page
      .getByTestId('file-input')
      .setInputFiles({ name: 'notes.txt', mimeType: 'text/plain', buffer: Buffer.from('n') })
    await page.getByLabel('Attached files').waitFor()
    await send(page, 'Shorter')
    await send(page, 'In French')
    await heard(2)
    // One of them was sent before this page was loaded.
    await page.reload()
    await expect.poll(() => waits(page).count()).toBe(2)
    await page.getByTestId('stop-button').click()
    await expect.poll(() => box(page).inputValue()).toBe('Shorter\n\nIn French')
    expect(await page.getByLabel('Attached files').innerText()).toBe('notes.txt')
    await expect
      .poll(() => answers(page).innerText())
      .toMatch(/Shorter[^]*not delivered: the run was stopped[^]*Stopped\./u)
    expect(await takeBack(page).count()).toBe(0)
    tool.open()
    // What came back is sent as any other message.
    await box(page).press('Enter')
    await expect.poll(async () => (await runs()).length).toBe(2)
    await expect.poll(() => said(page).last().innerText()).toMatch(/Shorter[^]*In French[^]*notes\.txt/u)
  })

  test('a message that is too large for a running turn says so, and returns to the box', async () => {
    const { page, tool, heard, begin } = await open()
    await begin('Hi')
    await send(page, 'word '.repeat(8000))
    const notSent = page.getByRole('alert').filter({ hasText: 'Not sent: it is too large.' })
    await expect.poll(() => notSent.innerText()).toContain('content must have at most 32 KB, and has 40 KB.')
    // The same again fails again.
    expect(await page.getByRole('button', { name: 'Send again' }).count()).toBe(0)
    await page.getByRole('button', { name: 'Edit', exact: true }).click()
    await notSent.waitFor({ state: 'detached' })
    expect((await box(page).inputValue()).length).toBe(40_000)
    await send(page, 'Shorter')
    await heard(1)
    tool.open()
    await expect.poll(() => answers(page).innerText()).toMatch(/Shorter[^]*I was told 2\./u)
  })

  test('a message that comes too late begins the next run, and stands there once', async () => {
    const words = latch()
    const tool = latch()
    tool.open()
    const { page, heard, runs } = await open({ tool, words, config: 'tools: [look]\nmaxSteps: 2' })
    await send(page, 'Hi')
    await words.reached
    await send(page, 'And then?')
    await heard(1)
    words.open()
    await expect.poll(async () => (await runs()).map(({ status }) => status)).toEqual(['completed', 'completed'])
    for (const again of [false, true]) {
      if (again) await page.reload()
      await expect.poll(() => answers(page).count()).toBe(2)
      await expect.poll(() => answers(page).last().innerText()).toContain('I was told')
      expect(await said(page).allInnerTexts()).toEqual(['Hi', 'And then?'])
      expect(await page.getByText('begins the next').count()).toBe(0)
    }
  })

  test('what somebody else has sent has their name, in the chat and in the run', async () => {
    const { page, server, tool, heard, begin } = await open({
      handler: { access: createTestAccess(), localOnly: false },
    })
    await page.getByRole('dialog', { name: 'Sign in' }).getByLabel('Key').waitFor()
    await page.keyboard.type(tokenOf('alice'))
    await page.keyboard.press('Enter')
    await page.getByRole('dialog').waitFor({ state: 'hidden' })
    await begin('Hi')
    const { id } = (await server.store.runs.list({}))[0]!
    await server.post(`/api/runs/${id}/messages`, { content: 'Shorter' }, { headers: headersFor('admin of acme') })
    await heard(1)
    await send(page, 'In French')
    await heard(2)
    await page.reload()
    await page.getByText('From anna. Waiting for the next call of the model…').waitFor()
    tool.open()
    await expect.poll(() => answers(page).innerText()).toMatch(/Shorter[^]*from anna[^]*In French[^]*I was told 3\./u)
    expect(await answers(page).innerText()).not.toContain('alice')
    await page.goto(`${server.url}/runs/${id}`)
    await expect
      .poll(() => page.getByTestId('message-row').allInnerTexts())
      .toEqual([expect.stringMatching(/anna\s+Shorter/u), expect.stringMatching(/alice\s+In French/u)])
  })
})
