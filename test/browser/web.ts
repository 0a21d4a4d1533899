/** The page of the server in a real browser. Every fault that the browser tells of fails the test. */
import type { BrowserContextOptions, Page } from 'playwright-core'
import { expect, onTestFinished } from 'vitest'
import { openWebFiles } from '../../src/server/serve.ts'
import type { HandlerOptions } from '../../src/server/handler-context.ts'
import type { EngineOptions } from '../support/engine.ts'
import { startServer, type TestServer } from '../support/server.ts'
import type { TestBrowser } from './chromium.ts'

export interface OpenedWeb {
  server: TestServer
  page: Page
  /** A second tab of the same browser window. */
  openTab(path?: string): Promise<Page>
}

export interface WebOptions {
  engine: EngineOptions
  handler?: Partial<HandlerOptions>
  path?: string
  /** The list of chats stands beside a chat, whose words are then on the page twice. Default: it is folded. */
  chats?: boolean
  context?: BrowserContextOptions
  /** Messages of the console or failed requests that the test expects. */
  allows?: RegExp
}

/** A server with the built page (`npm run build` first), and a tab that shows it. Both end with the test. */
export async function openWeb(browser: TestBrowser | undefined, options: WebOptions): Promise<OpenedWeb> {
  const { engine, handler = {}, ...rest } = options
  const server = await startServer(engine, { web: openWebFiles(), localOnly: true, ...handler })
  return { server, ...(await openTabs(browser, server, rest)) }
}

/** A tab that shows any server's page. Both end with the test. */
export async function openTabs(
  browser: TestBrowser | undefined,
  server: { url: string; close(): Promise<unknown> },
  { path = '/', chats = false, context: given, allows }: Omit<WebOptions, 'engine' | 'handler'>,
): Promise<Omit<OpenedWeb, 'server'>> {
  const context = await browser!.newContext({ locale: 'en-US', viewport: { width: 1440, height: 900 }, ...given })
  if (!chats) await context.addInitScript("localStorage.setItem('millrace-chats', 'folded')")
  const faults: string[] = []
  const fault = (text: string) => {
    if (allows?.test(text) !== true) faults.push(text)
  }
  onTestFinished(async () => {
    await context.close()
    await server.close()
    expect(faults).toEqual([])
  })

  async function openTab(to = '/'): Promise<Page> {
    const page = await context.newPage()
    watchFaults(page, server.url, fault)
    await page.goto(server.url + to)
    return page
  }

  return { page: await openTab(path), openTab }
}

/** What the browser finds wrong with a page of a server, which asks no other. */
export function watchFaults(page: Page, url: string, fault: (text: string) => void): void {
  page.on('pageerror', (error) => fault(String(error.stack ?? error)))
  // Violations of the Content-Security-Policy are errors of the console.
  page.on('console', (message) => message.type() === 'error' && fault(message.text()))
  page.on('request', (request) => {
    const { origin, protocol } = new URL(request.url())
    if (origin !== url && protocol !== 'blob:' && protocol !== 'data:') fault(`asks ${request.url()}`)
  })
}
