/**
 * `npm run screenshots`: pictures of the page's rooms for the documentation, in `docs/images`. A server of its own with the demo
 * agents of this repository, some runs that have ended, one that goes on and one that waits. With `MILLRACE_SCREENS=<folder>`, each
 * room at each size in each theme instead, into that folder: to look at.
 */
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative, resolve } from 'node:path'
import type { Page } from 'playwright-core'
import { serve } from '../src/server/serve.ts'
import { launchBrowser } from '../test/browser/chromium.ts'
import { shrinkPng } from './png.ts'

const root = resolve(import.meta.dirname, '..')
const images = process.env['MILLRACE_SCREENS'] ?? join(root, 'docs/images')
const folder = mkdtempSync(join(tmpdir(), 'millrace-screenshots-'))
process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
cpSync(join(root, 'agents'), join(folder, 'agents'), { recursive: true })
mkdirSync(images, { recursive: true })

const { browser, fault } = await launchBrowser()
if (browser === undefined) throw new Error(`No pictures${fault}`)
const server = await serve({
  dir: join(folder, 'agents'),
  data: join(folder, 'data'),
  env: { MILLRACE_DEMO_DELAY_MS: '12' },
  port: 0,
})

async function start(agentId: string, content: string, threadId?: string): Promise<string> {
  const body = JSON.stringify({ agentId, threadId, input: { messages: [{ role: 'user', content }] } })
  const response = await fetch(`${server.url}/api/runs`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body,
  })
  const { id } = (await response.json()) as { id?: string }
  if (id === undefined) throw new Error(`${agentId} did not start: ${response.status}`)
  return id
}

async function ended(id: string): Promise<string> {
  for (;;) {
    const { status } = (await (await fetch(`${server.url}/api/runs/${id}`)).json()) as { status: string }
    if (status !== 'running') return id
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

const thread = 'thread_cogwheels'
await ended(await start('assistant', 'What is 12*7?', thread))
await ended(
  await start(
    'assistant',
    'Think step by step: what is 84/3, and what time is it in Tokyo? Then write 60 words.',
    thread,
  ),
)
const question = 'What is 12*7, and why? Then write 60 words.'
await ended(await start('assistant', question, 'thread_left'))
await ended(await start('bernard', question, 'thread_right'))
await ended(await start('code-review', 'function add(a, b) { return a - b }'))
await ended(await start('refine', 'A slogan for a bakery'))
const first = await ended(await start('panel', 'Should we move to four days a week?'))
const second = await ended(await start('panel', 'Should we all work from home?'))
const team = await ended(await start('research-team', 'water mills'))
await ended(await start('approve-first', 'Use the tool calculator for 6*7'))
await start('assistant', 'count to 3000')

const isAll = process.env['MILLRACE_SCREENS'] !== undefined
const shots: { name: string; path: string; ready: string }[] = [
  { name: 'chat', path: `/chat/assistant?thread=${thread}`, ready: '[data-testid=assistant-message]' },
  {
    name: 'beside',
    path: '/beside?a=assistant&thread=thread_left&a=bernard&thread=thread_right',
    ready: '[data-testid=answer-line]',
  },
  { name: 'runs', path: '/runs?waits=few', ready: '[data-question]' },
  { name: 'run', path: `/runs/${team}`, ready: '[data-testid=step-row]' },
  { name: 'compare', path: `/compare?a=${first}&b=${second}`, ready: 'main' },
  { name: 'threads', path: `/threads/${thread}`, ready: 'main' },
  ...(isAll ? [{ name: 'list', path: '/threads', ready: '[role=row], tr' }] : []),
  { name: 'agent', path: '/agents/refine', ready: '.cm-line' },
  { name: 'overview', path: '/overview', ready: 'main' },
]

async function shoot(name: string, path: string, ready: string, width: number, theme: 'light' | 'dark'): Promise<void> {
  const context = await browser!.newContext({
    locale: 'en-US',
    colorScheme: theme,
    reducedMotion: 'reduce',
    viewport: { width, height: width === 360 ? 740 : width === 1024 ? 768 : 900 },
  })
  const page = await context.newPage()
  await page.goto(server.url + path)
  await page.locator(ready).first().waitFor()
  await still(page)
  const size = width === 1440 ? '' : width === 360 ? 'phone-' : `${width}-`
  const file = join(images, `${name}-${size}${theme}.png`)
  const png = shrinkPng(await page.screenshot())
  writeFileSync(file, png)
  console.log(`${relative(root, file)} ${Math.round(png.length / 1000)} KB`)
  await context.close()
}

/** Nothing is loading, and nothing has been for a while: the live run moves numbers, not places. */
async function still(page: Page): Promise<void> {
  const isBusy = `document.querySelector('main [aria-busy=true]') !== null`
  for (let calm = 0; calm < 6;) {
    calm = (await page.evaluate(isBusy)) === true ? 0 : calm + 1
    await page.waitForTimeout(100)
  }
}

for (const { name, path, ready } of shots) {
  for (const width of isAll ? [1440, 1024, 360] : name === 'chat' ? [1440, 360] : [1440]) {
    for (const theme of ['light', 'dark'] as const) await shoot(name, path, ready, width, theme)
  }
}
await browser.close()
await server.close()
process.exit(0)
