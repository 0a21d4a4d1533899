/** The overview in a real browser: numbers that follow the runs, charts that are tables too, links to the runs. */
import { describe, expect, test } from 'vitest'
import { createScriptedModel, finish, latch, text, throws, toolCall } from '../../src/models/testing/scripted-model.ts'
import { memoryStore } from '../../src/store/memory-store.ts'
import { agent, until } from '../support/engine.ts'
import { expectAccessible } from './axe.ts'
import { launchBrowser } from './chromium.ts'
import { flaws } from './flaws.ts'
import { atEachScreen } from './screens.ts'
import { openWeb } from './web.ts'

const { browser, fault } = await launchBrowser()

describe.skipIf(browser === undefined)(`the overview${fault}`, () => {
  test.each(['tables', 'memory'])('follows the runs, and leads to them: %s', async (kind) => {
    const gate = latch()
    const script = [
      [...toolCall('c1', 'calc', { x: 1 }), finish('tool-calls')],
      [text('84.'), finish('stop', { in: 40, out: 9 })],
      [text('Hel', 'lo'), gate, finish()],
    ]
    const { page, server } = await openWeb(browser, {
      engine: {
        agents: { assistant: agent('tools: [{ name: calc }]'), broken: agent().replace('script:m', 'script:broken') },
        scripts: {
          m: createScriptedModel(script),
          broken: createScriptedModel([[throws(new Error('no'))]]),
        },
        tools: { calc: { parameters: { type: 'object' }, execute: () => 84 } },
        pricing: { 'script:m': { input: 1e5, output: 1e5 } },
        wrapStore: (store) => {
          if (kind === 'tables') return store
          void store.close()
          return memoryStore()
        },
      },
      path: '/overview',
    })
    const start = async (agentId: string) => {
      const input = { messages: [{ role: 'user', content: 'Hi' }] }
      return (await (await server.post('/api/runs', { agentId, input })).json()).id as string
    }
    const value = (name: string) => page.locator('dl > div').filter({ hasText: name }).locator('dd')
    await page.getByText('No tool was called in this time.').waitFor()
    for (const name of ['assistant', 'broken']) {
      await until(server.store, await start(name), ({ type }) => type === 'run-end')
    }
    await start('assistant')
    await gate.reached
    await expect.poll(() => value('Running').textContent()).toBe('1')
    await expect.poll(() => value('Runs').textContent()).toBe('3')
    expect(await value('Failed').textContent()).toBe('1')
    await expect.poll(() => value('Success').textContent()).toBe('50 %')
    const tools = page.getByRole('region', { name: 'Slowest tools' })
    await tools.getByRole('row').filter({ hasText: 'calc' }).waitFor()
    await page.getByRole('region', { name: 'Most expensive agents' }).getByText('$').first().waitFor()
    await page
      .getByRole('region', { name: 'Most expensive models' })
      .getByRole('row', { name: /script:m.*\$/u })
      .waitFor()
    await page.getByRole('region', { name: 'Errors by kind' }).getByRole('row', { name: 'model-failed 1' }).waitFor()

    await page.getByRole('button', { name: 'Runs as a table' }).click()
    const table = page.getByRole('region', { name: 'Runs: table' })
    await table.getByRole('row').nth(1).waitFor()
    if (kind === 'tables') {
      await atEachScreen(page, 'overview', async ({ name }) => {
        expect(await flaws(page), name).toEqual([])
        await expectAccessible(page)
      })
    }
    await page.getByRole('button', { name: '24h' }).click()
    await expect.poll(() => new URL(page.url()).search).toBe('?window=24h')
    await page.reload()
    await expect.poll(() => page.getByRole('button', { name: '24h' }).getAttribute('aria-pressed')).toBe('true')
    gate.open()
    await expect.poll(() => value('Running').textContent()).toBe('0')
    await value('Failed').getByRole('link').click()
    await page.getByTestId('run-row').waitFor()
    expect(new URL(page.url()).searchParams.get('since')).toBe('24h')
    expect(await page.getByTestId('run-row').textContent()).toContain('broken')
  })
})
