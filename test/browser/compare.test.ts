/** Two runs beside each other in a real browser: what differs, and every view by a link. */
import { describe, expect, test } from 'vitest'
import { createScriptedModel, finish, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import { agent, until } from '../support/engine.ts'
import { expectAccessibleAt } from './axe.ts'
import { launchBrowser } from './chromium.ts'
import { flaws } from './flaws.ts'
import { atEachScreen, type Screen } from './screens.ts'
import { openWeb } from './web.ts'

const { browser, fault } = await launchBrowser()

describe.skipIf(browser === undefined)(`compare${fault}`, () => {
  test('where two runs part, their steps, texts, tools and times; the view is in the link', async () => {
    const script = [
      [text('84.'), finish()],
      [...toolCall('c1', 'calc', { x: '12*7' }), finish('tool-calls')],
      [text('It is 84.'), finish('stop', { in: 40, out: 9 })],
      [text('84'), finish()],
    ]
    const { page, server, openTab } = await openWeb(browser, {
      engine: {
        agents: { assistant: agent('tools: [{ name: calc }]') },
        scripts: { m: createScriptedModel(script) },
        tools: { calc: { parameters: { type: 'object' }, execute: () => ({ value: 84 }) } },
      },
      path: '/compare',
      handler: { edit: true },
    })
    const start = async () => {
      const input = { messages: [{ role: 'user', content: 'What is 12*7?' }] }
      const { id } = await (await server.post('/api/runs', { agentId: 'assistant', input })).json()
      await until(server.store, id, ({ type }) => type === 'run-end')
      return id as string
    }
    const [a, b] = [await start(), await start()]
    await page.getByText('Choose two runs.').waitFor()
    await page.getByLabel('Run A').fill(a)
    await page.keyboard.press('Enter')
    await page.getByLabel('Run B').fill(b)
    await page.keyboard.press('Enter')
    await page.getByRole('region', { name: 'First difference' }).getByText('main/answer/1').waitFor()
    // Nobody gave the two anything else: what they did comes first.
    expect(await page.getByRole('tab', { selected: true }).innerText()).toBe('Steps')
    expect(new URL(page.url()).search).toBe(`?a=${a}&b=${b}`)

    const marks = await page.getByTestId('step-pair').evaluateAll((rows) => rows.map((row) => row.dataset['mark']))
    expect(marks.filter((mark) => mark === '+')).toHaveLength(2)
    expect(marks.filter((mark) => mark === '−')).toHaveLength(0)
    await page.getByTestId('step-pair').filter({ hasText: 'calc' }).waitFor()
    const look = async ({ name }: Screen) => {
      expect(await flaws(page), name).toEqual([])
      await expectAccessibleAt(page, { name })
    }
    await atEachScreen(page, 'compare', look)

    for (const [tab, by, sign] of [
      ['Text', 'text', 'It is'],
      ['Tools', 'tools', 'only in B'],
      ['Timing', 'timing', 'calc'],
    ] as const) {
      await page.getByRole('tab', { name: tab }).click()
      await page.getByRole('tabpanel').getByText(sign).first().waitFor()
      expect(new URL(page.url()).searchParams.get('by')).toBe(by)
      await atEachScreen(page, `compare-${by}`, look)
    }
    const other = await openTab(`/compare?a=${a}&b=${b}&by=text`)
    await other.locator('ins', { hasText: 'It is' }).waitFor()
    expect(await other.locator('del').count()).toBe(0)
    await other.getByRole('button', { name: 'Swap' }).click()
    await other.locator('del', { hasText: 'It is' }).waitFor()
    expect(new URL(other.url()).searchParams.get('a')).toBe(b)

    // A fork with another system prompt: what was changed is in front, word by word.
    const changed = agent('system: Be brief.\ntemperature: 0.2\ntools: [{ name: calc }]')
    const forked = await server.post(`/api/runs/${a}/fork`, { at: 1, pipeline: changed })
    const { id: fork } = await forked.json()
    await until(server.store, fork, ({ type }) => type === 'run-end')
    await page.goto(`${server.url}/compare?a=${a}&b=${fork}`)
    await page.getByRole('tab', { selected: true }).filter({ hasText: 'Prompt' }).waitFor()
    expect(await page.getByRole('region', { name: 'First difference' }).innerText()).toContain('system')
    const calls = page.getByTestId('prompt-pair')
    await calls.first().getByText('differs in settings, system').waitFor()
    await calls.first().locator('ins', { hasText: 'Be brief.' }).waitFor()
    await calls.first().getByText('temperature: 0.2').waitFor()
    await page.getByRole('button', { name: 'Show what is the same: model, 1 message, 1 tool' }).click()
    await page.getByLabel('user of A').getByText('What is 12*7?').waitFor()
    await atEachScreen(page, 'compare-prompt', look)
    await page.getByRole('tab', { name: 'Agent' }).click()
    await page.getByLabel('YAML of B').locator('ins', { hasText: 'system: Be brief.' }).waitFor()
    await atEachScreen(page, 'compare-agent', look)

    // A run and itself.
    await other.goto(`${server.url}/compare?a=${a}&b=${a}`)
    await other.getByText('They say the same.').waitFor()
  })
})
