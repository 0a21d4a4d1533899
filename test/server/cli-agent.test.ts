/** A CLI agent over HTTP: every wire, while it writes; and what clients are told if it is not installed. */
import { readFileSync } from 'node:fs'
import OpenAI from 'openai'
import { expect, onTestFinished, test } from 'vitest'
import { installFakes, startLatch } from '../support/cli/fakes.ts'
import { framesOf, readBody, startServer, type TestServer } from '../support/server.ts'

const messages = [{ role: 'user', content: 'Look at it.' }]

async function serverOf(agents: Record<string, string>, environment: Record<string, string>): Promise<TestServer> {
  const server = await startServer({ agents, environment })
  onTestFinished(() => server.close())
  return server
}

const wires: [name: string, path: string, body: (agent: string) => object][] = [
  ['text', '/api/beddel/chat', (agentId) => ({ agentId, messages })],
  ['UI', '/api/chat', (agentId) => ({ agentId, messages })],
  ['OpenAI', '/v1/chat/completions', (model) => ({ model, messages, stream: true })],
  [
    'AG-UI',
    '/ag-ui/coder',
    () => ({
      threadId: 't',
      runId: 'r',
      messages: [{ id: 'm', role: 'user', content: 'Look at it.' }],
      tools: [],
      context: [],
      state: {},
      forwardedProps: {},
    }),
  ],
]

test.each(wires)('%s: a delta is at the client before the program writes its next line', async (_, path, body) => {
  const fakes = installFakes()
  const latch = await startLatch()
  const server = await serverOf({ coder: fakes.agent({ latch: latch.url }) }, fakes.environment)
  const response = await server.post(path, body('coder'))
  const read = readBody(response)
  // Lines 0 to 2 are the session, the start of the message and of its first block; line 3 is the first delta.
  for (let i = 0; i <= 3; i++) await latch.open(i)
  await latch.reached(4)
  expect(await read.until('I will ')).not.toContain('read it.')
  await latch.open(4)
  await latch.reached(5)
  expect(await read.until('read it.')).not.toContain('It is ')
  latch.openAll()
  const whole = await read.rest()
  expect(response.status).toBe(200)
  expect(whole).toContain('ü🌊.')
  expect(server.reported).toEqual([])
})

test('an OpenAI client sees the agent as a model, and reads its answer', async () => {
  const fakes = installFakes()
  const server = await serverOf({ 'claude-code': fakes.agent({ session: 'claudeWithSubAgent' }) }, fakes.environment)
  const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'none' })
  const models = (await client.models.list()).data.map(({ id }) => id)
  expect(models).toEqual(['claude-code'])
  const { choices, usage } = await client.chat.completions.create({
    model: 'claude-code',
    messages: [{ role: 'user', content: 'Look.' }],
  })
  expect(choices[0]!.message.content).toBe('I ask.\n\nAll good.')
  expect(usage).toMatchObject({ prompt_tokens: 360, completion_tokens: 41 })
})

const review = readFileSync('agents/code-review.yaml', 'utf8')

test.each(wires.slice(0, 3))('%s: a program that is not installed is one clear error', async (name, path, body) => {
  const server = await serverOf({ 'code-review': review }, { PATH: '/nowhere' })
  const response = await server.post(path, body('code-review'))
  expect(response.status).toBe(500)
  const { error } = (await response.json()) as { error: { message: string; code: string } }
  expect(error.code).toBe('not-installed')
  expect(error.message).toBe(
    'Step "review" (cli-agent): Claude Code is not installed: The program "claude" was not found. ' +
      'Install it with "npm install -g @anthropic-ai/claude-code", or set "command" to its path.',
  )
  expect(name).not.toBe('')
})

test('AG-UI and a late answer: the same error in the stream', async () => {
  const server = await serverOf({ coder: review }, { PATH: '/nowhere' })
  const [, path, body] = wires[3]!
  const text = await (await server.post(path, body('coder'))).text()
  expect(text).toContain('Claude Code is not installed')
  expect(server.reported).toEqual([])
})

test('agents/code-review.yaml: claude is asked with its tools and nothing else', async () => {
  const fakes = installFakes()
  const key = { ANTHROPIC_API_KEY: 'sk-ant-1', OPENAI_API_KEY: 'sk-2' }
  const server = await serverOf({ 'code-review': review }, { ...fakes.environment, ...key })
  const frames = framesOf(await (await server.post('/api/chat', { agentId: 'code-review', messages })).text())
  expect(frames.at(-2)).toMatchObject({ type: 'finish', finishReason: 'stop' })
  expect(frames).toContainEqual(expect.objectContaining({ type: 'tool-output-available', providerExecuted: true }))
})
