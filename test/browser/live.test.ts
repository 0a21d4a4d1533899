/** The page's tabs share one connection, in a real browser, and outlive the server: one that ends, and one that is killed. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createScriptedModel, finish, latch } from '../../src/models/testing/scripted-model.ts'
import { openWebFiles } from '../../src/server/serve.ts'
import { agent, entriesOf } from '../support/engine.ts'
import { startServer } from '../support/server.ts'
import { spawnServer } from '../support/server-process.ts'
import { startUpstream } from '../support/upstream.ts'
import { launchBrowser } from './chromium.ts'
import { openTabs } from './web.ts'

const { browser, fault } = await launchBrowser()

const delta = (word: string) => ({ type: 'text-delta' as const, id: 't', delta: word })

/** What the page of a run says: its text and its status. */
const runOf = async (page: Page) => {
  const words = await page.locator('[data-testid=run-text] [data-piece=text]').allInnerTexts()
  return `${words.join('').trim()} (${await page.getByTestId('run-status').getAttribute('data-status')})`
}
const all = (pages: readonly Page[]) => Promise.all(pages.map(runOf))
const unreachable = (page: Page) => page.getByText('The server cannot be reached.')
/** What the browser tells of a server that is away. */
const away = /Failed to load resource|ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED_ENCODING|ERR_EMPTY_RESPONSE/u

describe.skipIf(browser === undefined)(`tabs${fault}`, () => {
  test('eight rooms have one connection and each token at once; they outlive the server; a ninth joins them', async () => {
    const gates = [latch(), latch()]
    const first = [{ type: 'text-start' as const, id: 't' }, delta('one '), gates[0]!, delta('two '), gates[1]!]
    const again = [{ type: 'text-start' as const, id: 't' }, delta('three'), { type: 'text-end' as const, id: 't' }]
    const streams = new Set<Request>()
    let most = 0
    const launch = (port: number, dir?: string) =>
      startServer(
        {
          agents: { a: agent('', 'recover: true') },
          scripts: { m: createScriptedModel(dir === undefined ? [first] : [[...again, finish()]]) },
          keep: true,
          ...(dir !== undefined && { dir }),
        },
        {
          web: openWebFiles(),
          port,
          authorize(request) {
            if (!request.url.includes('/api/live')) return true
            streams.add(request)
            most = Math.max(most, streams.size)
            request.signal.addEventListener('abort', () => streams.delete(request))
            return true
          },
        },
      )
    let server = await launch(0)
    const { dir, url } = server
    onTestFinished(() => rmSync(dir, { recursive: true }))
    const run = await server.runtime.start('a', { messages: [{ role: 'user', content: 'Hi' }] })
    const path = `/runs/${run.id}`
    const whole = { url, close: () => server.close() }
    const { page: list, openTab } = await openTabs(browser, whole, { path: '/runs', allows: away })
    const tabs = await Promise.all(Array.from({ length: 7 }, () => openTab(path)))
    await expect.poll(() => all(tabs)).toEqual(Array(7).fill('one (running)'))
    gates[0]!.open()
    await expect.poll(() => all(tabs)).toEqual(Array(7).fill('one two (running)'))
    await list.getByTestId('run-row').getByText('running').waitFor()
    await expect.poll(() => streams.size).toBe(1)
    // A change of what the tabs want opens one before it closes the other; two may follow each other closely.
    expect(most).toBeLessThanOrEqual(4)

    await server.close()
    streams.clear()
    for (const page of [list, ...tabs]) await unreachable(page).waitFor()
    // What was there stays.
    expect(await all(tabs)).toEqual(Array(7).fill('one two (running)'))
    server = await launch(Number(new URL(url).port), dir)
    await server.runtime.recover()
    await expect.poll(() => all(tabs)).toEqual(Array(7).fill('three (completed)'))
    await list.getByTestId('run-row').getByText('completed').waitFor()
    for (const page of [list, ...tabs]) await unreachable(page).waitFor({ state: 'detached' })
    expect((await entriesOf(server.store, run.id)).some(({ type }) => type === 'step-reset')).toBe(true)

    const ninth = await openTab(path)
    await expect.poll(() => runOf(ninth)).toBe('three (completed)')
    await expect.poll(() => streams.size).toBe(1)
  })

  test('a server that is killed and comes back: the page of the run and the list show what has become of it', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'millrace-killed-'))
    const held = Promise.withResolvers<void>()
    const upstream = await startUpstream(async (reply, n) => {
      reply.say(n === 1 ? 'before the end' : 'after it')
      if (n === 1) await held.promise
      reply.finish()
    })
    onTestFinished(async () => {
      held.resolve()
      await upstream.close()
      rmSync(folder, { recursive: true })
    })
    const [agents, data] = [join(folder, 'agents'), join(folder, 'data')]
    mkdirSync(agents)
    const workflow = '- { id: answer, type: llm, config: { model: "up:m", messages: "$input.messages", stream: true } }'
    writeFileSync(join(agents, 'a.yaml'), `recover: true\nworkflow:\n  ${workflow}\n`)
    const endpoint = ['--endpoint', `up=${upstream.baseURL}`]
    let server = await spawnServer(agents, data, ...endpoint)
    const { url } = server
    const whole = { url, close: () => server.kill() }
    const { page, openTab } = await openTabs(browser, whole, { path: '/runs', allows: away })
    const input = { messages: [{ role: 'user', content: 'Hi' }] }
    const response = await fetch(`${url}/api/runs`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ agentId: 'a', input }),
    })
    const { id } = (await response.json()) as { id: string }
    const room = await openTab(`/runs/${id}`)
    await expect.poll(() => runOf(room)).toBe('before the end (running)')
    await page.getByTestId('run-row').getByText('running').waitFor()

    await server.kill()
    for (const tab of [page, room]) await unreachable(tab).waitFor()
    expect(await runOf(room)).toBe('before the end (running)')
    server = await spawnServer(agents, data, ...endpoint, '--port', new URL(url).port)
    await expect.poll(() => runOf(room)).toBe('after it (completed)')
    await page.getByTestId('run-row').getByText('completed').waitFor()
    for (const tab of [page, room]) await unreachable(tab).waitFor({ state: 'detached' })
    expect(upstream.requests).toHaveLength(2)
    // Its log has the attempt that was lost, too, and the page leads there.
    await room.getByRole('button', { name: 'Steps' }).click()
    await room.locator('[data-testid=log-row][data-type=step-reset]').waitFor()
  })
})
