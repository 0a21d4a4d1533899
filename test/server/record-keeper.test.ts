/** What the Bernard document asks of its recordKeeper, asked of ours: the tables, and the thread as HTTP shows it. */
import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { createScriptedModel, finish, text, throws, toolCall } from '../../src/models/testing/scripted-model.ts'
import type { Message } from '../../src/part/message.ts'
import type { ThreadRow } from '../../src/part/thread.ts'
import { startServer, type TestServer } from '../support/server.ts'

let server: TestServer
let first: string
let thread: ThreadRow & { messages: Message[] }

// All that follows only reads what this has recorded.
beforeAll(async () => ({ first, thread } = await twoTurns()))
afterAll(() => server.close())

const shipped = readFileSync(new URL('../../agents/bernard.yaml', import.meta.url), 'utf8')
const long = 'a long page '.repeat(2000)

/** Two turns of one conversation: the router looks a page up and fails at another tool, the answer follows; then the answer fails. */
async function twoTurns() {
  const names = ['script:router', 'script:answer']
  const yaml = shipped
    .replaceAll('"demo:assistant"', () => `"${names.shift()}"`)
    .replace('name: calculator', 'name: lookUp')
    .replace('name: getCurrentTime', 'name: broken')
  const handOver = (id: string) => [toolCall(id, 'respond', {}), finish('tool-calls')]
  server = await startServer(
    {
      agents: { bernard: `history: server\n${yaml}` },
      tools: {
        lookUp: { parameters: z.object({}), execute: () => long },
        broken: {
          parameters: z.object({}),
          execute: () => {
            throw new Error('out of order')
          },
        },
      },
      scripts: {
        router: createScriptedModel([
          [toolCall('c1', 'lookUp'), toolCall('c2', 'broken'), finish('tool-calls')],
          handOver('r1'),
          handOver('r2'),
        ]),
        answer: createScriptedModel([[text('It is ', 'long.'), finish()], [throws(new Error('down'))]]),
      },
      pricing: { 'script:router': { input: 1, output: 1 }, 'script:answer': { input: 2, output: 2 } },
    },
    { openai: { extensions: ['tools', 'trace'], streamToolOutputMaxChars: 100 } },
  )
  const say = async (content: string) => {
    const body = {
      model: 'bernard',
      stream: true,
      messages: [{ role: 'user', content }],
      extensions: ['tools', 'trace'],
    }
    return (await server.post('/api/v1/chat/completions', body, { headers: { 'x-thread-id': 't' } })).text()
  }
  const streamed = await say('What does the page say?')
  await say('And the other one?')
  const [run] = await server.store.runs.list({ limit: 1 })
  await server.store.records!.settle()
  const shown = (await (await fetch(`${server.url}/api/threads/${run!.threadId}`)).json()) as ThreadRow & {
    messages: Message[]
  }
  return { first: streamed, thread: shown }
}

async function rows(sql: string): Promise<unknown[][]> {
  return (await server.store.records!.query(sql)).rows
}

describe('record keeper', () => {
  test('each model call is recorded once, with its stage, model, prompt, latency and tokens', async () => {
    const calls = await rows(
      `SELECT m.stage, m.model, json_extract(m.prompt, '$.type'), m.duration IS NOT NULL, m.total_tokens > 0, m.error IS NOT NULL
     FROM model_calls m JOIN runs r ON r.id = m.run ORDER BY r.number, m.seq`,
    )
    expect(calls).toEqual([
      ['router', 'script:router', 'prompt', 1, 1, 0],
      ['router', 'script:router', 'prompt', 1, 1, 0],
      ['response', 'script:answer', 'prompt', 1, 1, 0],
      ['router', 'script:router', 'prompt', 1, 1, 0],
      ['response', 'script:answer', 'prompt', 1, expect.anything(), 1],
    ])
    expect(await rows('SELECT count(*) FROM model_calls WHERE time_to_first_token >= 0')).toEqual([[4]])
  })

  test('each tool call is recorded once, with its outcome and time; the marker of the router is in the record, not in the stream', async () => {
    expect(
      await rows(
        `SELECT c.tool_name, c.outcome, c.duration >= 0 FROM tool_calls c JOIN runs r ON r.id = c.run ORDER BY r.number, c.seq`,
      ),
    ).toEqual([
      ['lookUp', 'completed', 1],
      ['broken', 'failed', 1],
      ['respond', 'completed', 1],
      ['respond', 'completed', 1],
    ])
    expect(first).toContain('lookUp')
    expect(first).not.toContain('"name":"respond"')
  })

  test('a tool output that is cut in the stream is whole in the record', async () => {
    expect(first).not.toContain('a long page '.repeat(20))
    const [[output]] = (await rows(`SELECT output FROM tool_calls WHERE tool_name = 'lookUp'`)) as [[string]]
    expect(JSON.parse(output)).toBe(long)
  })

  test('the conversation: its messages, its status, its counts, its errors', () => {
    expect(thread.messages.map(({ role, content }) => [role, content])).toMatchObject([
      ['user', 'What does the page say?'],
      ['assistant', [{ type: 'text', text: 'It is long.' }]],
      ['user', 'And the other one?'],
    ])
    expect(thread).toMatchObject({
      status: 'idle',
      runCount: 2,
      errorCount: 1,
      models: ['script:answer', 'script:router'],
      tools: expect.arrayContaining(['broken', 'lookUp']) as string[],
      firstTokenMs: { last: expect.any(Number) as number, average: expect.any(Number) as number },
    })
    expect(thread.usage.totalTokens).toBeGreaterThan(0)
    expect(thread.cost).toBeGreaterThan(0)
  })
})
