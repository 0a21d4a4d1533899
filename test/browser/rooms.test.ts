/** Every room of the page with much in it, at four sizes and in both themes: nothing sticks out, is cut or covered, and axe finds nothing serious. */
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openWebFiles, serve, type Served } from '../../src/server/serve.ts'
import { agent } from '../support/engine.ts'
import { startServer } from '../support/server.ts'
import { expectAccessible } from './axe.ts'
import { launchBrowser } from './chromium.ts'
import { flaws } from './flaws.ts'
import { createFullStore, type FullStore } from './full-store.ts'
import { rowsSeen } from './rows-seen.ts'
import { atEachScreen, roomScreens, takesPictures } from './screens.ts'
import { openTabs, watchFaults } from './web.ts'

const { browser, fault } = await launchBrowser()

interface Room {
  path(full: FullStore): string
  /** Seen when the room is there. */
  ready: string
  /** Opens what lies over the room. */
  open?(page: Page): Promise<void>
  allows?: RegExp
}

const step = '[data-testid=step-row]'
const answer = '[data-testid=assistant-message]'
const run = (name: keyof FullStore['runs'], more = ''): Room => ({
  path: ({ runs }) => `/runs/${runs[name]}${more}`,
  ready: step,
})
const at = (path: string, ready: string, more: Partial<Room> = {}): Room => ({ path: () => path, ready, ...more })

const rooms: Record<string, Room> = {
  overview: at('/overview', 'table tbody tr'),
  agents: at('/agents', '[data-testid=agent-row]'),
  agent: at('/agents/research-team', '.cm-line'),
  'agent-broken': at('/agents/broken', '[data-testid=agent-fault]'),
  'chat-new': at('/chat/assistant', '[data-testid=chat-input]'),
  'chat-form': at('/chat/trip', 'form select, form input'),
  chat: { path: ({ thread }) => `/chat/assistant?thread=${thread}`, ready: '[data-testid=open-request]' },
  'chat-stream': { path: ({ thread }) => `/chat/assistant?thread=${thread}&panel=frames`, ready: answer },
  'chat-agent': { path: ({ thread }) => `/chat/assistant?thread=${thread}&panel=agent`, ready: answer },
  'chat-steered': at('/chat/steered?thread=thread_steered', answer),
  'chat-unknown': at('/chat/nobody', 'main h2, main h1', { allows: /404/u }),
  beside: {
    path: ({ thread }) =>
      `/beside?a=assistant&thread=${thread}&a=steered&model=demo:x&thread=thread_steered&a=nobody&a=trip`,
    ready: '[data-testid=open-request]',
    allows: /404/u,
  },
  runs: at('/runs', '[data-testid=run-row]'),
  'runs-waits': at('/runs?waits=all', '[data-testid=open-request]'),
  'runs-failed': at('/runs?status=failed', '[data-testid=run-row]'),
  run: run('team'),
  'run-waiting': run('waiting'),
  'run-failed': run('failed'),
  'run-forked': run('forked'),
  'run-steered': run('steered'),
  'run-step': run('chat', '?sel=main/answer/2'),
  'run-prompt': run('chat', '?sel=main/answer/1&tab=prompt'),
  'run-usage': run('chat', '?sel=main/answer/1&tab=usage'),
  'run-rewound': run('chat', '?at=20'),
  'run-long': run('long'),
  'run-fork': {
    ...run('chat'),
    async open(page) {
      await page.keyboard.press('Escape')
      await page.getByRole('button', { name: 'Fork' }).click()
      await page.getByRole('dialog').getByLabel('From').waitFor()
    },
  },
  'run-unknown': at('/runs/run_000', '[role=alert], main h2', { allows: /404/u }),
  tests: at('/tests', '[data-testid=test-row]'),
  threads: at('/threads', 'tr[data-id]'),
  thread: { path: ({ thread }) => `/threads/${thread}`, ready: '[data-run]' },
  'thread-steered': at('/threads/thread_steered', '[data-run]'),
  'thread-unknown': at('/threads/none', '[role=alert], main h2', { allows: /404/u }),
  compare: {
    path: ({ runs }) => `/compare?a=${runs.chat}&b=${runs.steered}`,
    ready: ':is([data-testid=prompt-parts], [data-testid=step-pair])',
  },
  'compare-tools': {
    path: ({ runs }) => `/compare?a=${runs.chat}&b=${runs.forked}&by=tools`,
    ready: '[role=tabpanel]',
  },
  'compare-timing': {
    path: ({ runs }) => `/compare?a=${runs.chat}&b=${runs.team}&by=timing`,
    ready: '[role=tabpanel]',
  },
  palette: at('/runs', '[data-testid=run-row]', {
    async open(page) {
      await page.keyboard.press('Control+k')
      await page.keyboard.type('a')
      await page.getByRole('dialog').getByRole('option').first().waitFor()
    },
  }),
  keys: at('/runs', '[data-testid=run-row]', {
    async open(page) {
      await page.keyboard.press('?')
      await page.getByRole('dialog').waitFor()
    },
  }),
  unknown: at('/nonsense', 'main', { allows: /404/u }),
}

/** What is where is seen in light, so the dark ones that axe does not look at say nothing. */
const shown = roomScreens.filter(({ name, theme }) => takesPictures || theme === 'light' || name === '390-dark')

describe.skipIf(browser === undefined)(`rooms with much in them${fault}`, () => {
  let full: FullStore
  let server: Served
  let tab: Page | undefined
  let faults: string[] = []
  beforeAll(async () => {
    full = await createFullStore()
    const env = { MILLRACE_DEMO_DELAY_MS: '600000' }
    server = await serve({ dir: full.dir, data: full.data, env, port: 0, log: () => undefined })
    const found = await fetch(`${server.url}/api/runs?status=completed&agent=assistant&limit=20`)
    const { runs } = (await found.json()) as { runs: { id: string; title: string }[] }
    for (const { id, title } of runs) {
      const body = JSON.stringify({ run: id, name: `${id.slice(4, 7)} ${title}` })
      const headers = { 'content-type': 'application/json' }
      // What was stopped midway cannot be repeated.
      await fetch(`${server.url}/api/tests`, { method: 'POST', headers, body })
    }
  })
  afterAll(async () => {
    await tab?.context().close()
    await server.close()
    full.remove()
  })

  /** One tab goes from room to room: a new one would compile the page again. */
  async function goTo(path: string): Promise<Page> {
    if (tab === undefined || tab.isClosed()) {
      tab = await (await browser!.newContext({ locale: 'en-US' })).newPage()
      tab.on('crash', () => (tab = undefined))
      watchFaults(tab, server.url, (text) => faults.push(text))
    }
    await tab.setViewportSize({ width: 1440, height: 900 })
    faults = []
    await tab.goto(server.url + path)
    return tab
  }

  const look = (page: Page) => async (screen: { name: string; theme: string }) => {
    // What is where does not depend on the theme.
    if (screen.theme === 'light') {
      expect(await flaws(page), screen.name).toEqual([])
      expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth'), screen.name).toBe(true)
    }
    // At a desk and on a phone, which differ most: what axe finds does not depend on where a thing is.
    if (screen.name === '1440-light' || screen.name === '390-dark') await expectAccessible(page)
  }

  test.each(Object.entries(rooms))('%s', async (name, { path, ready, open, allows }) => {
    const page = await goTo(path(full))
    await page.locator(ready).first().waitFor()
    await open?.(page)
    // A turn that still runs is busy, too.
    await expect.poll(() => page.locator('main [aria-busy=true]:not(article *)').count()).toBe(0)
    await atEachScreen(page, name, look(page), shown)
    expect(faults.filter((text) => allows?.test(text) !== true)).toEqual([])
  })

  test('at a zoom of 200 % the steps of a waiting run and the text of an agent have room', async () => {
    const shared = { url: server.url, close: () => Promise.resolve() }
    const { page } = await openTabs(browser, shared, { path: `/runs/${full.runs.waiting}` })
    await page.setViewportSize({ width: 720, height: 450 })
    const tree = page.getByRole('treegrid', { name: 'Steps' })
    await tree.focus()
    await page.keyboard.press('ArrowDown')
    // Eight rows and the head, all of them on the screen.
    await expect.poll(async () => (await tree.boundingBox())!.height).toBeGreaterThan(9 * 24)
    await expect
      .poll(async () => {
        const { y, height } = (await tree.boundingBox())!
        return y >= 44 && y + height <= 450
      })
      .toBe(true)
    // Of every other list that no other test measures.
    const lists: readonly (readonly [path: string, row: string, open?: () => Promise<void>])[] = [
      [`/runs/${full.runs.team}`, step],
      [`/runs/${full.runs.long}`, '[data-testid=log-row]', () => page.getByRole('button', { name: 'Log' }).click()],
      [`/chat/assistant?thread=${full.thread}&panel=frames`, '[data-testid=frame]'],
      ['/tests', '[data-testid=test-row]'],
      ['/runs', '[role=option]', () => page.keyboard.press('Control+k')],
    ]
    for (const [path, row, open] of lists) {
      await page.goto(server.url + path)
      await page
        .getByRole('main')
        .locator(open === undefined ? row : '[data-testid]')
        .first()
        .waitFor()
      await open?.()
      await expect.poll(() => rowsSeen(page, row), { message: path }).toBeGreaterThanOrEqual(8)
    }
    await page.goto(`${server.url}/agents/research-team`)
    const text = page.locator('.cm-scroller')
    await expect.poll(async () => (await text.boundingBox())!.height).toBeGreaterThanOrEqual(12 * 20)
    await page.getByRole('heading', { name: 'Steps' }).scrollIntoViewIfNeeded()
    expect((await page.getByRole('heading', { name: 'Steps' }).boundingBox())!.y).toBeLessThan(450)
  })

  test('sign-in', async () => {
    const web = { web: openWebFiles(), apiKey: 'secret' }
    const own = await startServer({ agents: { assistant: agent() } }, web)
    const { page } = await openTabs(browser, own, { path: '/overview', allows: /401/u })
    await page.getByRole('dialog').getByLabel('Key').waitFor()
    await atEachScreen(page, 'sign-in', look(page), shown)
  })
})
