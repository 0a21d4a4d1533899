/** How soon the page is there for somebody who has never opened it: nothing is cached, no worker runs. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Page } from 'playwright-core'
import type { TestBrowser } from '../test/browser/chromium.ts'
import { watched } from './web-frames.ts'

const view = { locale: 'en-US', viewport: { width: 1440, height: 900 } }

/** A tab of a profile of its own. It ends with `close`. */
export async function freshTab(browser: TestBrowser): Promise<{ page: Page; close(): Promise<void> }> {
  const context = await browser.newContext(view)
  return { page: await context.newPage(), close: () => context.close() }
}

/** ms from the navigation to the first paint, and until one can write. */
export async function coldStart(browser: TestBrowser, url: string): Promise<{ paint: number; usable: number }> {
  const { page, close } = await freshTab(browser)
  await page.addInitScript(() => {
    const note = () => {
      if (document.querySelector('[data-testid=chat-input]:not(:disabled)') === null) return
      observer.disconnect()
      performance.mark('usable')
    }
    const observer = new MutationObserver(note)
    observer.observe(document, { subtree: true, childList: true, attributes: true })
  })
  await page.goto(url)
  const times = await timesOf(page, ['first-contentful-paint', 'usable'])
  await close()
  return { paint: times[0]!, usable: times[1]! }
}

/** A page of one word, what the machine and the browser take for themselves: ms to its first paint, and of its longest frame. */
export async function blankStart(browser: TestBrowser, seconds = 0): Promise<{ paint: number; frame: number }> {
  const server = createServer((_, response) => {
    response.writeHead(200, { 'content-type': 'text/html' }).end('<!doctype html><title>blank</title><p>Hello')
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const { page, close } = await freshTab(browser)
  await page.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`)
  const [paint] = await timesOf(page, ['first-contentful-paint'])
  const frame = await watched(page, seconds)
  await close()
  server.closeAllConnections()
  await new Promise((done) => server.close(done))
  return { paint: paint!, frame }
}

/** ms until the list of runs has a row, in the last of so many tabs of one window. */
export async function lastTab(browser: TestBrowser, url: string, tabs: number): Promise<number> {
  const context = await browser.newContext(view)
  let took = 0
  for (let i = 0; i < tabs; i++) {
    const page = await context.newPage()
    const began = performance.now()
    await page.goto(`${url}/runs`)
    await page.getByTestId('run-row').first().waitFor()
    took = performance.now() - began
  }
  await context.close()
  return took
}

async function timesOf(page: Page, names: readonly string[]): Promise<number[]> {
  return page.evaluate(async (wanted) => {
    for (;;) {
      const found = wanted.map((name) => performance.getEntriesByName(name)[0]?.startTime)
      if (found.every((time) => time !== undefined)) return found
      await new Promise((done) => setTimeout(done, 20))
    }
  }, names)
}
