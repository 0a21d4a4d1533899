/** A run that is longer than its model's window, in the page: its summary between the steps, and the results of which the model got a handle. */
import { describe, expect, onTestFinished, test } from 'vitest'
import { entriesOf, only, until } from '../support/engine.ts'
import { startStrictServer, type AskedModel, type StrictAnswer } from '../support/strict-model-server.ts'
import { expectAccessibleAt } from './axe.ts'
import { launchBrowser } from './chromium.ts'
import { flaws } from './flaws.ts'
import { atEachScreen } from './screens.ts'
import { openWeb } from './web.ts'

const { browser, fault } = await launchBrowser()

const page200 = (n: number) =>
  `Page ${n}. ${Array.from({ length: 30 }, (_, i) => `Entry ${n * 31 + i} was filed on shelf ${i}.`).join(' ')}`

/** Fetches a long document, then reads pages until they were summarized, then says what it was asked. */
function reading(): (asked: AskedModel) => StrictAnswer {
  let calls = 0
  let isSummarized = false
  return ({ system, turns }) => {
    if (system.startsWith('You shorten')) {
      isSummarized = true
      return { text: 'The task: read the archive. The code word is heron.' }
    }
    const rounds = turns.filter(({ role }) => role !== 'user').length
    if (isSummarized && rounds > 1) return { text: 'The code word is heron.' }
    return { calls: [calls++ === 0 ? { name: 'fetch', input: {} } : { name: 'read', input: { page: calls } }] }
  }
}

describe.skipIf(browser === undefined)(`a full window${fault}`, () => {
  test('a summary is a row of the run, a line of the chat and of the thread; a shortened result has a mark with its handle', async () => {
    const box = await startStrictServer({ window: 16_000, answer: reading() })
    onTestFinished(() => box.close())
    let pages = 0
    const anything = { type: 'object' }
    const { page, server } = await openWeb(browser, {
      engine: {
        agents: {
          a: `history: server
workflow:
  - id: answer
    type: llm
    config:
      model: "box:m"
      stream: true
      retries: 0
      maxSteps: 200
      system: "You read the archive."
      tools: [fetch, read]
      context: { window: 16k, keep: 3k }
`,
        },
        tools: {
          fetch: { parameters: anything, execute: () => 'a long document '.repeat(3000) },
          read: { parameters: anything, execute: () => page200(++pages) },
        },
        models: { endpoints: [{ name: 'box', baseURL: box.baseURL, protocol: 'anthropic' }] },
      },
    })
    const messages = [{ role: 'user', content: 'What is the code word?' }]
    const body = { agentId: 'a', threadId: 't', input: { messages } }
    const { id } = (await (await server.post('/api/runs', body)).json()) as { id: string }
    await until(server.store, id, ({ type }) => type === 'run-end')
    const entries = await entriesOf(server.store, id)
    const [summarized] = only(entries, 'summarized')
    const [long, short] = only(entries, 'tool-result')

    await page.goto(`${server.url}/runs/${id}?sel=${summarized!.seq}`)
    const row = page.getByTestId('summary-row')
    await expect.poll(() => row.count()).toBe(only(entries, 'summarized').length)
    expect(await row.first().innerText()).toMatch(
      /summarized\s+\d+ messages in fewer words: about [\d,]+ → [\d,]+ tokens/u,
    )
    await page.locator('[data-piece=summary]').getByText('The code word is heron.').waitFor()
    await atEachScreen(page, 'run-summary', async ({ name }) => {
      expect(await flaws(page), name).toEqual([])
      await expectAccessibleAt(page, { name })
    })
    await page.setViewportSize({ width: 1440, height: 900 })

    const stepOf = (path: string) => page.locator(`[data-testid=step-row][data-path="${path}"]`)
    await page.goto(`${server.url}/runs/${id}?sel=${long!.step}`)
    await page.getByRole('treegrid').evaluate((pane) => pane.scrollTo(0, 0))
    const handle = `res_${long!.seq}`
    await stepOf(long!.step).getByTitle(`The model got a handle of the result: ${handle}`).waitFor()
    await expect.poll(() => page.getByTestId('handle').innerText()).toContain(`the handle ${handle}`)
    // One that it was told whole has none.
    await page.goto(`${server.url}/runs/${id}?sel=${short!.step}&at=${summarized!.seq - 1}`)
    await page.locator('[data-piece=result]').waitFor()
    expect(await page.getByTestId('handle').count()).toBe(0)

    await page.goto(`${server.url}/chat/a?thread=t`)
    await page
      .getByText(/^Summarized: \d+ messages in fewer words/u)
      .first()
      .waitFor()
    await page.goto(`${server.url}/threads/t`)
    const line = page.getByTestId('thread-summary')
    await line.getByText('Summarized').click()
    await line.getByText('The code word is heron.').waitFor()
    await atEachScreen(page, 'thread-summary', async ({ name }) => {
      expect(await flaws(page), name).toEqual([])
      await expectAccessibleAt(page, { name })
    })
  })
})
