/** The OpenAI routes, byte by byte over a real socket: frames and JSON exactly, names, threads, models. */
import { afterEach, describe, expect, test } from 'vitest'
import { createScriptedModel, finish, latch, reasoning, text } from '../../src/models/testing/scripted-model.ts'
import { serve } from '../../src/server/serve.ts'
import { agent } from '../support/engine.ts'
import { clientTools, messages, startScenes } from '../support/openai.ts'
import { framesOf, startServer, type TestServer } from '../support/server.ts'

let server: TestServer | undefined
afterEach(async () => {
  await server?.close()
  server = undefined
})

const chat = '/v1/chat/completions'

describe('OpenAI routes', () => {
  test('a stream: its bytes and its headers', async () => {
    const { post } = await startScenes()
    const body = { model: 'chat', messages, stream: true, stream_options: { include_usage: true } }
    const response = await post(chat, body)
    const bytes = await response.text()
    const run = response.headers.get('x-millrace-run-id')!
    const created = Number(/"created":(\d+)/u.exec(bytes)![1])
    expect(Math.abs(Date.now() / 1000 - created)).toBeLessThan(60)
    const head = `{"id":"chatcmpl-${run}","object":"chat.completion.chunk","created":${created},"model":"chat","choices":`
    const choice = (delta: string, reason = 'null') => `[{"index":0,"delta":${delta},"finish_reason":${reason}}]`
    expect(bytes).toBe(
      [
        `${head}${choice('{"role":"assistant","content":""}')},"usage":null}`,
        `${head}${choice('{"content":"Hel"}')},"usage":null}`,
        `${head}${choice('{"content":"lo"}')},"usage":null}`,
        `${head}${choice('{}', '"stop"')},"usage":null}`,
        `${head}[],"usage":{"prompt_tokens":12,"completion_tokens":5,"total_tokens":17}}`,
        '[DONE]',
      ]
        .map((data) => `data: ${data}\n\n`)
        .join(''),
    )
    expect(response.status).toBe(200)
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-type': 'text/event-stream',
      'cache-control': 'no-cache, no-transform',
      'x-accel-buffering': 'no',
    })
  })

  test('one JSON: its fields and its headers', async () => {
    server = await startServer({
      agents: { a: agent() },
      scripts: { m: createScriptedModel([[reasoning('Hm'), text('Hel', 'lo'), finish()]]) },
    })
    const response = await server.post(chat, { model: 'a', messages })
    expect(response.headers.get('content-type')).toBe('application/json')
    expect(await response.json()).toEqual({
      id: `chatcmpl-${response.headers.get('x-millrace-run-id')}`,
      object: 'chat.completion',
      created: expect.any(Number),
      model: 'a',
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: 'Hello', refusal: null, reasoning_content: 'Hm' },
          logprobs: null,
          finish_reason: 'stop',
        },
      ],
      usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 },
    })
  })

  test('calls that are written at once: id and name once each, the arguments in turns', async () => {
    const { post } = await startScenes()
    const frames = framesOf(
      await (await post(chat, { model: 'calls', messages, tools: clientTools, stream: true })).text(),
    )
    type Delta = {
      tool_calls?: { index: number; id?: string; type?: string; function: { name?: string; arguments: string } }[]
    }
    const deltas = frames.flatMap((frame) => {
      if (frame === 'done') return []
      return (frame['choices'] as { delta: Delta }[])[0]!.delta.tool_calls ?? []
    })
    expect(deltas.slice(0, 3)).toEqual([
      { index: 0, id: 'call_a', type: 'function', function: { name: 'pickColour', arguments: '' } },
      { index: 1, id: 'call_b', type: 'function', function: { name: 'pickColour', arguments: '' } },
      { index: 2, id: 'call_c', type: 'function', function: { name: 'confirm', arguments: '' } },
    ])
    const rest = deltas.slice(3)
    expect(rest.slice(0, 6).map(({ index }) => index)).toEqual([0, 1, 2, 0, 1, 0])
    expect(rest.every((delta) => Object.keys(delta).join() === 'index,function')).toBe(true)
  })

  test('every frame, and the one JSON, name the model as the client did: an alias is a name', async () => {
    server = await startServer({
      agents: { a: `metadata: { aliases: [alpha-v1] }\n${agent()}` },
      scripts: { m: createScriptedModel([1, 2].map(() => [text('Hel', 'lo'), finish()])) },
    })
    const body = { model: 'alpha-v1', messages, stream: true, stream_options: { include_usage: true } }
    const frames = framesOf(await (await server.post(chat, body)).text())
    expect(frames.length).toBe(6)
    for (const frame of frames) if (frame !== 'done') expect(frame['model']).toBe('alpha-v1')
    const whole = await server.post('/v1/completions', { model: 'alpha-v1', prompt: 'Hi' })
    expect(await whole.json()).toMatchObject({ model: 'alpha-v1' })
    expect((await server.store.runs.list()).map(({ agent: id }) => id)).toEqual(['a', 'a'])
  })

  test('the shipped agents: bernard answers as bernard-v1, and the models are all there', async () => {
    const { url, close } = await serve({
      dir: 'agents',
      data: 'none',
      env: { MILLRACE_DEMO_DELAY_MS: '0' },
      port: 0,
    })
    try {
      const { object, data } = (await (await fetch(`${url}/v1/models`)).json()) as { object: string; data: object[] }
      expect(object).toBe('list')
      expect(data).toContainEqual({ id: 'bernard-v1', object: 'model', created: 1_767_225_600, owned_by: 'millrace' })
      expect(data).toContainEqual({ id: 'bernard', object: 'model', created: 1_767_225_600, owned_by: 'millrace' })
      const response = await fetch(`${url}${chat}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({
          model: 'bernard-v1',
          messages: [{ role: 'user', content: 'What is 12*7?' }],
          stream: true,
        }),
      })
      const frames = framesOf(await response.text())
      for (const frame of frames) if (frame !== 'done') expect(frame['model']).toBe('bernard-v1')
      expect(JSON.stringify(frames)).toContain('84')
    } finally {
      await close()
    }
  })

  test('X-Thread-Id groups runs; without it each run is a thread of its own', async () => {
    const gate = latch()
    const held = createScriptedModel([
      [text('half'), gate, text('whole'), finish()],
      [text('Title'), finish()],
      [text('ok'), finish()],
    ])
    server = await startServer({ agents: { a: agent() }, scripts: { m: held } })
    const { post, url } = server
    const headers = { 'x-thread-id': 'conversation 7' }
    const body = { model: 'a', messages }
    // At once: an interface asks for an answer and for its title. Neither interrupts the other.
    const first = post(chat, body, { headers })
    await gate.reached
    const second = post('/v1/completions', { model: 'a', prompt: 'Hi' }, { headers })
    const listed = async (thread: string) =>
      (
        (await (await fetch(`${url}/api/runs?thread=${encodeURIComponent(thread)}`)).json()) as {
          runs: { id: string }[]
        }
      ).runs
    await expect.poll(async () => (await listed('conversation 7')).length).toBe(2)
    gate.open()
    const both = await Promise.all([first, second])
    const other = await post(chat, body)
    expect([...both, other].map(({ status }) => status)).toEqual([200, 200, 200])
    const ids = both.map((response) => response.headers.get('x-millrace-run-id')!)
    expect((await listed('conversation 7')).map(({ id }) => id).toSorted()).toEqual(ids.toSorted())
    for (const id of ['', 'x'.repeat(300)]) {
      const refused = await post(chat, body, { headers: { 'x-thread-id': id } })
      expect([refused.status, await refused.json()]).toMatchObject([400, { error: { param: 'X-Thread-Id' } }])
    }
  })
})
