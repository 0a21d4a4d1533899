/** The overview in a real browser: numbers that follow the runs, charts that are tables too, links to the runs. */
import { describe, expect, test } from 'vitest'
import { createScriptedModel, finish, latch, text, throws, toolCall } from '../../src/models/testing/scripted-model.ts'
import { memoryStore } from '../../src/store/memory-store.ts'
import { agent, until } from '../support/engine.ts'
import { expectAccessible, expectAccessibleAt } from './axe.ts'
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
    // Nothing is drawn without a run.
    await page.getByRole('heading', { name: 'No runs in this hour.' }).waitFor()
    expect(await page.getByRole('link', { name: 'Start one in Chat' }).getAttribute('href')).toBe('/chat')
    expect(await page.locator('figure').count()).toBe(0)
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
        await expectAccessibleAt(page, { name })
      })
    }
    await page.getByRole('button', { name: '24h' }).click()
    await expect.poll(() => new URL(page.url()).search).toBe('?window=24h')
    await page.reload()
    await expect.poll(() => page.getByRole('button', { name: '24h' }).getAttribute('aria-pressed')).toBe('true')
    gate.open()
    await expect.poll(() => value('Running').textContent()).toBe('0')
    // The names of models and the sums lead to their runs.
    const models = page.getByRole('region', { name: 'Most expensive models' })
    expect(await models.getByRole('link', { name: 'script:m' }).getAttribute('href')).toBe(
      '/runs?model=script%3Am&sort=cost&since=24h',
    )
    expect(await value('Cost').getByRole('link').getAttribute('href')).toBe('/runs?sort=cost&since=24h')
    await expect.poll(() => value('Took').textContent()).toMatch(/slowest 5 %: /u)

    // A time of one's own: typed, and chosen in a chart.
    await page.getByRole('button', { name: 'Custom time' }).click()
    const picker = page.getByRole('group', { name: 'Custom time' })
    await picker.getByLabel('From').fill('2020-01-31T10:00')
    await picker.getByLabel('To').fill('2020-01-31T09:00')
    await picker.getByText('The first time must be before the second.').waitFor()
    await picker.getByLabel('To').fill('2020-01-31T12:30')
    await expectAccessible(page)
    await picker.getByRole('button', { name: 'Show this time' }).click()
    await page.getByRole('heading', { name: 'No runs from 2020-01-31 10:00 to 12:30.' }).waitFor()
    expect(await page.getByRole('button', { name: '24h' }).getAttribute('aria-pressed')).toBe('false')
    await page.getByRole('button', { name: 'The last 7 days' }).click()
    await expect.poll(() => value('Runs').textContent()).toBe('3')
    const plot = (await page.locator('figure').first().locator('.u-over').boundingBox())!
    await page.mouse.move(plot.x + plot.width * 0.5, plot.y + 40)
    await page.mouse.down()
    await page.mouse.move(plot.x + plot.width - 1, plot.y + 40, { steps: 5 })
    await page.mouse.up()
    const inAddress = () => new URL(page.url()).searchParams
    await expect.poll(() => inAddress().has('window')).toBe(false)
    const length = Number(inAddress().get('until')) - Number(inAddress().get('since'))
    expect(length / 86_400_000).toBeCloseTo(3.5, 0)
    await expect.poll(() => value('Runs').textContent()).toBe('3')
    await page.goto(`${server.url}/overview?window=24h`)
    await value('Failed').getByRole('link').click()
    await page.getByTestId('run-row').waitFor()
    expect(new URL(page.url()).searchParams.get('since')).toBe('24h')
    expect(await page.getByTestId('run-row').textContent()).toContain('broken')
  })
})
