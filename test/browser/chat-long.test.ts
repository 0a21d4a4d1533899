/** A long chat in the playground, and one whose server is killed and started again. */
import { copyFileSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createScriptedModel, finish, text } from '../../src/models/testing/scripted-model.ts'
import type { Entry } from '../../src/part/entry.ts'
import { agent, entriesOf } from '../support/engine.ts'
import { spawnServer, type ServerProcess } from '../support/server-process.ts'
import { launchBrowser } from './chromium.ts'
import { openWeb } from './web.ts'

const { browser, fault } = await launchBrowser()

describe.skipIf(browser === undefined)(`long chats in the playground${fault}`, () => {
  test('200 turns: the newest are there at once, earlier ones come on demand and move nothing', async () => {
    const words = '## Answer 0\n\nWith **words**, and `code`.\n\n- a list\n'
    const m = createScriptedModel([
      [text(words), finish()],
      [text('Answer 200'), finish()],
    ])
    const { page, server } = await openWeb(browser, { engine: { agents: { assistant: agent() }, scripts: { m } } })
    const { runtime, store } = server
    const first = await runtime.start(
      'assistant',
      { messages: [{ role: 'user', content: 'Question' }] },
      { protocol: 'api' },
    )
    await first.result
    const entries = await entriesOf(store, first.id)
    for (let i = 0; i < 200; i++) {
      const copy = entries.map((entry): Entry => {
        const timestamp = entry.timestamp - (200 - i) * 1000
        if (entry.type === 'text-delta') return { ...entry, timestamp, delta: entry.delta.replace('0', String(i)) }
        if (entry.type !== 'run-start') return { ...entry, timestamp }
        const previous = i === 0 ? {} : { previousRunId: `run_${i - 1}` }
        return { ...entry, ...previous, timestamp, runId: `run_${i}`, threadId: 't' }
      })
      await store.log.append(`run_${i}`, 1, copy)
    }
    await page.goto(`${server.url}/chat/assistant?thread=t`)
    const turns = page.getByTestId('assistant-message')
    await expect.poll(() => turns.count()).toBe(50)
    await expect.poll(() => turns.last().innerText()).toContain('Answer 199')
    const box = page.getByRole('log')
    await expect
      .poll(() => box.evaluate(({ scrollHeight, scrollTop, clientHeight }) => scrollHeight - scrollTop - clientHeight))
      .toBeLessThan(2)
    for (const count of [100, 150, 200]) {
      await page.getByRole('button', { name: 'Earlier turns' }).click()
      await expect.poll(() => turns.count()).toBe(count)
    }
    // How long the page stands still at most while it scrolls through all of them.
    const longest = await page.evaluate(
      () =>
        new Promise<number>((done) => {
          const element = document.querySelector('[role=log]')!
          let last = performance.now()
          let most = 0
          let steps = 0
          element.scrollTop = 0
          const step = (now: number) => {
            most = Math.max(most, now - last)
            last = now
            element.scrollTop += 1500
            if (++steps < 40) requestAnimationFrame(step)
            else done(most)
          }
          requestAnimationFrame(step)
        }),
    )
    // About 30 ms; all turns drawn at once take half a second.
    expect(longest).toBeLessThan(400)
  })

  test('the server is killed in the middle of an answer and started again: what was said stays, and Retry answers again', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'millrace-chat-'))
    const agents = join(dir, 'agents')
    mkdirSync(agents)
    copyFileSync('agents/assistant.yaml', join(agents, 'assistant.yaml'))
    const before = await spawnServer(agents, join(dir, 'data'))
    const context = await browser!.newContext({ locale: 'en-US' })
    let after: ServerProcess | undefined
    onTestFinished(async () => {
      await context.close()
      await after?.kill()
      rmSync(dir, { recursive: true })
    })
    const page = await context.newPage()
    await page.goto(`${before.url}/`)
    await page.getByRole('button', { name: 'What can you do?' }).click()
    const turn = page.getByTestId('assistant-message')
    // What the model says, not what stands there before.
    await expect.poll(() => turn.innerText()).toMatch(/^(?!Waiting for)\w+ \w+/u)
    const said = (await turn.innerText()).slice(0, 5)
    await before.kill()
    expect(await turn.innerText()).toContain(said)
    after = await spawnServer(agents, join(dir, 'data'), '--port', new URL(before.url).port)
    await expect.poll(() => turn.getAttribute('data-status')).toBe('interrupted')
    expect(await turn.innerText()).toContain(said)
    expect(await turn.getByRole('alert').innerText()).toBe('The answer was cut off: the server stopped.')
    await turn.getByRole('button', { name: 'Try again' }).click()
    await expect.poll(() => turn.getAttribute('data-status')).toBe('completed')
    expect(await page.getByText('2/2', { exact: true }).count()).toBe(1)
  })
})
