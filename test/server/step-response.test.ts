/** A `Response` that a step returns is answered as it is: status, headers, body; on wires with frames as far as they can. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { runInNewContext } from 'node:vm'
import OpenAI from 'openai'
import { describe, expect, onTestFinished, test } from 'vitest'
import { WorkflowExecutor } from '../../src/project/workflow-executor.ts'
import { parseYaml } from '../../src/project/yaml.ts'
import { handlerRegistry } from '../../src/project/packs.ts'
import type { PrimitiveHandler } from '../../src/engine/registry.ts'
import { createChat } from '../support/chat.ts'
import { entriesOf, only } from '../support/engine.ts'
import { framesOf, startServer } from '../support/server.ts'

const messages = [{ role: 'user', content: 'Hi' }]
const yaml = 'workflow: [{ id: mine, type: mine }]'

async function start(mine: PrimitiveHandler, agents: Record<string, string> = { a: yaml }) {
  const server = await startServer({ agents, steps: { mine }, environment: { SHOP_API_KEY: 'sk-0123456789' } })
  onTestFinished(() => server.close())
  const ask = (path = '/api/beddel/chat', init: RequestInit = {}) =>
    server.post(path, { agentId: 'a', model: 'a', messages }, { redirect: 'manual', ...init })
  const logOf = (response: Response) => entriesOf(server.store, response.headers.get('x-millrace-run-id')!)
  return { ...server, ask, logOf }
}

/** Its name and value, without what a server adds. */
function headersOf({ headers }: Response): Record<string, string> {
  const own = ['x-millrace-run-id', 'connection', 'date', 'keep-alive', 'transfer-encoding', 'content-length']
  return Object.fromEntries([...headers].filter(([name]) => !own.includes(name)))
}

const made: [string, () => Response, number, string, Record<string, string>][] = [
  [
    'created, with headers',
    () => new Response('created', { status: 201, headers: { location: '/orders/7', 'x-order': '7' } }),
    201,
    'created',
    { 'content-type': 'text/plain;charset=UTF-8', location: '/orders/7', 'x-order': '7' },
  ],
  ['JSON', () => Response.json({ ok: true }), 200, '{"ok":true}', { 'content-type': 'application/json' }],
  [
    'not found',
    () => Response.json({ no: 1 }, { status: 404 }),
    404,
    '{"no":1}',
    { 'content-type': 'application/json' },
  ],
  [
    'an error',
    () => new Response('later', { status: 503, headers: { 'retry-after': '3' } }),
    503,
    'later',
    { 'content-type': 'text/plain;charset=UTF-8', 'retry-after': '3' },
  ],
  ['no content', () => new Response(null, { status: 204 }), 204, '', {}],
  ['not modified', () => new Response(null, { status: 304, headers: { etag: '"7"' } }), 304, '', { etag: '"7"' }],
  ['a redirect', () => Response.redirect('https://x.example/y', 303), 303, '', { location: 'https://x.example/y' }],
  [
    'hop-by-hop headers and a false length',
    () =>
      new Response('whole', {
        headers: {
          connection: 'close, x-hop',
          'x-hop': '1',
          'keep-alive': '9',
          'content-length': '2',
          te: 'x',
          'content-type': 'text/html',
        },
      }),
    200,
    'whole',
    { 'content-type': 'text/html' },
  ],
  [
    'another charset',
    () => new Response(new Uint8Array([0xe9]), { headers: { 'content-type': 'text/plain; charset=latin1' } }),
    200,
    'é',
    { 'content-type': 'text/plain; charset=utf-8' },
  ],
]

describe.each(made)('%s', (_, make, status, body, headers) => {
  test('over HTTP, as text', async () => {
    const { ask, logOf } = await start(make)
    const response = await ask()
    expect([response.status, await response.text()]).toEqual([status, body])
    expect(headersOf(response)).toMatchObject(headers)
    expect(response.headers.get('x-hop')).toBe(null)
    const entries = await logOf(response)
    expect(only(entries, 'step-start').find(({ head }) => head !== undefined)).toMatchObject({
      answer: true,
      head: { status },
    })
    expect(only(entries, 'run-end')).toMatchObject([{ outcome: 'completed' }])
  })

  test('from the executor', async () => {
    handlerRegistry['mine'] = make
    onTestFinished(() => void delete handlerRegistry['mine'])
    const response = (await new WorkflowExecutor(parseYaml(yaml)).execute({})) as Response
    expect([response.status, await response.text()]).toEqual([status, body])
    expect(headersOf(response)).toMatchObject(headers)
  })
})

test('bytes that are no text come as they were, and the log holds them as a file', async () => {
  const bytes = Uint8Array.from({ length: 1000 }, (_, i) => i % 256)
  const pieces = () =>
    new ReadableStream({
      start(controller) {
        controller.enqueue(bytes.slice(0, 333))
        controller.enqueue(bytes.slice(333))
        controller.close()
      },
    })
  const encoded: Record<string, string> = { 'content-type': 'text/plain', 'content-encoding': 'x-own' }
  for (const headers of [{ 'content-type': 'image/png' }, encoded]) {
    const { ask, logOf } = await start(() => new Response(pieces(), { status: 202, headers }))
    const response = await ask()
    expect([response.status, new Uint8Array(await response.arrayBuffer())]).toEqual([202, bytes])
    expect(headersOf(response)).toMatchObject(headers)
    expect(only(await logOf(response), 'file')).toMatchObject([{ mediaType: headers['content-type'] }])
  }
  const { ask } = await start(
    () => new Response(new Uint8Array(17 * 1024 * 1024), { headers: { 'content-type': 'video/mp4' } }),
  )
  const response = await ask()
  expect([response.status, await response.json()]).toMatchObject([413, { error: { code: 'too-large' } }])
})

test('cookies reach the client that asked, and are in no log', async () => {
  const headers = new Headers([
    ['set-cookie', 'a=token-1; HttpOnly'],
    ['set-cookie', 'b=token-2'],
  ])
  const { ask, logOf, url } = await start(() => new Response('in', { headers }))
  const response = await ask()
  expect(response.headers.getSetCookie()).toEqual(['a=token-1; HttpOnly', 'b=token-2'])
  const entries = await logOf(response)
  expect(JSON.stringify(entries)).not.toContain('token-')
  expect(await (await fetch(`${url}/api/runs`)).text()).not.toContain('token-')
})

test('secrets are taken out of headers and body', async () => {
  const { ask } = await start(() => new Response('key sk-0123456789', { headers: { 'x-key': 'sk-0123456789' } }))
  const response = await ask()
  expect([response.headers.get('x-key'), await response.text()]).toEqual(['[redacted]', 'key [redacted]'])
})

test('a Response of another realm, and one of a called agent', async () => {
  const make = runInNewContext('() => new Response("far", { status: 202, headers: { "x-a": "1" } })', {
    Response: class extends Response {},
  }) as PrimitiveHandler
  const { ask } = await start(make, { b: yaml, a: 'workflow: [{ id: c, type: call-agent, config: { agent: b } }]' })
  const response = await ask()
  expect([response.status, response.headers.get('x-a'), await response.text()]).toEqual([202, '1', 'far'])
})

test('what a step fetched: its headers without what is the other server’s own, its error a failure', async () => {
  const upstream = createServer((request, response) => {
    const status = request.url === '/bad' ? 500 : 203
    response
      .writeHead(status, {
        'set-cookie': 'theirs=1',
        'access-control-allow-origin': '*',
        'x-kept': '1',
        'content-type': 'text/css',
      })
      .end('body')
  })
  await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void upstream.close())
  const base = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`
  const good = await (await start(() => fetch(base))).ask()
  expect([good.status, await good.text(), headersOf(good)]).toEqual([
    203,
    'body',
    { 'content-type': 'text/css', 'x-kept': '1' },
  ])
  const bad = await (await start(() => fetch(`${base}/bad`))).ask()
  expect([bad.status, ((await bad.json()) as { error: object }).error]).toMatchObject([500, { code: 'bad-response' }])
})

describe('on wires with frames', () => {
  test('a success is text in their frames; its status and headers are not theirs', async () => {
    const { ask, url } = await start(() => new Response('created', { status: 201, headers: { 'x-order': '7' } }))
    const ui = await ask('/api/chat')
    expect([ui.status, ui.headers.get('x-order')]).toEqual([200, null])
    expect(framesOf(await ui.text())).toContainEqual(expect.objectContaining({ type: 'text-delta', delta: 'created' }))
    const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'none', maxRetries: 0 })
    const whole = await client.chat.completions.create({ model: 'a', messages: [{ role: 'user', content: 'Hi' }] })
    expect(whole.choices[0]!.message.content).toBe('created')
    const stream = await client.chat.completions.create({
      model: 'a',
      messages: [{ role: 'user', content: 'Hi' }],
      stream: true,
    })
    let text = ''
    for await (const { choices } of stream) text += choices[0]?.delta.content ?? ''
    expect(text).toBe('created')
  })

  test('an error is that error, as their official clients read it', async () => {
    const body = { error: { message: 'Sold out.', code: 'sold-out' } }
    const { ask, url } = await start(() => Response.json(body, { status: 409 }))
    const ui = await ask('/api/chat')
    expect([ui.status, await ui.json()]).toEqual([409, body])
    const { chat, errors } = createChat(url)
    await chat.sendMessage({ text: 'Hi' })
    expect(errors[0]!.message).toContain('Sold out.')
    for (const stream of [true, false]) {
      const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'none' })
      const asked = client.chat.completions.create({ model: 'a', messages: [{ role: 'user', content: 'Hi' }], stream })
      await expect(asked).rejects.toMatchObject({ status: 409, code: 'sold-out' })
    }
  })

  test('of branches that answer at once none has the status of all', async () => {
    const branches = 'x: [{ id: mx, type: mine }], y: [{ id: my, type: mine }]'
    const agent = `workflow: [{ id: all, type: parallel, config: { branches: { ${branches} } } }]`
    const { ask } = await start(() => new Response('one', { status: 418 }), { a: agent })
    const response = await ask()
    expect([response.status, await response.text()]).toEqual([200, expect.stringContaining('one')])
  })
})
