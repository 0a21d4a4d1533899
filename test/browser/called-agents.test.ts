/** Agents that a model calls, in a real browser: nested tracks in the room of the run and in the chat, and the chain at approvals. */
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { finish, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import type { Entry } from '../../src/part/entry.ts'
import type { Store } from '../../src/part/log.ts'
import { createTold, resultsIn } from '../support/going-on.ts'
import { expectAccessible } from './axe.ts'
import { launchBrowser } from './chromium.ts'
import { flaws } from './flaws.ts'
import { enter } from './keys.ts'
import { atEachScreen } from './screens.ts'
import { openWeb } from './web.ts'

const { browser, fault } = await launchBrowser()

/** A recorded run with an id of its own. */
async function record(store: Store, name: string): Promise<string> {
  const entries = readFileSync(new URL(`../../src/wire/golden/${name}.ndjson`, import.meta.url), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Entry)
  const id = `run_${name}`
  entries[0] = { ...entries[0], runId: id } as Entry
  await store.log.append(id, 1, entries)
  return id
}

const desk = `
workflow:
  - { id: desk, type: llm, config: { model: "script:desk", stream: true, messages: "$input.messages", tools: [{ agent: helper }] } }`
const helper = `
metadata: { description: Helps. }
workflow:
  - { id: help, type: llm, config: { model: "script:helper", messages: "$input.messages", tools: [look] } }`

const engine = () => ({
  agents: { desk, helper },
  tools: { look: { parameters: z.looseObject({}), approval: true, execute: () => 'a mill' } },
  scripts: {
    desk: createTold((prompt) =>
      prompt.at(-1)!.role === 'tool'
        ? [text('All done.'), finish()]
        : [toolCall('c1', 'helper', { message: 'look around' }), finish('tool-calls')],
    ),
    helper: createTold((prompt) =>
      resultsIn(prompt).size > 0
        ? [text('I saw a mill.'), finish()]
        : [text('I look. '), toolCall('c1', 'look', { where: 'there' }), finish('tool-calls')],
    ),
  },
})

describe.skipIf(browser === undefined)(`called agents on the page${fault}`, () => {
  test('the room of a run has a nested track for each, folded with the keyboard, and what they said apart', async () => {
    const { page, server } = await openWeb(browser, { engine: engine() })
    const id = await record(server.store, 'agent-tools')
    await page.goto(`${server.url}/runs/${id}`)
    const row = (path: string) => page.locator(`[data-testid=step-row][data-path="${path}"]`)
    await row('main/desk/3/write/2/pub').waitFor()
    expect(await row('main/desk/3').innerText()).toMatch(/write_article[^]*agent writer/u)
    await row('main/desk/3').click()
    await page.getByRole('treegrid').press('ArrowLeft')
    await expect.poll(() => row('main/desk/3/write/2/pub').count()).toBe(0)
    expect(await row('main/desk/3').getAttribute('aria-expanded')).toBe('false')
    await page.getByRole('treegrid').press('ArrowRight')
    await row('main/desk/3/write/2/pub').waitFor()

    await page.goto(`${server.url}/runs/${id}?sel=run`)
    const answer = page.getByTestId('run-text')
    await expect.poll(() => answer.innerText()).toContain('Done.')
    expect(await answer.innerText()).not.toMatch(/Published|is old/u)
    const tracks = answer.getByTestId('agent-track')
    expect(await tracks.locator('summary').allInnerTexts()).toEqual([
      expect.stringMatching(/researcher/u),
      expect.stringMatching(/writer/u),
      expect.stringMatching(/checker failed/u),
    ])
    await enter(page, tracks.nth(1).locator('summary'))
    await enter(page, tracks.nth(1).getByTestId('agent-track').locator('summary'))
    await expect.poll(() => answer.innerText()).toContain('Published.')
    await atEachScreen(page, 'called-agents', async ({ name }) => {
      expect(await flaws(page)).toEqual([])
      if (name === '360-dark') await expectAccessible(page)
    })
  })

  test('an approval inside names the inner tool and the chain, in the run, in the list and in the chat', async () => {
    const { page, server, openTab } = await openWeb(browser, { engine: engine() })
    const started = await server.post('/api/runs', {
      agentId: 'desk',
      input: { messages: [{ role: 'user', content: 'Hi' }] },
    })
    const { id } = (await started.json()) as { id: string }
    await page.goto(`${server.url}/runs/${id}`)
    const request = page.getByTestId('open-request')
    await expect.poll(() => request.innerText()).toMatch(/Allow look\?[^]*desk > helper/u)
    await page.setViewportSize({ width: 360, height: 740 })
    // The marks of the time line move when the page has seen its new size.
    await expect.poll(() => flaws(page)).toEqual([])
    await page.setViewportSize({ width: 1440, height: 900 })
    const list = await openTab('/runs')
    await enter(list, list.getByRole('button', { name: /wait/iu }).first())
    await expect.poll(() => list.getByTestId('asking-agents').first().innerText()).toBe('desk > helper')
    await request.getByRole('button', { name: 'Allow' }).click()
    await expect.poll(() => page.getByTestId('run-text').innerText()).toContain('All done.')
  })

  test('the chat has the work of an agent in the card of its call', async () => {
    const { page } = await openWeb(browser, { engine: engine(), path: '/chat/desk' })
    await page.getByTestId('chat-input').fill('Hi')
    await page.getByTestId('send-button').click()
    const request = page.getByTestId('open-request')
    await expect.poll(() => request.innerText()).toMatch(/Allow look\?[^]*desk > helper/u)
    await request.getByRole('button', { name: 'Allow' }).click()
    await expect.poll(() => page.getByTestId('assistant-message').innerText()).toContain('All done.')
    const card = page.getByTestId('tool-card').first()
    await enter(page, card.getByRole('button').first())
    await expect
      .poll(() => card.getByTestId('agent-track').first().innerText())
      .toMatch(/I look\.[^]*look[^]*I saw a mill\./u)
    await page.setViewportSize({ width: 360, height: 740 })
    // The marks of the time line move when the page has seen its new size.
    await expect.poll(() => flaws(page)).toEqual([])
    await expectAccessible(page)
  })
})
