/** What the page says about what calls took: the share of a cache, for a call, a run and a thread; the skills that were read. */
import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import type { Entry } from '../../src/part/entry.ts'
import { addUsage, type Usage } from '../../src/part/usage.ts'
import { serve } from '../../src/server/serve.ts'
import { folder } from '../support/cli.ts'
import { agent } from '../support/engine.ts'
import { timed } from '../support/recorded.ts'
import { expectAccessibleAt } from './axe.ts'
import { launchBrowser } from './chromium.ts'
import { flaws } from './flaws.ts'
import { atEachScreen } from './screens.ts'
import { openTabs, openWeb } from './web.ts'

const { browser, fault } = await launchBrowser()

/** Two calls of a model that has read 80 % and 90 % of its prompts from a cache. */
function cachedRun(id: string, from: number): Entry[] {
  const messages = [{ role: 'user' as const, content: 'Hi' }]
  const usage = (cached: number): Usage => {
    const input = { inputTokens: 1000, cachedInputTokens: cached, cacheWriteInputTokens: 50 }
    return { ...input, outputTokens: 10, totalTokens: 1010, source: 'reported' }
  }
  const all = addUsage(usage(800), usage(900))
  const names = { agent: 'a', pipeline: agent(), threadId: 'thread_cached', protocol: 'page' as const }
  const call = (n: number, cached: number): Parameters<typeof timed>[2] => {
    const step = `main/answer/${n}`
    return [
      [1, step, { type: 'step-start', stepType: 'model-call', kind: 'model-call', attempt: 1 }],
      [1, step, { type: 'prompt', stage: 'response', model: 'script:m', messages: [] }],
      [1, step, { type: 'text-start', id: `t${n}` }],
      [1, step, { type: 'text-delta', id: `t${n}`, delta: 'Some words. ' }],
      [1, step, { type: 'text-end', id: `t${n}` }],
      [1, step, { type: 'usage', model: 'script:m', usage: usage(cached) }],
      [1, step, { type: 'step-finish', duration: 5, usage: usage(cached), finishReason: 'stop' }],
    ]
  }
  return timed(id, from, [
    [0, '', { type: 'run-start', runId: id, ...names, input: { messages } }],
    [1, 'main/answer', { type: 'step-start', stepType: 'llm', kind: 'tool-loop', attempt: 1, answer: true }],
    ...call(1, 800),
    ...call(2, 900),
    [1, 'main/answer', { type: 'step-finish', duration: 20, usage: all }],
    [1, '', { type: 'run-end', outcome: 'completed', usage: all }],
  ])
}

const usage = (page: Page) => page.getByRole('tabpanel', { name: 'Usage' })

describe.skipIf(browser === undefined)(`usage${fault}`, () => {
  test('the share that came from a cache: of a call, a run, an answer and a thread', async () => {
    const { page, server } = await openWeb(browser, { engine: { agents: { a: agent() } } })
    await server.store.log.append('run_cached', 1, cachedRun('run_cached', Date.now() - 5000))
    for (const [sel, share] of [
      ['main/answer/1', '800 (80%)'],
      ['main/answer/2', '900 (90%)'],
      ['run', '1,700 (85%)'],
    ]) {
      await page.goto(`${server.url}/runs/run_cached?sel=${sel}&tab=usage`)
      await expect.poll(() => usage(page).innerText()).toContain(`… from the cache\n${share}`)
    }
    const header = page.locator('dl').first().locator('div').filter({ hasText: 'tokens' })
    expect(await header.getAttribute('title')).toBe('2,000 in (85% from the cache), 20 out')
    await page.goto(`${server.url}/chat/a?thread=thread_cached`)
    await page.getByTitle('2,000 in (85% from the cache), 20 out').waitFor()
    await page.goto(`${server.url}/threads/thread_cached`)
    await page.getByText('85% from the cache').click()
    await expect.poll(() => page.getByRole('table').innerText()).toMatch(/script:m\s+2\s+2,000\s+85%/u)
    await atEachScreen(page, 'thread-cached', async ({ name }) => {
      expect(await flaws(page), name).toEqual([])
      await expectAccessibleAt(page, { name })
    })
  })

  test('the skills that a run has read, with their files, and those that an agent has', async () => {
    const skill = (name: string) => `---\nname: ${name}\ndescription: About ${name}\n---\n\nDo it.\n`
    const config = 'model: "demo:assistant", stream: true, messages: $input.messages'
    const dir = folder({
      'a.yaml': `skills: [skills/*]\nworkflow:\n  - { id: answer, type: llm, config: { ${config} } }\n`,
      'skills/mail/SKILL.md': skill('mail'),
      'skills/pdf/SKILL.md': skill('pdf'),
    })
    const server = await serve({ dir, data: 'none', env: {}, port: 0, log: () => undefined })
    const { page } = await openTabs(browser, server, { path: '/chat/a?panel=agent' })
    await expect
      .poll(() => page.getByRole('region', { name: 'Agent' }).innerText())
      .toMatch(/Skills\s+mail About mail\s+pdf About pdf/u)
    await page.getByTestId('chat-input').fill('Use the tool useSkill with {"name": "pdf"}')
    await page.getByTestId('send-button').click()
    await page.getByRole('link', { name: 'Open run' }).click()
    await expect.poll(() => page.getByTestId('run-status').getAttribute('data-status')).toBe('completed')
    await page.getByRole('tab', { name: 'Usage' }).click()
    await expect.poll(() => usage(page).innerText()).toMatch(/Skills used\s+pdf$/u)
    // Before it was read none was used.
    await page.goto(`${page.url()}&at=5`)
    await usage(page).getByText('Took').waitFor()
    expect(await usage(page).getByText('Skills used').count()).toBe(0)
  })
})
