/** The Beddel document's own agent, as it stands there: checked, refused without a key, and answering from Google's wire. */
import { resolve } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { recordedFixtures } from '../../src/models/testing/provider-fixtures.ts'
import { startRecordedProvider, type RecordedProvider, type Reply } from '../../src/models/testing/recorded-provider.ts'
import { folder } from '../support/cli.ts'
import { ran, serving } from '../support/cli-process.ts'

const agents = resolve('examples/beddel/agents')
const key = 'a-key-of-google'
const hello = { agentId: 'chat', messages: [{ role: 'user', content: 'Hello!' }] }

let provider: RecordedProvider | undefined
afterEach(() => provider?.close())

async function ask(replies: Reply[]) {
  provider = await startRecordedProvider(replies)
  const env = { GEMINI_API_KEY: key, GOOGLE_GENERATIVE_AI_BASE_URL: provider.baseURL }
  const server = await serving([agents], { cwd: folder(), env })
  const response = await fetch(`${server.url}/api/beddel/chat`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(hello),
  })
  const text = await response.text()
  // Callbacks run behind the answer: an orderly end waits for them.
  server.kill('SIGTERM')
  expect(await server.exit).toBe(0)
  return { response, text, err: server.err, requests: provider.requests }
}

const chunk = (parts: object[], rest: object = {}) =>
  JSON.stringify({ candidates: [{ content: { role: 'model', parts }, ...rest }] })
const call = JSON.stringify({
  candidates: [
    {
      content: { role: 'model', parts: [{ functionCall: { name: 'calculator', args: { expression: '12*7' } } }] },
      finishReason: 'STOP',
    },
  ],
  usageMetadata: { promptTokenCount: 6, candidatesTokenCount: 4, totalTokenCount: 10 },
})
const end = JSON.stringify({
  candidates: [{ content: { role: 'model', parts: [{ text: '.' }] }, finishReason: 'STOP' }],
  usageMetadata: { promptTokenCount: 20, candidatesTokenCount: 5, totalTokenCount: 25 },
})

test('millrace check passes', async () => {
  const { code, err } = await ran(['check', agents], { env: { GEMINI_API_KEY: 'a-key' } })
  expect([code, err]).toEqual([0, '1 file checked, no errors\n'])
})

test('without a key, run names the variable; logError is told, persistConversation is not', async () => {
  const { code, out, err } = await ran(['run', `${agents}/chat.yaml`, '-m', 'Hello!', '--data', 'none'])
  expect([code, out.trim()]).toEqual([1, ''])
  const needed = 'needs a key: set GOOGLE_GENERATIVE_AI_API_KEY or GEMINI_API_KEY in the environment.'
  expect(err).toContain(`The model "gemini-2.0-flash-exp" ${needed}`)
  expect(err.match(/logError:/gu)).toHaveLength(1)
  expect(err).not.toContain('persistConversation')
})

test("the document's request gets its text stream; the calculator runs; persistConversation is called once", async () => {
  const lines = [chunk([{ text: 'It is ' }]), chunk([{ text: '84' }]), end]
  const { response, text, err, requests } = await ask([
    { protocol: 'google', lines: [call] },
    { protocol: 'google', lines },
  ])
  expect([response.status, response.headers.get('content-type'), text]).toEqual([
    200,
    'text/plain; charset=utf-8',
    'It is 84.',
  ])
  expect(requests.map(({ path }) => path)).toEqual(
    Array(2).fill('/v1/models/gemini-2.0-flash-exp:streamGenerateContent?alt=sse'),
  )
  expect(requests[0]?.headers['x-goog-api-key']).toBe(key)
  expect(requests[0]?.body).toMatchObject({
    systemInstruction: { parts: [{ text: 'You are a helpful and concise assistant.' }] },
    contents: [{ role: 'user', parts: [{ text: 'Hello!' }] }],
    tools: [{ functionDeclarations: [{ name: 'calculator', description: 'Execute math' }] }],
  })
  expect(JSON.stringify(requests[1]?.body)).toContain('"result":84')
  expect(err.match(/persistConversation:.*/gu)).toEqual(['persistConversation: 9 characters, 35 tokens'])
  expect(err).not.toContain('logError')
  expect(err).not.toContain(key)
})

test('a refusal of Google is a status with its reason; logError is called once', async () => {
  const body = JSON.stringify({ error: { code: 400, message: 'API key not valid.', status: 'INVALID_ARGUMENT' } })
  const { response, text, err } = await ask([{ status: 400, body }])
  expect(response.status).toBeGreaterThanOrEqual(500)
  expect(JSON.parse(text)).toMatchObject({ error: { message: expect.stringContaining('API key not valid') } })
  expect(err.match(/logError:.*/gu)).toEqual([expect.stringContaining('API key not valid')])
  expect(err).not.toContain('persistConversation')
})

const recorded = recordedFixtures().find(({ name }) => name === 'google-text')
describe.skipIf(recorded === undefined)('with the recording of a real answer', () => {
  test('its whole text is streamed and persistConversation is told its usage', async () => {
    const { lines } = recorded!
    const { text, err } = await ask([{ protocol: 'google', lines }])
    const said = lines.flatMap((line) => [...line.matchAll(/"text":("(?:[^"\\]|\\.)*")/gu)].map(([, json]) => json!))
    expect(text).toBe(said.map((json) => JSON.parse(json) as string).join(''))
    expect(text.length).toBeGreaterThan(10)
    expect(err).toMatch(new RegExp(`^persistConversation: ${text.length} characters, \\d+ tokens$`, 'mu'))
  })
})
