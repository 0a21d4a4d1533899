/** A CLI agent over HTTP: every wire, while it writes; and what clients are told if it is not installed. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import OpenAI from 'openai'
import { describe, expect, onTestFinished, test } from 'vitest'
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

describe('CLI agents on a server', () => {
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

  const mistakes: [string, Record<string, unknown>][] = [
    ['a model that would be an option', { model: '--settings=x' }],
    ['a model that no argument can be', { model: 'a\0b' }],
    ['a model that is none', { model: { name: 'x' } }],
    ['a model that is too long', { model: 'x'.repeat(300) }],
    ['a folder that leads out', { project: '../..' }],
    ['a folder that is not there', { project: 'none' }],
    ['a folder that no path can be', { project: 'a\0b' }],
    ['a folder that is too long', { project: 'x/'.repeat(5000) }],
    ['a file in the place of a folder', { project: 'file' }],
    ['no prompt', { prompt: undefined }],
    ['an empty prompt', { prompt: ' ' }],
    ['a number for a prompt', { prompt: 7 }],
    ['messages without parts', { prompt: [{ role: 'user', content: [null] }] }],
    ['a text without text', { prompt: [{ role: 'user', content: [{ type: 'text' }] }] }],
  ]

  test('a client’s mistake is a 400 and names no path of this machine', async () => {
    const fakes = installFakes()
    mkdirSync(join(fakes.dir, 'work/inside'), { recursive: true })
    writeFileSync(join(fakes.dir, 'work/file'), '')
    const yaml = fakes
      .agent({ config: 'model: "$input.model"\nprompt: "$input.prompt"' })
      .replace(/cwd: .*/u, `cwd: ${JSON.stringify(`${fakes.dir}/work/$input.project`)}`)
    const server = await serverOf({ coder: yaml }, fakes.environment)
    const input = { agentId: 'coder', messages, model: 'opus', project: 'inside', prompt: 'Hi' }
    const good = await server.post('/api/beddel/chat', input)
    expect([good.status, await good.text()]).toEqual([200, expect.stringContaining('It is ')])
    for (const [what, mistake] of mistakes) {
      const response = await server.post('/api/chat', { ...input, ...mistake })
      const body = await response.text()
      expect([what, response.status, body]).toEqual([what, 400, expect.stringContaining('invalid_request_error')])
      expect(body).not.toContain(fakes.dir)
    }
    expect(fakes.reports()).toHaveLength(1)
    expect(server.reported).toEqual([])
  })

  test('where a program is stands in the log; clients learn its name', async () => {
    const fakes = installFakes()
    const server = await serverOf({ coder: fakes.agent({ config: 'command: /opt/internal/coder' }) }, fakes.environment)
    const response = await server.post('/api/chat', { agentId: 'coder', messages })
    const body = await response.text()
    expect([response.status, body]).toEqual([500, expect.stringContaining('\\"coder\\" was not found')])
    expect(body).not.toContain('internal')
    const [run] = await server.store.runs.list()
    expect(run!.error).toMatchObject({ code: 'not-installed', detail: '/opt/internal/coder' })
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
})
