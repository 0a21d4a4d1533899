/**
 * A loop with a summary, handles and a message into it goes on with another model, whose service checks what services check: 4 × 4 protocols. Nothing
 * that only the first model may be sent reaches the second, and the loop stays with it.
 */
import { describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { entriesOf, only, openEngine } from '../support/engine.ts'
import { startStrictServer, strictProtocols } from '../support/strict-model-server.ts'
import { watchInbox } from '../support/steering.ts'
import { firstTask, isSummary, pagesKnown, pageText, readPages, windowAgent } from '../support/window-kills.ts'

const skills = '[{ name: counting, description: How pages are counted, folder: skills/counting }]'
const pairs = strictProtocols.flatMap((one) => strictProtocols.map((two) => [one, two] as const))

describe('another model goes on', () => {
  test.each(pairs)('%s, then %s', async (one, two) => {
    let isDown = false
    const server = await startStrictServer({
      window: 16_000,
      answer(asked) {
        if (asked.model === 'm' && isDown) return { status: 500, body: { error: { message: 'down' } } }
        if (!isSummary(asked) && pagesKnown(asked) >= 10) isDown = true
        return readPages(asked, 16)
      },
    })
    onTestFinished(() => server.close())
    const inbox = watchInbox()
    let tell = (): unknown => undefined
    const { runtime, store } = openEngine({
      agents: { a: windowAgent('box:m', skills).replace('"box:m"', '["box:m", "bag:n"]') },
      tools: {
        read: {
          parameters: z.object({ page: z.number() }),
          async execute({ page }: { page: number }) {
            if (page === 3 || page === 12) await tell()
            return pageText(page)
          },
        },
      },
      models: {
        endpoints: [
          { name: 'box', baseURL: server.baseURL, protocol: one },
          { name: 'bag', baseURL: server.baseURL, protocol: two },
        ],
      },
      wrapStore: inbox.wrapStore,
    })
    const run = await runtime.start('a', { messages: [{ role: 'user', content: firstTask }] }, { threadId: 't' })
    let told = 0
    tell = async () => {
      const id = `m${++told}`
      await runtime.tell(run.id, { id, content: `Message ${told}` })
      await inbox.heard(id)
    }
    const result = await run.result
    expect(server.refused.filter(({ status }) => status === 400)).toEqual([])
    expect(result).toMatchObject({ outcome: 'completed', text: expect.stringContaining('16 pages.') })
    const entries = await entriesOf(store, run.id)
    expect(only(entries, 'summarized').length).toBeGreaterThan(0)
    expect(only(entries, 'summarized').every(({ text }) => text !== undefined)).toBe(true)
    expect(only(entries, 'prompt').some(({ shortened }) => shortened !== undefined)).toBe(true)
    expect(only(entries, 'message')).toHaveLength(2)
    // The loop stays with the model that has answered, and the log names it.
    const models = only(entries, 'usage').map(({ model }) => model)
    expect(models[0]).toBe('box:m')
    expect(models.at(-1)).toBe('bag:n')
    const asked = server.requests.filter((each) => !isSummary(each)).map(({ model }) => model)
    expect(asked.slice(asked.indexOf('n')).every((model) => model === 'n')).toBe(true)
    // The next run begins with the summary, and with what the second model has signed.
    const next = await runtime.start(
      'a',
      { messages: [{ role: 'user', content: 'And now?' }] },
      { threadId: 't', history: 'server' },
    )
    expect(await next.result).toMatchObject({ outcome: 'completed' })
    expect(server.refused.filter(({ status }) => status === 400)).toEqual([])
  })
})
