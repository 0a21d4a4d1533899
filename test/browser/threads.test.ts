/** Conversations in a real browser: the list, one as a chat of its runs with its branches, and the end of one. */
import { describe, expect, test } from 'vitest'
import { createScriptedModel, finish, latch, text } from '../../src/models/testing/scripted-model.ts'
import { agent, until } from '../support/engine.ts'
import type { TestServer } from '../support/server.ts'
import { expectAccessibleAt } from './axe.ts'
import { launchBrowser } from './chromium.ts'
import { flaws } from './flaws.ts'
import { atEachScreen, type Screen } from './screens.ts'
import { openWeb } from './web.ts'

const { browser, fault } = await launchBrowser()

interface Started {
  id: string
  threadId: string
}

async function start({ post }: TestServer, content: string, more: object = {}): Promise<Started> {
  const body = { agentId: 'assistant', input: { messages: [{ role: 'user', content }] }, ...more }
  return (await post('/api/runs', body)).json() as Promise<Started>
}

describe.skipIf(browser === undefined)(`threads${fault}`, () => {
  test('the list leads to a chat of runs; another branch is a link; a turn streams; the thread is deleted', async () => {
    const gate = latch()
    const say = (words: string) => [text(words), finish()]
    const script = [say('One.'), say('Two.'), say('Two again.'), say('Elsewhere.'), [text('Thr', 'ee'), gate, finish()]]
    const { page, server, openTab } = await openWeb(browser, {
      engine: {
        agents: { assistant: agent('', 'history: server') },
        scripts: { m: createScriptedModel(script) },
      },
      path: '/threads',
    })
    await page.getByText('No threads yet.').waitFor()
    const whole = async (started: Promise<Started>) => {
      const { id, threadId } = await started
      await until(server.store, id, ({ type }) => type === 'run-end')
      return { id, threadId }
    }
    const first = await whole(start(server, 'question one'))
    const { threadId } = first
    const second = await whole(start(server, 'question two', { threadId }))
    const other = await whole(start(server, 'question two, said better', { threadId, previousRunId: first.id }))
    await whole(start(server, 'another matter'))

    // The rows come by themselves, each thread once.
    const row = page.getByRole('row').filter({ hasText: 'question one' })
    await row.waitFor()
    await page.getByRole('row').filter({ hasText: 'another matter' }).waitFor()
    expect(await page.getByRole('row').count()).toBe(3)
    await expect.poll(() => row.getByRole('cell').nth(3).textContent()).toBe('3')
    const look = async ({ name }: Screen) => {
      expect(await flaws(page), name).toEqual([])
      await expectAccessibleAt(page, { name })
    }
    await atEachScreen(page, 'threads', look)
    await page.keyboard.press('j')
    await page.keyboard.press('j')
    await expect.poll(() => new URL(page.url()).searchParams.get('sel')).toBe(threadId)
    await page.keyboard.press('Enter')
    await expect.poll(() => new URL(page.url()).pathname).toBe(`/threads/${threadId}`)

    // The newest branch, and the other one by a link that others can open.
    await page.getByText('Two again.').waitFor()
    expect(await page.getByText('Two.', { exact: true }).count()).toBe(0)
    await page.getByText('2/2').waitFor()
    await page.getByRole('button', { name: 'Previous branch' }).click()
    await page.getByText('Two.', { exact: true }).waitFor()
    expect(new URL(page.url()).searchParams.get('run')).toBe(second.id)
    const tab = await openTab(`/threads/${threadId}?run=${second.id}`)
    await tab.getByText('Two.', { exact: true }).waitFor()
    expect(await tab.getByText('Two again.').count()).toBe(0)
    await page.goBack()
    await page.getByText('Two again.').waitFor()

    // A turn that begins meanwhile streams.
    await start(server, 'question three', { threadId, previousRunId: other.id })
    await page.getByText('Three', { exact: true }).waitFor()
    await gate.reached
    gate.open()
    await expect.poll(() => page.getByText('completed').count()).toBe(3)
    await page.getByText('4 runs').waitFor()
    await atEachScreen(page, 'thread', look)
    const chat = await page.getByRole('link', { name: 'Continue in chat' }).getAttribute('href')
    expect(chat).toBe(`/chat/assistant?thread=${threadId}`)

    await page.getByRole('button', { name: 'Delete' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Keep it' }).click()
    await page.getByRole('button', { name: 'Delete' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
    await page.getByRole('row').filter({ hasText: 'another matter' }).waitFor()
    expect(await page.getByRole('row').filter({ hasText: 'question one' }).count()).toBe(0)
  })

  test('beside the chat: who is alone with the keyboard finds, opens, names and deletes a chat, and other tabs see it', async () => {
    const gate = latch()
    const say = (words: string) => [text(words), finish()]
    const { page, server, openTab } = await openWeb(browser, {
      engine: {
        agents: { assistant: agent('', 'history: server'), other: agent() },
        scripts: { m: createScriptedModel([say('One.'), say('Two.'), [text('Elsewhere'), gate, finish()]]) },
      },
      chats: true,
    })
    const chats = page.getByRole('table', { name: 'Chats' })
    const rowOf = (words: string) => chats.getByRole('row').filter({ hasText: words })
    await page.getByText('No chats yet.').waitFor()
    for (const words of ['where is Rome', 'the weather']) {
      await until(server.store, (await start(server, words)).id, ({ type }) => type === 'run-end')
    }
    await start(server, 'another matter', { agentId: 'other' })
    await gate.reached
    await rowOf('another matter').getByText('running').waitFor()
    expect(await rowOf('another matter').innerText()).toContain('other')
    expect(await chats.getByRole('link').allTextContents()).toEqual(['another matter', 'the weather', 'where is Rome'])
    gate.open()
    await rowOf('another matter').getByText('running').waitFor({ state: 'detached' })

    // The newest is reached by Tab, the others by arrows.
    await page.getByRole('searchbox', { name: 'Find in chats' }).focus()
    await page.keyboard.press('Tab')
    for (const key of ['ArrowDown', 'End', 'Home', 'End']) await page.keyboard.press(key)
    await expect.poll(() => page.evaluate(() => document.activeElement?.textContent)).toBe('where is Rome')
    await page.keyboard.press('Enter')
    await page.getByTestId('assistant-message').getByText('One.').waitFor()
    await rowOf('where is Rome').locator('[aria-current=page]').waitFor()
    const name = page.locator('header').getByRole('link', { name: 'where is Rome' })
    await name.waitFor()

    // A name, for all tabs.
    const tab = await openTab('/threads')
    await tab.getByRole('link', { name: 'where is Rome' }).waitFor()
    await rowOf('where is Rome').getByRole('link').press('F2')
    await page.keyboard.type('Italy')
    await page.keyboard.press('Escape')
    await rowOf('where is Rome').getByRole('link').press('F2')
    await page.keyboard.type('A week in Italy')
    await page.keyboard.press('Enter')
    await rowOf('A week in Italy').waitFor()
    await page.locator('header').getByRole('link', { name: 'A week in Italy' }).waitFor()
    await tab.getByRole('link', { name: 'A week in Italy' }).waitFor()
    expect(await page.evaluate(() => document.activeElement?.textContent)).toBe('A week in Italy')
    await page.getByRole('searchbox', { name: 'Find in chats' }).fill('italy week')
    await expect.poll(() => chats.getByRole('link').allTextContents()).toEqual(['A week in Italy'])
    await page.getByRole('searchbox', { name: 'Find in chats' }).fill('')
    await rowOf('the weather').waitFor()
    const look = async ({ name: screen }: Screen) => {
      expect(await flaws(page), screen).toEqual([])
      await expectAccessibleAt(page, { name: screen })
    }
    await atEachScreen(page, 'chat-list', look)

    // A drawer on a phone; the name stays in sight.
    await page.setViewportSize({ width: 360, height: 740 })
    await page.getByRole('banner').getByText('A week in Italy').waitFor()
    await page.getByRole('button', { name: 'Chats', exact: true }).click()
    await rowOf('A week in Italy').waitFor()
    await atEachScreen(page, 'chats', look, [{ name: '360-light', width: 360, height: 740, theme: 'light' }])
    await rowOf('the weather').getByRole('link').click()
    await page.getByTestId('assistant-message').getByText('Two.').waitFor()
    await chats.waitFor({ state: 'detached' })

    // What is folded stays so.
    await page.setViewportSize({ width: 1440, height: 900 })
    await page.getByRole('button', { name: 'Fold the list of chats' }).click()
    await page.reload()
    await page.getByRole('button', { name: 'Chats', exact: true }).click()
    await rowOf('the weather').hover()
    await rowOf('the weather').getByRole('button').click()
    await page.getByRole('button', { name: 'Delete', exact: true }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
    await rowOf('the weather').waitFor({ state: 'detached' })
    await expect.poll(() => new URL(page.url()).search).toBe('')
    expect(await chats.getByRole('link').allTextContents()).toEqual(['another matter', 'A week in Italy'])
  })
})
