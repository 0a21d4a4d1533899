/** Conversations in a real browser: the list, one as a chat of its runs with its branches, and the end of one. */
import { describe, expect, test } from 'vitest'
import { createScriptedModel, finish, latch, text } from '../../src/models/testing/scripted-model.ts'
import { agent, until } from '../support/engine.ts'
import type { TestServer } from '../support/server.ts'
import { expectAccessible } from './axe.ts'
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
    await page.getByText('No conversations yet.').waitFor()
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
      await expectAccessible(page)
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
    await page.getByRole('button', { name: 'Branch before' }).click()
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
})
