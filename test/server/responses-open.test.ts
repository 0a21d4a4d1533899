/** OpenResponses over HTTP: what its suite asks, in our words, of the demo model. Every response and event is checked against the protocol's shapes. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { agent } from '../support/engine.ts'
import { eventSchema, responseSchema, type CheckedResponse } from '../support/open-responses.ts'
import { startServer, type TestServer } from '../support/server.ts'

let server: TestServer
beforeAll(async () => {
  server = await startServer({
    agents: { demo: agent('system: "You are helpful."').replace('script:m', 'demo:assistant') },
    scripts: {},
  })
})
afterAll(() => server.close())

async function ask(body: object): Promise<CheckedResponse> {
  const response = await server.post('/v1/responses', { model: 'demo', ...body })
  const json = (await response.json()) as object
  expect(response.status, JSON.stringify(json)).toBe(200)
  return responseSchema.parse(json)
}

async function streamed(body: object) {
  const response = await server.post('/v1/responses', { model: 'demo', stream: true, ...body })
  expect(response.headers.get('content-type')).toContain('text/event-stream')
  const frames = (await response.text()).split('\n\n').slice(0, -1)
  expect(frames.at(-1)).toBe('data: [DONE]')
  return frames.slice(0, -1).map((frame) => {
    const [name, data] = frame.split('\n')
    const json = JSON.parse(data!.slice('data: '.length)) as { type: string }
    expect(name).toBe(`event: ${json.type}`)
    return eventSchema.parse(json) as { type: string; response?: CheckedResponse }
  })
}

const user = (content: unknown) => ({ type: 'message', role: 'user', content })
const weather = {
  type: 'function',
  name: 'get_weather',
  description: 'Get the current weather for a location',
  parameters: { type: 'object', properties: { location: { type: 'string' } }, required: ['location'] },
}
const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

describe('OpenResponses', () => {
  test('a simple question has output, and is completed', async () => {
    const response = await ask({ input: [user('Say hello in exactly 3 words.')] })
    expect(response.status).toBe('completed')
    expect(response.output.length).toBeGreaterThan(0)
  })

  test('a stream has legal events, and ends with a whole response', async () => {
    const events = await streamed({ input: [user('Count to 5')] })
    expect(events[0]!.type).toBe('response.created')
    const last = events.at(-1)!
    expect([last.type, last.response!.status]).toEqual(['response.completed', 'completed'])
    expect(last.response!.output.length).toBeGreaterThan(0)
  })

  test('a system message among the items', async () => {
    const input = [{ type: 'message', role: 'system', content: 'You are a pirate.' }, user('Say hello.')]
    expect((await ask({ input })).status).toBe('completed')
  })

  test('a conversation of several turns', async () => {
    const input = [
      user('My name is Alice.'),
      { type: 'message', role: 'assistant', content: 'Hello Alice!' },
      user('What is my name?'),
    ]
    expect((await ask({ input })).status).toBe('completed')
  })

  test('an image as a data: URL', async () => {
    const content = [
      { type: 'input_text', text: 'What is in this image?' },
      { type: 'input_image', image_url: `data:image/png;base64,${png}` },
    ]
    expect((await ask({ input: [user(content)] })).status).toBe('completed')
  })

  test('an assistant’s message with a phase', async () => {
    const said = (phase: string, text: string) => ({
      type: 'message',
      role: 'assistant',
      phase,
      content: [{ type: 'output_text', text }],
    })
    const input = [user('Hi'), said('commentary', 'Let me think.'), said('final_answer', 'Hello.'), user('And now?')]
    expect((await ask({ input })).status).toBe('completed')
  })

  test.each([false, true])('a function is called; forced: %s', async (isForced) => {
    const choice = isForced ? { tool_choice: { type: 'function', name: 'get_weather' } } : {}
    const input = [user(isForced ? 'Hello' : "What's the weather like in San Francisco?")]
    const response = await ask({ input, tools: [weather], ...choice })
    expect(response.output).toContainEqual(
      expect.objectContaining({ type: 'function_call', name: 'get_weather', status: 'completed' }),
    )
    const [call] = response.output.flatMap((each) => (each.type === 'function_call' ? [each] : []))
    expect(JSON.parse(call!.arguments)).toHaveProperty('location')
    const events = await streamed({ input, tools: [weather], ...choice })
    expect(events.map(({ type }) => type)).toContain('response.function_call_arguments.done')
  })

  test('a round trip of a function, and the response before', async () => {
    const first = await ask({ input: "What's the weather like in San Francisco?", tools: [weather] })
    const call = first.output.find((each) => each.type === 'function_call')!
    const output = {
      type: 'function_call_output',
      call_id: 'call_id' in call ? call.call_id : '',
      output: '20 degrees',
    }
    const second = await ask({ input: [output], previous_response_id: first.id, tools: [weather] })
    expect([second.status, second.previous_response_id]).toEqual(['completed', first.id])
    expect(JSON.stringify(second.output)).toContain('20 degrees')
  })

  test('a model is needed', async () => {
    const response = await server.post('/v1/responses', { input: 'Hi' })
    expect([400, 422]).toContain(response.status)
  })
})
