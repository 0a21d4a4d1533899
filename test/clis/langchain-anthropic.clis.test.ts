/** LangChain's package for Anthropic, from npm, asks `/v1/messages`: texts, thoughts, a tool loop beside the server's tool, structured output. */
import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import * as z from 'zod'
import { finish, reasoning, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import { agent } from '../support/engine.ts'
import { installed, type Installed } from '../support/from-npm.ts'
import { createTold, resultsIn } from '../support/going-on.ts'
import { startServer } from '../support/server.ts'

const run = promisify(execFile)
let npm: Installed | undefined
beforeAll(async () => {
  npm = await installed(['@langchain/anthropic@1.5.11', '@langchain/core@1', 'zod@4'])
}, 300_000)
afterAll(() => npm?.remove(), 60_000)

const program = `
import { ChatAnthropic } from '@langchain/anthropic'
import { HumanMessage } from '@langchain/core/messages'
import { tool } from '@langchain/core/tools'
import * as z from 'zod'
const chat = (more = {}) => new ChatAnthropic({ model: 'a', apiKey: 'none', anthropicApiUrl: process.argv[2], maxRetries: 0, ...more })
let streamed = ''
for await (const chunk of await chat().stream('Hi')) streamed += chunk.text
const whole = await chat().invoke('Hi')
const look = tool(() => 'Sunny', { name: 'get_weather', description: 'Weather', schema: z.object({ city: z.string() }) })
const bound = chat().bindTools([look])
const question = new HumanMessage('Go')
const first = await bound.invoke([question])
const calls = first.tool_calls.filter(({ name }) => name === 'get_weather')
const second = await bound.invoke([question, first, await look.invoke(calls[0])])
const schema = z.object({ answer: z.string() })
const parsed = await chat().withStructuredOutput(schema, { name: 'answer', method: 'jsonSchema' }).invoke('What?')
console.log(JSON.stringify({ streamed, whole: whole.text, thoughts: JSON.stringify(whole.content), calls, second: second.text, parsed }))
`

describe('@langchain/anthropic', { timeout: 120_000 }, () => {
  test('text, thoughts, a tool loop, structured output', async ({ skip }) => {
    skip(npm === undefined, 'needs the npm registry')
    let ran = 0
    const model = createTold((prompt) => {
      const { responseFormat } = model.calls.at(-1)!
      if (responseFormat?.type === 'json') return [text('{"answer":"42"}'), finish()]
      const results = resultsIn(prompt)
      if (JSON.stringify(prompt).includes('"Hi"')) return [reasoning('Hm'), text('Hel', 'lo'), finish()]
      if (!results.has('call_s')) return [toolCall('call_s', 'multiply'), finish('tool-calls')]
      if (!results.has('call_c')) return [toolCall('call_c', 'get_weather', { city: 'Rome' }), finish('tool-calls')]
      return [text('It is 84 and sunny.'), finish()]
    })
    const multiply = { description: 'Multiplies.', parameters: z.object({}), execute: () => (ran++, 84) }
    const agents = { a: agent('tools: [multiply]') }
    const server = await startServer({ agents, tools: { multiply }, scripts: { m: model } })
    onTestFinished(() => server.close())
    writeFileSync(join(npm!.root, 'ask.mjs'), program)
    const { stdout } = await run(process.execPath, ['ask.mjs', server.url], { cwd: npm!.root, timeout: 60_000 })
    const said = JSON.parse(stdout) as { thoughts: string }
    expect(said).toMatchObject({
      streamed: 'Hello',
      whole: 'Hello',
      calls: [{ name: 'get_weather', args: { city: 'Rome' }, id: 'call_c' }],
      second: 'It is 84 and sunny.',
      parsed: { answer: '42' },
    })
    expect(said.thoughts).toContain('"thinking":"Hm"')
    expect(ran).toBe(1)
  })
})
