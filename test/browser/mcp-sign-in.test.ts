/** What an MCP server asks a person to open: a sign-in, with the key of the page, or a link. Each opens in a tab of its own. */
import { describe, expect, onTestFinished, test } from 'vitest'
import { openAuthorizationServer } from '../../src/tools/mcp/auth/testing/authorization-server.ts'
import { openProtectedServer } from '../../src/tools/mcp/auth/testing/protected-server.ts'
import { createJournal } from '../../src/tools/mcp/testing/everything.ts'
import { startSdk } from '../../src/tools/mcp/testing/sdk.ts'
import { finish, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import { createTestAccess, headersFor, tokenOf } from '../support/callers.ts'
import { agent, until } from '../support/engine.ts'
import { createTold, resultsIn } from '../support/going-on.ts'
import { expectAccessible } from './axe.ts'
import { answers, ask } from './chat-page.ts'
import { launchBrowser } from './chromium.ts'
import { flaws } from './flaws.ts'
import { enter } from './keys.ts'
import { atEachScreen } from './screens.ts'
import { openWeb } from './web.ts'

const { browser, fault } = await launchBrowser()

describe.skipIf(browser === undefined)(`a sign-in with an MCP server${fault}`, () => {
  test('begins with a button and ends with the run', async () => {
    const issuer = await openAuthorizationServer()
    onTestFinished(() => issuer.close())
    const drive = await openProtectedServer(issuer.url)
    onTestFinished(() => drive.close())
    const { page, server } = await openWeb(browser, {
      engine: {
        agents: { a: 'workflow: [{ id: who, type: mcp-tool, config: { server: drive, tool: whoami }, result: who }]' },
        mcpServers: { drive: { url: drive.url, auth: { person: true, scope: 'files' } } },
      },
      handler: { access: createTestAccess(), localOnly: false },
      path: '/runs',
      allows: /401/u,
    })
    await page.getByRole('dialog', { name: 'Sign in' }).getByLabel('Key').waitFor()
    await page.keyboard.type(tokenOf('alice'))
    await page.keyboard.press('Enter')
    await page.getByRole('dialog').waitFor({ state: 'hidden' })
    const body = { agentId: 'a', input: { messages: [{ role: 'user', content: 'Hi' }] } }
    const started = await server.post('/api/runs', body, { headers: headersFor('alice') })
    const { id } = (await started.json()) as { id: string }
    await until(server.store, id, ({ type }) => type === 'suspend')
    await page.goto(`${server.url}/runs/${id}`)
    const request = page.getByTestId('open-request')
    await request.getByText('The MCP server "drive" asks you to sign in.').waitFor()
    expect(await flaws(page)).toEqual([])
    await expectAccessible(page)
    const opened = page.waitForEvent('popup')
    await request.getByRole('button', { name: 'Sign in' }).click()
    const tab = await opened
    await tab.locator('input[name=login]').fill('ann')
    await tab.locator('input[name=password]').fill('any')
    await tab.locator('button[type=submit]').click()
    await tab.locator('button[type=submit]').click()
    await tab.getByText('You are signed in').waitFor()
    expect(await tab.evaluate(() => window.opener === null)).toBe(true)
    await until(server.store, id, ({ type }) => type === 'run-end')
    await request.waitFor({ state: 'detached' })
  })

  test('a link that a server asks to open is shown whole, opens in a tab of its own, and is gone on from or declined', async () => {
    const journal = createJournal()
    onTestFinished(() => journal.remove())
    const child = await startSdk(journal, 'modern')
    onTestFinished(child.kill)
    const m = createTold((prompt) =>
      resultsIn(prompt).size === 0
        ? [toolCall('c1', 's_open', {}), finish('tool-calls')]
        : [text(JSON.stringify([...resultsIn(prompt).values()])), finish()],
    )
    const { page, server } = await openWeb(browser, {
      engine: {
        agents: {
          a: agent('tools: [s_open]'),
          step: 'workflow: [{ id: go, type: mcp-tool, config: { server: s, tool: open }, result: go }]\nreturn: $go\n',
        },
        scripts: { m },
        mcpServers: { s: { url: child.url, elicitation: true } },
      },
      path: '/runs?waits=all',
    })
    const url = 'https://login.example/start?of=the%20person'
    await page.context().route('https://login.example/**', (route) => route.fulfill({ body: 'Welcome' }))
    const { id } = (await (await server.post('/api/runs', { agentId: 'step', input: {} })).json()) as { id: string }
    const request = page.getByTestId('open-request')
    await request.getByText(`The MCP server "s" asks: Sign in, please. ${url}`).waitFor()
    // By keys alone: the answer opens with the focus on the link.
    await enter(page, request.getByRole('button', { name: /^Answer/u }))
    const link = request.getByRole('link', { name: 'Open login.example' })
    await expect.poll(() => link.evaluate((element) => element === document.activeElement)).toBe(true)
    await atEachScreen(page, 'mcp-link', async ({ name }) => {
      expect(await flaws(page), name).toEqual([])
    })
    await expectAccessible(page)
    const opened = page.waitForEvent('popup')
    await page.keyboard.press('Enter')
    const tab = await opened
    await tab.getByText('Welcome').waitFor()
    expect([tab.url(), await tab.evaluate(() => [window.opener, document.referrer])]).toEqual([url, [null, '']])
    await tab.close()
    await request.getByRole('button', { name: 'Continue' }).click()
    const end = await until(server.store, id, ({ type }) => type === 'run-end')
    expect(end).toMatchObject({ output: 'page: {"action":"accept"}' })

    await page.goto(`${server.url}/chat/a`)
    await ask(page, 'Hi')
    await request.getByText(url).waitFor()
    expect(await request.getByRole('link').getAttribute('href')).toBe(url)
    await request.getByRole('button', { name: 'Decline' }).click()
    await expect.poll(() => answers(page).innerText()).toContain('decline')
  })
})
