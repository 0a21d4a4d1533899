/** One word for each state of a run, in every room and in the address bar. */
import { describe, expect, test } from 'vitest'
import type { Outcome } from '../../src/part/part.ts'
import { createScriptedModel, finish, toolCall } from '../../src/models/testing/scripted-model.ts'
import { agent, until } from '../support/engine.ts'
import { launchBrowser } from './chromium.ts'
import { openWeb } from './web.ts'

const { browser, fault } = await launchBrowser()

/** Other words for the five states, of the API and of everyday English. */
const others = /\b(?:waits|wait for you|suspended|aborted|ended early|done|idle|active|timed-out)\b/iu

describe.skipIf(browser === undefined)(`states${fault}`, () => {
  test('running, waiting, completed, failed and stopped are the words of every room and of its address', async () => {
    const { page, server } = await openWeb(browser, {
      engine: {
        agents: { assistant: agent('tools: [{ name: pay, approval: true }]') },
        scripts: { m: createScriptedModel([[...toolCall('c1', 'pay'), finish('tool-calls')]]) },
        tools: { pay: { parameters: { type: 'object' }, execute: () => 'paid' } },
      },
      path: '/overview',
    })
    const input = (words: string) => ({ messages: [{ role: 'user' as const, content: words }] })
    const asked = { agentId: 'assistant', input: input('pay Ann'), threadId: 't-waiting' }
    const { id } = await (await server.post('/api/runs', asked)).json()
    await until(server.store, id, ({ type }) => type === 'suspend')
    const record = async (name: string, outcome: Outcome) => {
      const first = { agent: 'assistant', pipeline: '', threadId: `t-${name}`, protocol: 'api', input: input(name) }
      const [run, timestamp] = [`run_${name}`, Date.now()]
      const error = outcome === 'timed-out' ? { error: { code: outcome, message: 'It took too long.' } } : {}
      await server.store.log.append(run, 1, [
        { type: 'run-start', runId: run, ...first, seq: 1, step: '', timestamp },
        { type: 'run-end', outcome, usage: { source: 'reported' }, ...error, seq: 2, step: '', timestamp },
      ])
    }
    await record('whole', 'completed')
    await record('late', 'timed-out')
    await record('cut', 'aborted')
    const status = () => new URL(page.url()).searchParams.get('status')
    const rows = page.getByTestId('run-row')

    // From the overview by its numbers, which write the same words into the address.
    const tile = (name: string) => page.locator('dl > div').filter({ hasText: name }).getByRole('link')
    await expect.poll(() => tile('Waiting').innerText()).toBe('1')
    await tile('Waiting').click()
    await expect.poll(() => rows.allInnerTexts()).toEqual([expect.stringMatching(/waiting[^]*pay Ann/u)])
    expect(status()).toBe('waiting')
    const banner = page.getByRole('banner')
    await expect.poll(() => banner.innerText()).toMatch(/1\s+waiting/u)
    await page.goto(`${server.url}/runs?lanes=off`)
    await expect.poll(() => rows.count()).toBe(4)
    expect(await page.getByRole('group', { name: 'Status' }).getByRole('button').allInnerTexts()).toEqual([
      'Running',
      'Waiting',
      'Completed',
      'Failed',
      'Stopped',
    ])
    const cells = rows.locator('td:nth-child(2)')
    expect((await cells.allInnerTexts()).map((text) => text.replace(/^\P{L}+/u, '')).toSorted()).toEqual([
      'completed',
      'failed',
      'stopped',
      'waiting',
    ])
    await page.getByRole('button', { name: 'Stopped' }).click()
    await expect.poll(() => rows.allInnerTexts()).toEqual([expect.stringContaining('cut')])
    expect(status()).toBe('stopped')
    // An address from before, with a name of the API.
    await page.goto(`${server.url}/runs?status=timed-out,aborted`)
    await expect.poll(() => rows.count()).toBe(2)
    expect(await page.getByRole('button', { name: 'Stopped' }).getAttribute('aria-pressed')).toBe('true')

    for (const [path, expected] of [
      [`/runs/${id}`, /waiting/u],
      ['/runs/run_cut', /stopped/u],
      ['/runs/run_late', /failed/u],
      ['/compare?a=run_late&b=run_cut', /failed: timed out[^]*stopped/u],
      ['/threads', /waiting[^]*1/u],
      [`/chat/assistant?thread=t-waiting`, /waiting for you/u],
      [`/chat/assistant?thread=t-cut`, /stopped/iu],
    ] as const) {
      await page.goto(server.url + path)
      await expect.poll(() => page.getByRole('main').innerText(), { message: path }).toMatch(expected)
      // The raw log and the first difference of two runs show entries as they are stored.
      const place = path.startsWith('/runs/')
        ? page.getByTestId('run-room').locator('> header')
        : page.getByRole('main')
      const said = await place.innerText()
      if (!path.startsWith('/compare')) expect(said.match(others), path).toBeNull()
    }
    await page.goto(`${server.url}/threads`)
    await expect
      .poll(() => page.getByRole('combobox', { name: 'Status' }).locator('option').allInnerTexts())
      .toEqual(['Any status', 'running', 'waiting', 'closed'])
    await page.getByRole('combobox', { name: 'Status' }).selectOption('waiting')
    await expect.poll(() => page.locator('tr[data-id]').count()).toBe(1)
  })
})
