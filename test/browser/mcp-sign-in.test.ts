/** A run waits for a sign-in with an MCP server: the page shows the way, in a tab of its own, with the key of the page. */
import { describe, expect, onTestFinished, test } from 'vitest'
import { openAuthorizationServer } from '../../src/tools/mcp/auth/testing/authorization-server.ts'
import { openProtectedServer } from '../../src/tools/mcp/auth/testing/protected-server.ts'
import { createTestAccess, headersFor, tokenOf } from '../support/callers.ts'
import { until } from '../support/engine.ts'
import { expectAccessible } from './axe.ts'
import { launchBrowser } from './chromium.ts'
import { flaws } from './flaws.ts'
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
})
