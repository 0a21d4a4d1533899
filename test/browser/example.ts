/** An example's page in a real browser: from an origin of its own, against a server with the example's agent and a model of the test. */
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, expect, onTestFinished } from 'vitest'
import type { ScriptedModel } from '../../src/models/testing/scripted-model.ts'
import { startServer, type TestServer } from '../support/server.ts'
import type { TestBrowser } from './chromium.ts'
import { servePage, type ServedPage } from './page.ts'

export interface Example {
  /** Of the current test. */
  readonly server: TestServer
  open(model: ScriptedModel): Promise<Page>
  /** The status of the newest run. */
  status(): Promise<string | undefined>
}

/** Call it in a `describe`. */
export function inExample(browser: TestBrowser | undefined, name: string): Example {
  const folder = resolve('examples', name)
  /** The agent as it stands there, with another model. Nothing but Stop stops it. */
  const shipped = readFileSync(resolve(folder, 'agents/assistant.yaml'), 'utf8')
  const yaml = `onDisconnect: detach\n${shipped.replace('demo:assistant', 'script:m')}`
  let site: ServedPage
  let server: TestServer
  beforeAll(async () => void (site = await servePage(folder)))
  afterAll(() => site.close())
  afterEach(() => server.close())

  return {
    get server() {
      return server
    },
    async open(model) {
      server = await startServer(
        { agents: { assistant: yaml }, scripts: { m: model } },
        { allowedOrigins: [site.origin], localOnly: true },
      )
      const context = await browser!.newContext()
      const page = await context.newPage()
      const faults: unknown[] = []
      page.on('pageerror', (error) => void faults.push(error))
      onTestFinished(async () => {
        await context.close()
        expect(faults).toEqual([])
      })
      await page.goto(`${site.origin}/?server=${server.url}`)
      return page
    },
    status: async () => (await server.store.runs.list({}))[0]?.status,
  }
}

export async function say(page: Page, words: string): Promise<void> {
  await page.getByLabel('Message').fill(words)
  await page.getByRole('button', { name: 'Send' }).click()
}

export function linesOf(page: Page): Promise<string[]> {
  return page.locator('#messages p').allTextContents()
}
