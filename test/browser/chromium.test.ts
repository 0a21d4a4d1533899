/** The browser of the tests outlives its own crash: it is started again for the next test. */
import { expect, test } from 'vitest'
import { launchBrowser } from './chromium.ts'

const { browser, fault } = await launchBrowser()

test.skipIf(browser === undefined)(`a browser that has crashed is started again${fault}`, async () => {
  const before = await browser!.newContext()
  const session = await before.browser()!.newBrowserCDPSession()
  await session.send('Browser.crash').catch(() => {})
  const after = await browser!.newContext()
  const page = await after.newPage()
  await page.setContent('<p>here</p>')
  expect(await page.textContent('p')).toBe('here')
  expect(before.browser()!.isConnected()).toBe(false)
  await after.close()
})
