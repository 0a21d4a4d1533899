/** The page in a real browser: its rooms open by the rail, and the policy of the page allows all that it does. */
import { afterAll, describe, expect, test } from 'vitest'
import { agent } from '../support/engine.ts'
import { expectAccessible } from './axe.ts'
import { launchBrowser } from './chromium.ts'
import { atEachScreen, sticksOut } from './screens.ts'
import { openWeb } from './web.ts'

const { browser, fault } = await launchBrowser()
afterAll(() => browser?.close())

describe.skipIf(browser === undefined)(`the page${fault}`, () => {
  test('the rail leads to every room, and a link opens it again', async () => {
    const { page } = await openWeb(browser, { engine: { agents: { assistant: agent() } } })
    for (const [name, path] of Object.entries({
      Runs: '/runs',
      Threads: '/threads',
      Agents: '/agents',
      Overview: '/overview',
    })) {
      await page.getByRole('navigation', { name: 'Rooms' }).getByRole('link', { name }).click()
      await expect.poll(() => new URL(page.url()).pathname).toBe(path)
      await page.reload()
      const link = page.getByRole('navigation', { name: 'Rooms' }).getByRole('link', { name })
      await expect.poll(() => link.getAttribute('aria-current')).toBe('page')
    }
  })

  test('nothing sticks out, and nothing is hard to use, at any size and in either theme', async () => {
    const { page } = await openWeb(browser, { engine: { agents: { assistant: agent() } } })
    await page.getByRole('navigation', { name: 'Rooms' }).waitFor()
    await atEachScreen(page, 'shell', async ({ name }) => {
      expect(await sticksOut(page), name).toEqual([])
      await expectAccessible(page)
    })
  })
})
