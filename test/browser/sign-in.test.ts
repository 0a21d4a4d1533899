/** Who is signed in: each role with its key, what is hidden from it, whose runs it sees, and how a session begins and ends. */
import type { Page } from 'playwright-core'
import { describe, expect, onTestFinished, test } from 'vitest'
import { finish, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import type { Principal } from '../../src/part/principal.ts'
import type { Access } from '../../src/server/access/access.ts'
import { createAccess } from '../../src/server/access/create-access.ts'
import { memoryStore } from '../../src/store/memory-store.ts'
import { agent, until } from '../support/engine.ts'
import { callers, createTestAccess, headersFor, tokenOf, type TestAccess } from '../support/callers.ts'
import { createTold, resultsIn } from '../support/going-on.ts'
import { openProvider } from '../support/oidc-provider.ts'
import type { TestServer } from '../support/server.ts'
import { expectAccessible, expectAccessibleAt } from './axe.ts'
import { launchBrowser } from './chromium.ts'
import { flaws } from './flaws.ts'
import { enter } from './keys.ts'
import { atEachScreen, type Screen } from './screens.ts'
import { openWeb } from './web.ts'

const { browser, fault } = await launchBrowser()

type Person = keyof typeof callers

/** An assistant that answers, and a cashier whose payments an operator approves. */
function engine() {
  const m = createTold((prompt) => {
    const isPaid = resultsIn(prompt).size > 0
    const wantsToPay = !isPaid && JSON.stringify(prompt.at(-1)).includes('Pay')
    return wantsToPay
      ? [toolCall('call_1', 'pay', { sum: 5 }), finish('tool-calls')]
      : [text(isPaid ? 'Paid.' : 'Hello.'), finish()]
  })
  const pay = { parameters: { type: 'object' }, execute: () => 'receipt' }
  return {
    agents: {
      assistant: agent('messages: $input.messages\nsystem: "the secret prompt"'),
      cashier: agent('messages: $input.messages\ntools: [{ name: pay, approval: { roles: [operator] } }]'),
    },
    tools: { pay },
    scripts: { m },
  }
}

const open = (path: string, access: Access = createTestAccess(), context = {}) =>
  openWeb(browser, { engine: engine(), handler: { access, localOnly: false }, path, allows: /401/u, context })

async function start(server: TestServer, person: Person, words: string, more: object = {}) {
  const agentId = words.startsWith('Pay') ? 'cashier' : 'assistant'
  const body = { agentId, input: { messages: [{ role: 'user', content: words }] }, ...more }
  const response = await server.post('/api/runs', body, { headers: headersFor(person) })
  const { id, threadId } = (await response.json()) as { id: string; threadId: string }
  await until(server.store, id, ({ type }) => type === 'run-end' || type === 'suspend')
  return { id, threadId }
}

async function signIn(page: Page, person: Person): Promise<void> {
  await page.getByRole('dialog', { name: 'Sign in' }).getByLabel('Key').waitFor()
  await page.keyboard.type(tokenOf(person))
  await page.keyboard.press('Enter')
  await page.getByRole('dialog').waitFor({ state: 'hidden' })
}

const personIn = (page: Page) => page.getByRole('banner').getByRole('button', { name: /^Signed in/u })
const rowOf = (page: Page, words: string) => page.getByRole('row').filter({ hasText: words })
/** `over`: what may lie over something else. */
const look =
  (page: Page, over = /^$/u) =>
  async ({ name }: Screen) => {
    expect(
      (await flaws(page)).filter((each) => !over.test(each)),
      name,
    ).toEqual([])
    await expectAccessibleAt(page, { name })
  }

/** Sessions in a cookie, as those of an OpenID provider: whoever goes to `/auth/login` is alice. */
function createSessions(): TestAccess & { openSession: string | undefined } {
  const base = createTestAccess()
  const cookie = (value: string) => ({ 'set-cookie': `session=${value}; Path=/; HttpOnly; SameSite=Lax` })
  const sessions = {
    ...base,
    ways: { key: true, login: true, anonymous: false },
    readsCookies: true,
    openSession: undefined as string | undefined,
    identify(request: Parameters<Access['identify']>[0]): Principal | Promise<Principal> {
      const [, given] = /\bsession=(\w+)/u.exec(request.headers.get('cookie') ?? '') ?? []
      if (given !== undefined && given === sessions.openSession) return callers.alice
      return base.identify(request)
    },
    signIn(request: Request, path: string): Promise<Response> | undefined {
      if (path === '/auth/login' && request.method === 'GET') {
        sessions.openSession = crypto.randomUUID().replaceAll('-', '')
        const location = new URL(request.url).searchParams.get('return') ?? '/'
        return Promise.resolve(
          new Response(null, { status: 303, headers: { location, ...cookie(sessions.openSession) } }),
        )
      }
      if (path !== '/auth/logout' || request.method !== 'POST') return undefined
      sessions.openSession = undefined
      return Promise.resolve(new Response(null, { status: 204, headers: cookie('') }))
    },
    /** The session is over, and what it reads ends. */
    expire(caller: Person) {
      sessions.openSession = undefined
      base.expire(caller)
    },
  }
  return sessions
}

describe.skipIf(browser === undefined)(`who is signed in${fault}`, () => {
  test('a user sees its own runs only, without owners, prompts and files of agents; it signs out', async () => {
    const { page, server } = await open('/runs')
    const own = await start(server, 'alice', 'Good morning', { threadId: '1' })
    await start(server, 'bob', 'A secret of bob', { threadId: '1' })
    await signIn(page, 'alice')
    await rowOf(page, 'Good morning').waitFor()
    expect(await page.getByRole('main').innerText()).not.toContain('bob')
    expect(await page.getByRole('columnheader', { name: 'User' }).count()).toBe(0)
    expect(await page.getByLabel('User', { exact: true }).count()).toBe(0)
    expect(await personIn(page).textContent()).toBe('alice')

    await page.goto(`${server.url}/agents/assistant`)
    await rowOf(page, 'Good morning').or(page.getByText('Good morning')).first().waitFor()
    expect(await page.getByRole('navigation', { name: 'Of this agent' }).count()).toBe(0)
    expect(await page.getByRole('button', { name: 'Save', exact: true }).count()).toBe(0)

    await page.goto(`${server.url}/runs/${own.id}?sel=main/answer/1&tab=prompt`)
    await page.getByText('Your role may not read prompts.').waitFor()
    await page.goto(`${server.url}/runs/${own.id}?tab=args`)
    await page.getByText('Good morning').first().waitFor()
    expect(await page.getByRole('tabpanel').innerText()).not.toContain('pipeline')

    await page.goto(`${server.url}/threads/1`)
    await page.getByRole('main').getByText('Good morning').first().waitFor()
    await page.getByRole('button', { name: 'Delete' }).waitFor()

    await enter(page, personIn(page))
    const menu = page.getByRole('group', { name: 'Who is signed in' })
    await menu.getByText('Tenant acme').waitFor()
    await page.keyboard.press('Escape')
    await menu.waitFor({ state: 'hidden' })
    await page.keyboard.press('Enter')
    await menu.waitFor()
    await expect.poll(() => menu.getByRole('button').evaluate((each) => each === document.activeElement)).toBe(true)
    await page.keyboard.press('Enter')
    await page.getByRole('dialog', { name: 'Sign in' }).waitFor()
    expect(await page.getByText('Good morning').count()).toBe(0)
    expect(await page.evaluate('JSON.stringify({ ...sessionStorage })')).not.toContain('alice')
  })

  test('an operator sees the runs of its tenant with their owners, finds those of one, and deletes only its own', async () => {
    const { page, server } = await open('/runs')
    const { id } = await start(server, 'alice', 'Good morning', { threadId: 'order-1' })
    await start(server, 'bob', 'Good evening', { threadId: 'order-1' })
    await start(server, 'alice of beta', 'Far away')
    await start(server, 'operator', 'My own test', { threadId: 'test-1' })
    await signIn(page, 'operator')
    await rowOf(page, 'Good morning').waitFor()
    await expect.poll(() => rowOf(page, 'Good morning').getByRole('cell').nth(3).textContent()).toBe('alice')
    expect(await page.getByText('Far away').count()).toBe(0)
    await atEachScreen(page, 'sign-in-operator-runs', look(page, /by <a [^>]*data-status/u)) // Bars of runs of the same moment.
    await page.setViewportSize({ width: 1440, height: 900 })

    await page.getByLabel('User', { exact: true }).fill('bob')
    await page.keyboard.press('Enter')
    await rowOf(page, 'Good evening').waitFor()
    await rowOf(page, 'Good morning').waitFor({ state: 'hidden' })
    expect(new URL(page.url()).searchParams.get('user')).toBe('bob')
    // What begins meanwhile is filtered, too.
    await start(server, 'alice', 'Not of bob')
    await start(server, 'bob', 'Of bob')
    await rowOf(page, 'Of bob').waitFor()
    expect(await rowOf(page, 'Not of bob').count()).toBe(0)
    await page.getByLabel('User', { exact: true }).fill('')
    await rowOf(page, 'Not of bob').waitFor()

    await page.goto(`${server.url}/threads`)
    await rowOf(page, 'Good morning').waitFor()
    await atEachScreen(page, 'sign-in-operator-threads', look(page))
    await page.setViewportSize({ width: 1440, height: 900 })
    // The page has seen its new size.
    await expect.poll(() => page.getByRole('button', { name: 'Delete My own test' }).count()).toBe(1)
    expect(await page.getByRole('button', { name: 'Delete Good morning' }).count()).toBe(0)
    await rowOf(page, 'Good morning').getByRole('link').click()
    await page.getByRole('main').getByText('Hello.').first().waitFor()
    expect(new URL(page.url()).pathname).toBe(`/threads/${encodeURIComponent('order-1@@acme/alice')}`)
    expect(await page.getByRole('main').innerText()).toContain('alice')
    expect(await page.getByRole('main').innerText()).not.toContain('@@')
    expect(await page.getByRole('button', { name: 'Delete' }).count()).toBe(0)

    await page.goto(`${server.url}/runs/${id}?tab=args`)
    await page.getByRole('link', { name: 'alice' }).waitFor()
    await page.getByRole('tabpanel').getByText('"acme"').waitFor()
    await atEachScreen(page, 'sign-in-operator-run', look(page))
  })

  test('an admin of all tenants is told the tenant; the holder of the key of the server is named so', async () => {
    const { page, server } = await open('/runs')
    await start(server, 'alice', 'Good morning')
    await start(server, 'alice of beta', 'Far away')
    await signIn(page, 'admin')
    await expect.poll(() => rowOf(page, 'Far away').getByRole('cell').nth(3).textContent()).toBe('alice beta')
    expect(await personIn(page).textContent()).toBe('Admin key')
    await page.goto(`${server.url}/threads`)
    await rowOf(page, 'Far away').waitFor()
    await expect.poll(() => page.getByRole('button', { name: /^Delete/u }).count()).toBe(2)
  })

  test('an approval of operators: the user is told that it waits, the operator answers, and all see who did', async () => {
    const { page, server } = await open('/chat/cashier')
    await signIn(page, 'alice')
    await page
      .getByRole('textbox', { name: /message/iu })
      .or(page.getByPlaceholder(/Ask/u))
      .first()
      .fill('Pay 5')
    await page.keyboard.press('Enter')
    const card = page.getByTestId('open-request')
    await card.getByText('Waits for an operator.').waitFor()
    expect(await card.getByRole('button', { name: /Allow|Deny|Edit the/u }).count()).toBe(0)
    await atEachScreen(page, 'sign-in-waits', look(page))
    const [run] = await server.store.runs.list({ limit: 1 })
    // The list says the same, without "for you".
    const back = page.url()
    await page.goto(`${server.url}/runs?waits=few`)
    const waiting = page.getByRole('region', { name: 'Runs that wait' })
    await waiting.getByRole('button', { name: '1 run waits' }).waitFor()
    await waiting.getByText('Waits for an operator.').waitFor()
    await atEachScreen(page, 'sign-in-waits-list', look(page))
    await page.goto(back)

    const operator = await browser!.newContext({ locale: 'en-US', viewport: { width: 1440, height: 900 } })
    const tab = await operator.newPage()
    await tab.goto(`${server.url}/runs/${run!.id}`)
    await signIn(tab, 'operator')
    await tab.getByRole('button', { name: 'Allow pay' }).click()
    await page.getByText('Paid.').waitFor()
    await page
      .getByRole('button', { name: /Tool pay|pay/u })
      .first()
      .waitFor()
    await page.getByText('Allowed by olga.').waitFor()
    const asked = (await server.store.runs.get(run!.id))!
    expect(asked.status).toBe('completed')
    await tab
      .getByRole('treeitem', { name: /pay/u })
      .or(tab.getByRole('row', { name: /pay/u }))
      .first()
      .click()
    await tab.getByText('Allowed by olga.').waitFor()
    await operator.close()
  })

  test('a session: the button leads away and back; when it has ended the page says so, and goes on with the next', async () => {
    const access = createSessions()
    const { page, server } = await open('/runs?status=completed', access)
    await start(server, 'alice', 'Good morning')
    const dialog = page.getByRole('dialog', { name: 'Sign in' })
    const button = dialog.getByRole('button', { name: 'Sign in' })
    await button.waitFor()
    await expect.poll(() => button.evaluate((each) => each === document.activeElement)).toBe(true)
    await atEachScreen(page, 'sign-in-login', look(page))
    await page.setViewportSize({ width: 1440, height: 900 })
    await dialog.getByRole('button', { name: 'Use a key' }).click()
    await expect.poll(() => dialog.getByLabel('Key').evaluate((each) => each === document.activeElement)).toBe(true)
    await atEachScreen(page, 'sign-in-login-key', look(page))
    await page.setViewportSize({ width: 1440, height: 900 })
    await button.click()
    await rowOf(page, 'Good morning').waitFor()
    expect(page.url()).toBe(`${server.url}/runs?status=completed`)
    expect(await personIn(page).textContent()).toBe('alice')

    access.expire('alice')
    await dialog.getByText('Your session has ended.').waitFor()
    await page.keyboard.press('Escape')
    await dialog.waitFor({ state: 'hidden' })
    // In another tab.
    const other = await page.context().newPage()
    await other.goto(`${server.url}/auth/login?return=/agents`)
    await personIn(other).waitFor()
    await personIn(page).waitFor()
    await page.getByRole('banner').getByText('live').waitFor()

    await personIn(page).click()
    await page.getByRole('button', { name: 'Sign out' }).click()
    await dialog.waitFor()
    expect(await dialog.getByText('has ended').count()).toBe(0)
    expect(access.openSession).toBeUndefined()
    // It was the session of the whole browser.
    await other.getByRole('dialog', { name: 'Sign in' }).getByText('Your session has ended.').waitFor()
  })

  test('with a real OpenID provider: there, back to the same place, and out', async () => {
    const redirectUris = ['http://127.0.0.1/auth/callback']
    const provider = await openProvider(() => redirectUris)
    onTestFinished(() => provider.stop())
    const login = { issuer: provider.url, clientId: 'page', tenant: 'org', roles: 'roles' }
    const reports: unknown[] = []
    const report = (error: unknown) => void reports.push(error)
    const { log } = memoryStore()
    const access = await createAccess({ config: { login }, environment: {}, log, now: Date.now, report })
    onTestFinished(() => access.close())
    // The provider's pages are on its own origin, and look for a font elsewhere.
    const allows = /401|asks |Failed to load|violates/u
    const handler = { access, localOnly: false }
    const { page, server } = await openWeb(browser, { engine: engine(), handler, path: '/threads?q=morning', allows })
    await provider.stop()
    redirectUris[0] = `${server.url}/auth/callback`
    await provider.start()
    const dialog = page.getByRole('dialog', { name: 'Sign in' })
    await dialog.getByRole('button', { name: 'Sign in' }).click()
    await page.locator('[name=login]').fill('ann')
    await page.locator('[name=password]').fill('any')
    await page.locator('[type=submit]').click()
    await page.getByText('Continue').click()
    await page.getByText('No thread fits this filter.').waitFor()
    expect(page.url()).toBe(`${server.url}/threads?q=morning`)
    expect(await personIn(page).textContent()).toBe('Ann Other')
    await personIn(page).click()
    const menu = page.getByRole('group', { name: 'Who is signed in' })
    expect((await menu.innerText()).split(/\n+/u)).toEqual(['Ann Other', 'ann', 'Operator', 'Tenant acme', 'Sign out'])
    await menu.getByRole('button', { name: 'Sign out' }).click()
    await dialog.waitFor()
    expect(reports).toEqual([])
  })

  test('a guest has runs of its own, signs in with a key, and begins anew', async () => {
    const access = createTestAccess()
    const guest: Principal = { id: 'anonymous:1a2b', roles: ['user'] }
    const identify: Access['identify'] = (request) =>
      request.headers.has('authorization') ? access.identify(request) : guest
    const ways = { key: true, login: false, anonymous: true }
    const { page, server } = await open('/runs', { ...access, identify, ways })
    await page.getByText('Your runs appear here').waitFor()
    await start(server, 'alice', 'Good morning')
    const run = await server.runtime.start('assistant', { messages: [] }, { user: { id: guest.id } })
    await run.result
    await page.getByTestId('run-row').waitFor()
    await personIn(page).click()
    const menu = page.getByRole('group', { name: 'Who is signed in' })
    await menu.getByText('Guest').waitFor()
    expect(await menu.getByRole('button', { name: 'Sign out' }).count()).toBe(0)
    await menu.getByRole('button', { name: 'Sign in' }).click()
    await signIn(page, 'alice')
    await rowOf(page, 'Good morning').waitFor()
    await expect.poll(() => page.getByTestId('run-row').count()).toBe(1)
    expect(await personIn(page).textContent()).toBe('alice')
  })

  test('two tabs with the keys of two people: neither gets the rows of the other', async () => {
    const { page, server, openTab } = await open('/runs')
    await signIn(page, 'operator')
    await page.getByText('Nothing has run yet.').waitFor()
    const tab = await openTab('/runs')
    await signIn(tab, 'bob')
    await tab.getByText('Your runs appear here').waitFor()
    await start(server, 'alice', 'A secret of alice')
    await rowOf(page, 'A secret of alice').waitFor()
    await start(server, 'bob', 'Good evening')
    await rowOf(tab, 'Good evening').waitFor()
    expect(await tab.getByText('A secret of alice').count()).toBe(0)
    expect(await tab.getByRole('banner').innerText()).not.toContain('running')
  })

  test('a phone: who is signed in is a button of the header, and the menu fits', async () => {
    const { page } = await open('/', createTestAccess(), { viewport: { width: 360, height: 740 }, hasTouch: true })
    await signIn(page, 'admin of acme')
    await personIn(page).tap()
    const menu = page.getByRole('group', { name: 'Who is signed in' })
    await menu.getByText('Admin').waitFor()
    await atEachScreen(page, 'sign-in-menu', look(page, /is covered by/u))
    await menu.getByRole('button', { name: 'Sign out' }).tap()
    await page.getByRole('dialog', { name: 'Sign in' }).waitFor()
  })

  test('the overview has what users have used for an operator, and their own quotas for everybody', async () => {
    const quotas = {
      usesOf: () => Promise.resolve([{ which: 'perUser.tokensPerDay', limit: 1000, used: 1200, resetsAt: 0 }]),
    }
    const opened = await openWeb(browser, {
      engine: engine(),
      handler: { access: createTestAccess(), localOnly: false, quotas },
      path: '/overview',
      allows: /401/u,
    })
    const { page, server } = opened
    await start(server, 'alice', 'Hello')
    await server.store.records?.settle()
    await signIn(page, 'operator')
    const users = page.getByRole('region', { name: 'Users with the most tokens' })
    await users.getByRole('row', { name: /alice of acme 1 15/u }).waitFor()
    await page.getByRole('region', { name: 'Your quotas' }).getByText('Your tokens a day').waitFor()
    await expectAccessible(page)
    await users.getByRole('link', { name: 'alice' }).click()
    expect(new URL(page.url()).searchParams.get('user')).toBe('alice')
    await page.goto(`${server.url}/overview`)
    await personIn(page).click()
    await page.getByRole('button', { name: 'Sign out' }).click()
    await signIn(page, 'alice')
    await page.getByRole('region', { name: 'Your quotas' }).waitFor()
    expect(await users.count()).toBe(0)
  })
})
