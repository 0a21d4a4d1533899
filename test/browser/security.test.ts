/** What others write does nothing on the page, and the key stays where it belongs. */
import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import {
  createScriptedModel,
  finish,
  reasoning,
  text,
  throws,
  toolCall,
} from '../../src/models/testing/scripted-model.ts'
import { agent } from '../support/engine.ts'
import { expectAccessibleAt } from './axe.ts'
import { launchBrowser } from './chromium.ts'
import { flaws } from './flaws.ts'
import { atEachScreen } from './screens.ts'
import { openWeb } from './web.ts'

const { browser, fault } = await launchBrowser()

/** Each would call `hit` or load `/hit…` if it were taken for markup, a link or a template. */
const attacks = [
  '<img src="/hit-img" onerror="hit()">',
  '<svg onload="hit()"><script>hit()</script></svg>',
  '<script>hit()</script><iframe src="javascript:parent.hit()"></iframe>',
  '"><style>@import "/hit-style";</style><a href="javascript:hit()" autofocus onfocus="hit()">x</a>',
  '[click](javascript:hit()) ![pixel](/hit-markdown) ![far](https://elsewhere.example/hit) <https://elsewhere.example/hit-auto>',
  '[data](data:text/html,<script>hit()</script>) [vb](vbscript:hit()) [ref]: javascript:hit()',
  '```html\n<img src=/hit-code onerror=hit()>\n```',
  '{{constructor.constructor("hit()")()}} ${hit()} %3Cimg src=x onerror=hit()%3E',
]
const all = attacks.join('\n\n')
const yaml = (id: string) =>
  agent(
    'messages: $input.messages\ntools: [calculator]',
    `metadata: { name: ${JSON.stringify(`${id} ${all}`)}, description: ${JSON.stringify(all)} }`,
  )

/** What the room has loaded is drawn. */
async function settled(page: Page): Promise<void> {
  const isDrawn = `document.querySelector('main')?.childElementCount > 0 && document.querySelector('main [aria-busy=true]') === null`
  await expect.poll(() => page.evaluate(isDrawn)).toBe(true)
  await page.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))')
}

describe.skipIf(browser === undefined)(`the page's security${fault}`, () => {
  test('markup in names, messages, answers, tools and errors is text in every room', async () => {
    const model = createScriptedModel([
      [
        reasoning(all),
        text(all),
        toolCall('call_1', 'calculator', { expr: all }),
        toolCall('call_2', attacks[0]!, { [attacks[1]!]: all }),
        finish('tool-calls'),
      ],
      [text(all), finish()],
      [throws(new Error(all))],
    ])
    const { page, server } = await openWeb(browser, {
      engine: { agents: { evil: yaml('one') }, scripts: { m: model } },
      handler: { agentErrors: () => [{ file: `${attacks[0]}.yaml`, message: all }] },
      path: '/overview',
      // Of what is not there.
      allows: /404/u,
    })
    const asked: string[] = []
    page.on('request', (request) => asked.push(new URL(request.url()).pathname))
    page.on('dialog', (dialog) => void dialog.dismiss())
    const ids: string[] = []
    for (const threadId of ['thread_one', 'thread_two']) {
      const run = await server.runtime.start('evil', { messages: [{ role: 'user', content: all }] }, { threadId })
      await run.result
      ids.push(run.id)
    }
    const rows = await server.store.runs.list({})
    expect(rows.map(({ status }) => status).toSorted()).toEqual(['completed', 'failed'])
    const odd = encodeURIComponent('<img src=x onerror=hit()>')
    const paths = [
      '/chat/evil?thread=thread_one',
      `/chat/evil?draft=${odd}&run=${ids[0]}&panel=frames`,
      `/chat/${odd}`,
      `/beside?a=evil&thread=thread_one&a=evil&model=${odd}&system=${odd}&with=${odd}&thread=thread_two&a=${odd}`,
      '/runs',
      `/runs?q=${odd}&agent=${odd}`,
      ...ids.map((id) => `/runs/${id}`),
      `/runs/${ids[0]}?tab=raw&sel=main/answer/2`,
      `/runs/${odd}`,
      `/compare?a=${ids[0]}&b=${ids[1]}`,
      '/agents',
      '/agents/evil',
      '/agents/evil?tab=runs',
      `/agents/${odd}`,
      '/threads',
      '/threads/thread_one',
      `/threads/${odd}`,
      '/overview?window=24h',
    ]
    for (const path of paths) {
      await page.goto(server.url + path)
      await page.evaluate('window.hit = () => { window.wasHit = true }')
      await page.locator('main').waitFor()
      await settled(page)
      expect(await page.evaluate('window.wasHit === true'), path).toBe(false)
      // What could act on its own, or when it is clicked, is not there as markup.
      const wrong = await page.evaluate(() =>
        [...document.querySelectorAll('main *')]
          .filter(
            (element) =>
              /^(script|iframe|object|embed|style|base|meta)$/u.test(element.localName) ||
              element.getAttributeNames().some((name) => name.startsWith('on') || name.endsWith('action')) ||
              /^\s*(javascript|data|vbscript):/iu.test(element.getAttribute('href') ?? '') ||
              (element.localName === 'img' && element.getAttribute('src')?.startsWith('blob:') !== true),
          )
          .map((element) => element.outerHTML.slice(0, 200)),
      )
      expect(wrong, path).toEqual([])
    }
    expect(asked.filter((path) => path.startsWith('/hit'))).toEqual([])
    await page.keyboard.press('Control+k')
    await page.getByRole('option', { name: 'img src' }).first().waitFor()
    expect(await page.evaluate('window.wasHit === true')).toBe(false)
  })

  test('the key: asked for once, wrong ones told, kept over a reload, in a header and nowhere else', async () => {
    const key = 'a-long-secret-key'
    const heard: string[] = []
    const { page, server, openTab } = await openWeb(browser, {
      engine: {
        agents: { assistant: agent('messages: $input.messages') },
        scripts: { m: createScriptedModel([[text('Hello'), finish()]]) },
      },
      handler: {
        apiKey: key,
        localOnly: false,
        // The requests of the shared worker, too, of which the page is told nothing.
        authorize: ({ url, headers }) => {
          heard.push(url, headers.get('referer') ?? '', headers.get('cookie') ?? '')
          return true
        },
      },
      path: '/agents',
      // The browser tells of each refused request.
      allows: /401/u,
    })
    const told: string[] = []
    page.on('request', (request) => {
      const { referer = '', cookie = '' } = request.headers()
      told.push(request.url(), referer, cookie, request.postData() ?? '')
    })
    const dialog = page.getByRole('dialog', { name: 'Sign in' })
    await dialog.waitFor()
    expect(await page.getByText('assistant').count()).toBe(0)
    await atEachScreen(page, 'key', async (screen) => {
      expect(await flaws(page)).toEqual([])
      await expectAccessibleAt(page, screen)
    })
    // Who is asked types and presses Enter: the field has the focus.
    await page.keyboard.type('not this one')
    await page.keyboard.press('Enter')
    await dialog.getByRole('alert').filter({ hasText: 'ASCII' }).waitFor()
    await dialog.getByLabel('Key').fill('not-this-one')
    await page.keyboard.press('Enter')
    await dialog.getByRole('alert').filter({ hasText: 'refuses this key' }).waitFor()
    await dialog.getByLabel('Key').fill(key)
    await page.keyboard.press('Enter')
    await page.getByRole('link', { name: 'assistant', exact: true }).waitFor()
    await dialog.waitFor({ state: 'hidden' })
    for (const path of ['/agents', '/runs', '/overview', '/chat/assistant']) {
      await page.goto(server.url + path)
      await settled(page)
      expect(await dialog.isVisible(), path).toBe(false)
    }
    const kept = (await page.evaluate(
      'JSON.stringify([{ ...sessionStorage }, { ...localStorage }, document.cookie])',
    )) as string
    const [session, local, cookie] = JSON.parse(kept) as [Record<string, string>, Record<string, string>, string]
    expect(session['millrace-key']).toBe(key)
    expect(JSON.stringify(local) + cookie).not.toContain(key)
    expect(told.join('\n')).not.toContain(key)
    await expect.poll(() => heard.some((url) => url.includes('/api/live'))).toBe(true)
    expect(heard.join('\n')).not.toContain(key)
    expect(page.url()).not.toContain(key)
    expect(await page.evaluate('document.documentElement.outerHTML')).not.toContain(key)
    // Another tab is asked again: the key is this tab's.
    const other = await openTab('/agents')
    await other.getByRole('dialog', { name: 'Sign in' }).waitFor()
  })

  test('who closes the question is told in every room what to do, by a button, and then goes on there', async () => {
    const key = 'a-long-secret-key'
    const { page, server, openTab } = await openWeb(browser, {
      engine: {
        agents: { assistant: agent('messages: $input.messages') },
        scripts: { m: createScriptedModel([[text('Hello'), finish()]]) },
      },
      handler: { apiKey: key, localOnly: false },
      allows: /401/u,
    })
    const run = await server.runtime.start('assistant', { messages: [{ role: 'user', content: 'Good morning' }] })
    await run.result
    await page.close()
    const shown = { '/': 'Ask assistant', '/runs': 'completed', '/threads': 'Good morning', '/agents': 'assistant' }
    for (const [path, words] of Object.entries({ ...shown, [`/runs/${run.id}`]: 'Hello', '/overview': 'Tokens' })) {
      const tab = await openTab(path)
      const dialog = tab.getByRole('dialog', { name: 'Sign in' })
      await dialog.waitFor()
      await tab.keyboard.press('Escape')
      await dialog.waitFor({ state: 'hidden' })
      const main = tab.getByRole('main')
      await main.getByText('This server is protected.').first().waitFor()
      expect(await main.innerText(), path).not.toMatch(/header|Bearer|unauthorized|no runs/iu)
      await main.getByRole('button', { name: 'Sign in' }).first().click()
      await tab.keyboard.type(key)
      await tab.keyboard.press('Enter')
      await main.getByText(words).or(main.getByPlaceholder(words)).first().waitFor()
      await expect.poll(() => main.getByText('This server is protected.').count(), { message: path }).toBe(0)
      await tab.close()
    }
  })

  test('who closes the question finds it in the header; a key that is refused later is asked for again', async () => {
    const { page } = await openWeb(browser, {
      engine: { agents: { assistant: agent() } },
      handler: { apiKey: 'a-long-secret-key', localOnly: false },
      path: '/agents',
      allows: /401/u,
    })
    const dialog = page.getByRole('dialog', { name: 'Sign in' })
    await dialog.waitFor()
    await page.keyboard.press('Escape')
    await dialog.waitFor({ state: 'hidden' })
    await page.getByRole('banner').getByRole('button', { name: 'Sign in' }).click()
    await dialog.waitFor()
    await page.evaluate(`sessionStorage.setItem('millrace-key', 'the-key-of-yesterday')`)
    await page.reload()
    await dialog.getByText('refuses the key that this tab has').waitFor()
  })
})
