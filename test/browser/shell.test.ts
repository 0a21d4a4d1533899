/** What stands around every room of the page: rail, header, palette, keys, theme, focus. */
import { describe, expect, test } from 'vitest'
import { createScriptedModel, finish, latch, text } from '../../src/models/testing/scripted-model.ts'
import { agent } from '../support/engine.ts'
import { expectAccessible, expectAccessibleAt } from './axe.ts'
import { launchBrowser } from './chromium.ts'
import { flaws, shiftsOf, watchShifts } from './flaws.ts'
import { atEachScreen } from './screens.ts'
import { openWeb } from './web.ts'

const { browser, fault } = await launchBrowser()

const engine = () => ({
  agents: { assistant: agent('messages: $input.messages'), writer: agent('messages: $input.messages') },
  scripts: { m: createScriptedModel([[text('Hello'), finish()]]) },
})

describe.skipIf(browser === undefined)(`the page${fault}`, () => {
  test('the rail leads to every room, and a link opens it again', async () => {
    const { page, server } = await openWeb(browser, { engine: engine() })
    await (
      await server.runtime.start('writer', { messages: [{ role: 'user', content: 'Tell me of rivers' }] })
    ).result
    await watchShifts(page)
    for (const [name, path] of Object.entries({
      Runs: '/runs',
      Threads: '/threads',
      Agents: '/agents',
      Overview: '/overview',
    })) {
      const link = page.getByRole('navigation', { name: 'Rooms' }).getByRole('link', { name })
      await link.click()
      await expect.poll(() => new URL(page.url()).pathname).toBe(path)
      await expect.poll(() => page.title()).toBe(`${name} · Millrace`)
      // Who uses the keyboard goes on in the room.
      await expect.poll(() => page.evaluate('document.activeElement.id')).toBe('main')
      await page.reload()
      await expect.poll(() => link.getAttribute('aria-current')).toBe('page')
      // Nothing jumps while the room is loaded: neither when its content comes nor when the connection is there.
      await page.getByRole('main').getByText('writer').filter({ visible: true }).first().waitFor()
      await page.getByText('live', { exact: true }).waitFor()
      expect(await shiftsOf(page), name).toEqual([])
    }
  })

  test('who leaves the chat in the moment in which it is there is not called back', async () => {
    const { page } = await openWeb(browser, { engine: engine(), path: '/overview' })
    await page.addInitScript(() => {
      new MutationObserver((_, observer) => {
        if (document.querySelector('[data-testid=chat-input]') === null) return
        observer.disconnect()
        // Before the chat has said in the address which agent it has chosen.
        document.querySelector<HTMLElement>('nav a[href="/runs"]')!.click()
      }).observe(document, { childList: true, subtree: true })
    })
    await page.goto(new URL('/', page.url()).href)
    await page.getByRole('heading', { name: 'Runs', exact: true }).waitFor({ state: 'attached' })
    expect(new URL(page.url()).pathname).toBe('/runs')
  })

  test('an unknown address, agent, run or thread says so, and leads on', async () => {
    const { page, server } = await openWeb(browser, { engine: engine(), path: '/overview', allows: /404/u })
    for (const [path, words, link, to] of [
      ['/nonsense', 'There is no page here.', 'Runs', '/runs'],
      ['/runs/a/b', 'There is no page here.', 'Chat', '/chat/assistant'],
      ['/chat/nobody', 'There is no agent nobody.', 'writer', '/chat/writer'],
      ['/agents/nobody', 'There is no such agent', 'All agents', '/agents'],
      ['/runs/run_00000000', 'There is no run run_00000000.', 'All runs', '/runs'],
      ['/threads/nothing', 'There is no thread nothing.', 'All threads', '/threads'],
    ] as const) {
      const response = await page.goto(server.url + path)
      expect(response!.status(), path).toBe(words.startsWith('There is no page') ? 404 : 200)
      const main = page.getByRole('main')
      await main.getByText(words).waitFor()
      expect(await main.getByRole('button', { name: /again/iu }).count(), path).toBe(0)
      expect(await flaws(page), path).toEqual([])
      await expectAccessible(page)
      await main.getByRole('link', { name: link, exact: true }).press('Enter')
      await expect.poll(() => new URL(page.url()).pathname).toBe(to)
    }
    const api = await fetch(`${server.url}/nonsense`, { headers: { accept: 'application/json' } })
    expect([api.status, ((await api.json()) as { error: { code: string } }).error.code]).toEqual([404, 'not-found'])
  })

  test('a room whose code does not come says so, and comes when the page is loaded anew', async () => {
    const allows = /ERR_FAILED|preload CSS|dynamically imported/u
    const { page } = await openWeb(browser, { engine: engine(), path: '/runs', allows })
    await page.getByText('live', { exact: true }).waitFor()
    await page.route('**/assets/**', (route) => route.abort())
    await page.getByRole('link', { name: 'Overview' }).click()
    await page.getByText('This part of the page could not be loaded.').waitFor()
    expect(await flaws(page)).toEqual([])
    await expectAccessible(page)
    await page.unroute('**/assets/**')
    await page.getByRole('button', { name: 'Reload the page' }).click()
    await page.getByRole('button', { name: '24h' }).waitFor()
    expect(new URL(page.url()).pathname).toBe('/overview')
  })

  test('what the eye would find wrong is found: out of the window, cut, covered', async () => {
    const { page } = await openWeb(browser, { engine: engine(), path: '/overview' })
    await page.getByText('live', { exact: true }).waitFor()
    expect(await flaws(page)).toEqual([])
    const wrong = await page.evaluate(() => {
      const add = (text: string, style: Partial<CSSStyleDeclaration>, name = 'div', to: Element = document.body) => {
        const element = to.appendChild(document.createElement(name))
        element.textContent = text
        Object.assign(element.style, { position: 'absolute', whiteSpace: 'nowrap', top: '300px', left: '300px' }, style)
        return element
      }
      add('too far right', { left: '1430px' })
      add('too far left', { left: '-20px' })
      add('cut, and nothing says so', { width: '40px', overflow: 'hidden', top: '400px' })
      add('cut, and it says so', { width: '40px', overflow: 'hidden', textOverflow: 'ellipsis', top: '430px' })
      add('more than its pane shows', { width: '40px', overflow: 'auto', scrollbarWidth: 'none', top: '460px' })
      add('', { top: '480px', width: '20px', height: '20px' }, 'button').title = 'an empty button'
      add('a covered button', { top: '500px' }, 'button')
      add('what covers it', { top: '500px' })
      return true
    })
    expect(wrong).toBe(true)
    const texts = (await flaws(page)).map((each) => /^(.*?):.*>(.*)</u.exec(each)!.slice(1).join(': '))
    expect(texts.map((each) => each.replace(/ by .*?(?=: )/u, ''))).toEqual([
      'sticks out: too far right',
      'sticks out: too far left',
      'is cut: cut, and nothing says so',
      'is cut: more than its pane shows',
      'is empty: ',
      'is covered: a covered button',
    ])
  })

  test('nothing sticks out, and nothing is hard to use, at any size and in either theme', async () => {
    const { page } = await openWeb(browser, { engine: engine(), path: '/overview' })
    await page.getByRole('navigation', { name: 'Rooms' }).waitFor()
    await atEachScreen(page, 'shell', async ({ name }) => {
      expect(await flaws(page), name).toEqual([])
      await expectAccessibleAt(page, { name })
    })
    for (const [keys, title] of [
      ['Control+k', 'Find'],
      ['?', 'Keys'],
    ] as const) {
      await page.keyboard.press(keys)
      await page.getByRole('dialog', { name: title }).waitFor()
      await atEachScreen(page, title, async ({ name }) => {
        expect(await flaws(page), name).toEqual([])
        await expectAccessibleAt(page, { name })
      })
      await page.keyboard.press('Escape')
      await page.getByRole('dialog').waitFor({ state: 'hidden' })
    }
  })

  test('a key pressed in the frame in which a dialog closes is not lost', async () => {
    const { page } = await openWeb(browser, { engine: engine(), path: '/overview' })
    await page.getByRole('navigation', { name: 'Rooms' }).waitFor()
    await page.keyboard.press('Control+k')
    await page.getByRole('combobox', { name: 'Find' }).waitFor()
    await page.evaluate(() => {
      const field = document.activeElement!
      field.closest('dialog')!.close()
      field.dispatchEvent(new KeyboardEvent('keydown', { key: '?', code: 'Slash', shiftKey: true, bubbles: true }))
    })
    await page.getByRole('dialog', { name: 'Keys' }).waitFor()
  })

  test('keys lead to the rooms, except in fields and when they are turned off', async () => {
    const { page } = await openWeb(browser, { engine: engine(), path: '/overview' })
    const path = () => new URL(page.url()).pathname
    await page.getByRole('navigation', { name: 'Rooms' }).waitFor()
    await page.keyboard.type('gr')
    await expect.poll(path).toBe('/runs')
    await page.keyboard.press('Control+k')
    await page.getByRole('combobox', { name: 'Find' }).fill('go')
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'hidden' })
    expect(path()).toBe('/runs')
    await page.keyboard.press('?')
    await page.getByRole('dialog').getByText('Go to Agents').waitFor()
    await page.getByRole('dialog').getByRole('checkbox').click()
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'hidden' })
    await page.reload()
    await page.getByRole('navigation', { name: 'Rooms' }).waitFor()
    await page.keyboard.type('ga')
    // With a modifier they work on, and come later than those that did nothing.
    await page.keyboard.press('Control+k')
    await page.getByRole('dialog', { name: 'Find' }).waitFor()
    expect(path()).toBe('/runs')
  })

  test('the palette finds agents, runs and pasted ids, and gives the focus back', async () => {
    const { page, server } = await openWeb(browser, { engine: engine(), path: '/overview' })
    const run = await server.runtime.start('writer', { messages: [{ role: 'user', content: 'Tell me of rivers' }] })
    await run.result
    const find = page.getByRole('button', { name: /^Find/u })
    const field = page.getByRole('combobox', { name: 'Find' })
    await find.click()
    await field.fill('rivers')
    await page.getByRole('option', { name: 'Runs Tell me of rivers' }).waitFor()
    await page.keyboard.press('Escape')
    await expect.poll(() => find.evaluate((button) => button === document.activeElement)).toBe(true)
    await find.click()
    await field.fill('writer')
    await page.getByRole('option', { name: 'Search all runs for “writer”' }).waitFor()
    // One row for an agent: Enter chats with it, Shift+Enter opens its file.
    expect(await page.getByRole('option', { name: /^Agents/u }).count()).toBe(1)
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('ArrowUp')
    await page.keyboard.press('Shift+Enter')
    await expect.poll(() => new URL(page.url()).pathname).toBe('/agents/writer')
    // What no list has is searched for in all runs.
    await page.keyboard.press('Control+k')
    await field.fill('rivers nowhere else')
    await page.keyboard.press('Enter')
    await expect.poll(() => new URL(page.url()).searchParams.get('q')).toBe('rivers nowhere else')
    await page.keyboard.press('Control+k')
    await field.fill(`${server.url}/runs/${run.id}?at=2`)
    await page.getByRole('option', { name: `Open ${run.id}` }).click()
    await expect.poll(() => page.url()).toBe(`${server.url}/runs/${run.id}`)
  })

  test('the first letters after Ctrl+K are the palette’s, however long its list takes to load', async () => {
    const { page } = await openWeb(browser, { engine: engine(), path: '/chat/assistant' })
    const held = latch()
    await page.route(/\/Palette\w*-/u, async (route) => {
      await held.opened
      await route.continue()
    })
    const message = page.getByTestId('chat-input')
    await expect.poll(() => message.evaluate((field) => field === document.activeElement)).toBe(true)
    await page.keyboard.press('Control+k')
    await page.keyboard.type('writer')
    const field = page.getByRole('combobox', { name: 'Find' })
    expect([await field.inputValue(), await message.inputValue()]).toEqual(['writer', ''])
    expect(await page.getByRole('dialog').getByRole('option').count()).toBe(0)
    await expectAccessible(page)
    held.open()
    await page.getByRole('option', { name: /^Agents writer/u }).waitFor()
    await page.keyboard.press('Enter')
    await expect.poll(() => new URL(page.url()).pathname).toBe('/chat/writer')

    // Enter may come before what it chooses.
    const agents = latch()
    await page.route('**/api/agents', async (route) => {
      await agents.opened
      await route.continue()
    })
    await page.keyboard.press('Control+k')
    await page.keyboard.type('assis')
    await page.keyboard.press('Enter')
    expect(new URL(page.url()).pathname).toBe('/chat/writer')
    agents.open()
    await expect.poll(() => new URL(page.url()).pathname).toBe('/chat/assistant')
    await page.getByRole('dialog').waitFor({ state: 'hidden' })
  })

  test('the theme that was chosen stays', async () => {
    const { page, openTab } = await openWeb(browser, { engine: engine(), context: { colorScheme: 'light' } })
    const ground = () => page.evaluate('getComputedStyle(document.body).backgroundColor')
    const theme = page.getByRole('button', { name: /^Theme/u })
    await expect.poll(ground).toBe('rgb(255, 255, 255)')
    await theme.click()
    await theme.click()
    await expect.poll(ground).toBe('rgb(15, 18, 22)')
    await page.reload()
    await expect.poll(ground).toBe('rgb(15, 18, 22)')
    const other = await openTab('/overview')
    await expect.poll(() => other.evaluate('document.documentElement.dataset.theme')).toBe('dark')
  })

  test('the header says how many runs go on, and leads to them', async () => {
    const held = latch()
    const { page, server } = await openWeb(browser, {
      engine: {
        agents: { assistant: agent() },
        scripts: { m: createScriptedModel([[text('early'), held, finish()]]) },
      },
      path: '/overview',
    })
    const run = await server.runtime.start('assistant', { messages: 'Hello!' })
    const link = page.getByRole('link', { name: '1 running' })
    await link.waitFor()
    expect(await link.getAttribute('href')).toBe('/runs?status=running')
    held.open()
    await run.result
    await link.waitFor({ state: 'detached' })
  })
})
