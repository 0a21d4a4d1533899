/** What providers are sent of long results, in their four protocols: the text with the handle, the files, the same beginning each time. */
import { describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { startRecordedProvider, type Protocol } from '../../src/models/testing/recorded-provider.ts'
import { openEngine } from '../support/engine.ts'
import { says, thinksAndCalls } from '../support/protocol-lines.ts'

const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk'.repeat(200)
const page = `${'start '.repeat(1000)}The needle. ${'end '.repeat(20_000)}`
const tools = {
  fetchPage: { parameters: z.object({}), execute: () => page },
  shoot: {
    parameters: z.object({}),
    execute: () => [
      { type: 'text', text: page },
      { type: 'image', data: png, mimeType: 'image/png' },
    ],
  },
}
const yaml = `
history: server
workflow:
  - id: answer
    type: llm
    config: { model: "box:m", stream: true, maxSteps: 10, messages: $input.messages, tools: [fetchPage, shoot] }
`

/** Two turns: each fetches the page and shoots a picture. In the second one, the result of the first is read. */
async function converse(protocol: Protocol): Promise<Record<string, unknown>[]> {
  const replies = [0, 1].flatMap((turn) => [
    thinksAndCalls('fetchPage', `call_${turn}_1`)[protocol],
    thinksAndCalls('shoot', `call_${turn}_2`)[protocol],
    ...(turn === 1 ? [thinksAndCalls('readResult', 'call_read', { handle: 'res_17', from: 6000 })[protocol]] : []),
    says[protocol],
  ])
  const provider = await startRecordedProvider(replies.map((lines) => ({ protocol, lines })))
  onTestFinished(() => provider.close())
  const engine = openEngine({
    agents: { a: yaml },
    tools,
    models: { endpoints: [{ name: 'box', baseURL: provider.baseURL, protocol }] },
  })
  for (const content of ['One', 'Two']) {
    const run = await engine.runtime.start('a', { messages: [{ role: 'user', content }] }, { threadId: 't' })
    expect(await run.result).toMatchObject({ outcome: 'completed' })
  }
  return provider.requests.map(({ body }) => body as Record<string, unknown>)
}

const messagesKey: Record<Protocol, string> = {
  'openai-chat': 'messages',
  'openai-responses': 'input',
  anthropic: 'messages',
  google: 'contents',
}

describe.each(Object.keys(messagesKey) as Protocol[])('over %s', (protocol) => {
  test('the text and the files of long results, and nothing else of them; messages are only added', async () => {
    const bodies = await converse(protocol)
    expect(bodies).toHaveLength(7)
    const lists = bodies.map((body) => (body[messagesKey[protocol]] as unknown[]).map((one) => JSON.stringify(one)))
    for (const [i, list] of lists.entries()) {
      const all = list.join('\n')
      expect(all).not.toContain(page)
      expect(all).not.toMatch(/"(?:shortened|handle)":(?!"res_17")/u)
      if (i > 0) expect(list.slice(0, lists[i - 1]!.length), `request ${i}`).toEqual(lists[i - 1])
    }
    const last = lists.at(-1)!.join('\n')
    const handles = [...last.matchAll(/It is kept as (res_\w+)/gu)].map(([, handle]) => handle!)
    expect(new Set(handles).size).toBe(4)
    expect(last.split(png)).toHaveLength(3)
    const offered = bodies.map((body) => JSON.stringify(body['tools']).includes('readResult'))
    expect(offered).toEqual([false, true, true, true, true, true, true])
  })
})
