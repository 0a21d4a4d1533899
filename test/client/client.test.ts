/** `millrace/client` against a server on a real socket. */
import { afterEach, describe, expect, onTestFinished, test } from 'vitest'
import { MillraceClient, type Entry } from '../../src/client.ts'
import { createScriptedModel, finish, latch, text, throws, toolCall } from '../../src/models/testing/scripted-model.ts'
import { agent, entriesOf, grammarFaults, only, until, type EngineOptions } from '../support/engine.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { cuttingProxy } from './cutting-proxy.ts'
import { overHttp, overSocket, transports, type Connect } from './transports.ts'

let server: TestServer | undefined
afterEach(() => server?.close())

async function start(
  connect: Connect,
  options: Partial<EngineOptions>,
  handler: Parameters<typeof startServer>[1] = {},
) {
  server = await startServer({ agents: { a: agent() }, ...options }, handler)
  return { ...server, client: connect(`${server.url}/`) }
}

async function all(entries: AsyncIterable<Entry>): Promise<Entry[]> {
  const list: Entry[] = []
  for await (const entry of entries) list.push(entry)
  return list
}

const words = Array.from({ length: 40 }, (_, i) => `word${i} `)

describe.each(transports)('over %s', (_name, connect) => {
  test('a run: every entry as it is recorded, the text as it comes, the text and the result', async () => {
    const m = createScriptedModel([[text('Hel', 'lo'), finish()]])
    const { client, store } = await start(connect, { scripts: { m } })
    const run = client.run({ agent: 'a', messages: 'Hi' })
    const entries = await all(run)
    expect(entries).toEqual(await entriesOf(store, await run.id))
    expect(grammarFaults(entries)).toEqual([])
    expect(only(entries, 'run-start')[0]!.input).toEqual({ messages: [{ role: 'user', content: 'Hi' }] })
    const pieces: string[] = []
    for await (const piece of run.textStream) pieces.push(piece)
    expect(pieces).toEqual(['Hel', 'lo'])
    expect(await run.text).toBe('Hello')
    expect(await run.result).toMatchObject({
      id: await run.id,
      outcome: 'completed',
      text: 'Hello',
      usage: { totalTokens: 15 },
    })
    expect(await client.show(await run.id)).toMatchObject({ status: 'completed', text: 'Hello', agent: 'a' })
  })

  test('entries are there before the model has finished', async () => {
    const gate = latch()
    const m = createScriptedModel([[text('first'), gate, finish()]])
    const { client } = await start(connect, { scripts: { m } })
    const run = client.run({ agent: 'a', messages: 'Hi' })
    for await (const entry of run) if (entry.type === 'text-delta') break
    gate.open()
    expect(await run.text).toBe('first')
  })

  test('only the answer is text: a step before it is no part of it', async () => {
    const scripts = {
      facts: createScriptedModel([[text('facts'), finish()]]),
      m: createScriptedModel([[text('poem'), finish()]]),
    }
    const facts = '\n  - { id: facts, type: llm, config: { model: "script:facts" }, result: facts }'
    const { client } = await start(connect, {
      scripts,
      agents: { a: agent().replace('workflow:', `workflow:${facts}`) },
    })
    const run = client.run({ agent: 'a', messages: [{ role: 'user', content: 'Hi' }] })
    const pieces: string[] = []
    for await (const piece of run.textStream) pieces.push(piece)
    expect([pieces, await run.text]).toEqual([['poem'], 'poem'])
  })

  test('tools that run here: called with the arguments, answered, an error is the model’s to hear', async () => {
    const m = createScriptedModel([
      [toolCall('c1', 'title', { of: 'page' }), toolCall('c2', 'fails'), finish('tool-calls')],
      [text('Done.'), finish()],
    ])
    const { client } = await start(connect, { scripts: { m } })
    const seen: unknown[] = []
    const run = client.run({
      agent: 'a',
      messages: 'Hi',
      tools: [
        {
          name: 'title',
          description: 'The title',
          parameters: { type: 'object', properties: { of: { type: 'string' } } },
          execute(input, context) {
            seen.push([input, context.toolCallId])
            return { title: 'Home' }
          },
        },
        {
          name: 'fails',
          execute: () => {
            throw new Error('no page')
          },
        },
      ],
    })
    expect(await run.result).toMatchObject({ outcome: 'completed', text: 'Done.' })
    expect(seen).toEqual([[{ of: 'page' }, 'c1']])
    const results = only(await all(run), 'tool-result').map(({ toolCallId, result, isError }) => [
      toolCallId,
      result,
      isError,
    ])
    expect(results).toEqual(
      expect.arrayContaining([
        ['c1', { title: 'Home' }, false],
        ['c2', 'no page', true],
      ]),
    )
  })

  test('a tool without execute, and an approval, wait for `answer`; the first answer counts', async () => {
    const m = createScriptedModel([
      [toolCall('c1', 'ask'), finish('tool-calls')],
      [text('Thanks.'), finish()],
    ])
    const { client } = await start(connect, { scripts: { m } })
    const run = client.run({ agent: 'a', messages: 'Hi', tools: [{ name: 'ask' }] })
    for await (const entry of run) {
      if (entry.type !== 'request') continue
      expect(await run.answer(entry.requestId, { output: 'yes' })).toMatchObject({ duplicate: false })
      expect(await client.answer(await run.id, entry.requestId, { output: 'yes' })).toMatchObject({ duplicate: true })
      await expect(run.answer(entry.requestId, { output: 'no' })).rejects.toMatchObject({
        code: 'answer-conflict',
        status: 409,
      })
    }
    expect(await run.text).toBe('Thanks.')
  })

  test('a suspended run: its result is what it waits for, and asked again behind the answer it is the end', async () => {
    const m = createScriptedModel([
      [text('Wait. '), toolCall('c1', 'ask', { n: 1 }), finish('tool-calls')],
      [toolCall('c2', 'ask', { n: 2 }), finish('tool-calls')],
      [text('Thanks.'), finish()],
    ])
    const { client } = await start(connect, { scripts: { m } })
    const run = client.run({ agent: 'a', messages: 'Hi', tools: [{ name: 'ask' }] })
    for (const n of [1, 2]) {
      const { outcome, text: said, requests } = await run.result
      expect([outcome, said]).toEqual(['suspended', 'Wait. '])
      expect(requests).toMatchObject([{ kind: 'tool', toolName: 'ask', input: { n } }])
      // Nothing has changed: told at once, again and again.
      expect(await run.result).toMatchObject({ outcome: 'suspended', requests })
      await run.answer(requests![0]!.requestId, { output: 'yes' })
    }
    const result = await run.result
    expect(result).toMatchObject({ outcome: 'completed', text: 'Wait. Thanks.' })
    expect(result).not.toHaveProperty('requests')
    expect(await run.result).toBe(result)
  })

  test('an approval beside a tool that runs here: told once only the approval is missing; the tool is there to the end', async () => {
    const m = createScriptedModel([
      [toolCall('c1', 'title'), toolCall('c2', 'pay'), finish('tool-calls')],
      [toolCall('c3', 'title'), finish('tool-calls')],
      [text('Paid.'), finish()],
    ])
    const agents = { a: agent('tools: [{ name: pay, approval: true }]') }
    const pay = { parameters: { type: 'object' }, execute: () => 'paid' }
    const { client, store } = await start(connect, { scripts: { m }, agents, tools: { pay } })
    const gate = latch()
    const calls: string[] = []
    const title = async (_: unknown, { toolCallId }: { toolCallId: string }) => {
      calls.push(toolCallId)
      await gate.opened
      return 'Home'
    }
    const run = client.run({ agent: 'a', messages: 'Hi', tools: [{ name: 'title', execute: title }] })
    await until(store, await run.id, ({ type }) => type === 'suspend')
    gate.open()
    const { outcome, requests } = await run.result
    expect([outcome, requests?.map(({ kind }) => kind)]).toEqual(['suspended', ['approval']])
    expect(await run.result).toMatchObject({ outcome: 'suspended' })
    // Somebody else approves, and nobody here waits: the tool is served all the same.
    await client.answer(await run.id, requests![0]!.requestId, { approved: true })
    await until(store, await run.id, ({ type }) => type === 'run-end')
    expect(await run.result).toMatchObject({ outcome: 'completed', text: 'Paid.' })
    expect(calls).toEqual(['c1', 'c3'])
  })

  test('abort stops the run on the server, and so does the signal, also one that has fired', async () => {
    const gates = [latch(), latch(), latch()]
    const m = createScriptedModel(gates.map((gate) => [text('first'), gate, finish()]))
    const { client, store } = await start(connect, { scripts: { m } })
    const first = client.run({ agent: 'a', messages: 'Hi' })
    for await (const entry of first) if (entry.type === 'text-delta') await first.abort()
    expect(await first.result).toMatchObject({ outcome: 'aborted', text: 'first' })
    const controller = new AbortController()
    const second = client.run({ agent: 'a', messages: 'Hi', signal: controller.signal })
    await until(store, await second.id, ({ type }) => type === 'text-delta')
    controller.abort()
    expect((await second.result).outcome).toBe('aborted')
    const third = client.run({ agent: 'a', messages: 'Hi', signal: AbortSignal.abort() })
    expect((await third.result).outcome).toBe('aborted')
  })

  test('leaving an iteration closes its connection and leaves the run alone', async () => {
    const gate = latch()
    const m = createScriptedModel([[text('first'), gate, text('second'), finish()]])
    const { client, store } = await start(connect, { scripts: { m } })
    const run = client.run({ agent: 'a', messages: 'Hi' })
    for await (const entry of run) if (entry.type === 'text-delta') break
    gate.open()
    expect(await run.result).toMatchObject({ outcome: 'completed', text: 'firstsecond' })
    await until(store, await run.id, ({ type }) => type === 'run-end')
  })

  test('a failed run is a result, not a rejection; what cannot start rejects with the server’s code', async () => {
    const m = createScriptedModel([[throws(new Error('broken'))]])
    const { client, url } = await start(connect, { scripts: { m } }, { apiKey: 'k-1' })
    const run = client.run({ agent: 'a', messages: 'Hi' })
    await expect(run.id).rejects.toMatchObject({ code: 'unauthorized', status: 401 })
    await expect(run.text).rejects.toMatchObject({ code: 'unauthorized' })
    await expect(all(run)).rejects.toMatchObject({ code: 'unauthorized' })
    const keyed = connect(url, { apiKey: 'k-1' })
    expect(await keyed.run({ agent: 'a', messages: 'Hi' }).result).toMatchObject({
      outcome: 'failed',
      error: { code: 'model-failed' },
    })
    await expect(keyed.run({ agent: 'b', messages: 'Hi' }).result).rejects.toMatchObject({
      code: 'unknown-agent',
      status: 404,
    })
    await expect(all(keyed.follow('run_none'))).rejects.toMatchObject({ code: 'unknown-run', status: 404 })
    await expect(keyed.stop('run_none')).rejects.toMatchObject({ code: 'unknown-run' })
    const nobody = connect('http://127.0.0.1:9')
    await expect(nobody.show('run_x')).rejects.toMatchObject({ code: 'connection-lost' })
  })

  test('what nobody awaits is no unhandled rejection', async () => {
    const unhandled: unknown[] = []
    const note = (reason: unknown) => void unhandled.push(reason)
    process.on('unhandledRejection', note)
    onTestFinished(() => void process.off('unhandledRejection', note))
    const nobody = connect('http://127.0.0.1:9')
    const run = nobody.run({
      agent: 'a',
      messages: 'Hi',
      tools: [{ name: 't', execute: () => 1 }],
      signal: AbortSignal.abort(),
    })
    void run.text
    void run.result
    await run.id.catch(() => undefined)
    await new Promise((resolve) => setImmediate(resolve))
    expect(unhandled).toEqual([])
  })

  test('follow: connections that break anywhere are made again, and nothing is missed or doubled', async () => {
    const gates = words.map(() => latch())
    const m = createScriptedModel([[...words.flatMap((word, i) => [text(word), gates[i]!]), finish()]])
    const { client, url, store } = await start(connect, { scripts: { m } })
    const proxy = await cuttingProxy(url)
    onTestFinished(() => proxy.close())
    const id = await client.run({ agent: 'a', messages: 'Hi' }).id
    const far = connect(proxy.url)
    const seen: Entry[] = []
    let open = 0
    for await (const entry of far.follow(id)) {
      seen.push(entry)
      if (entry.type !== 'text-delta') continue
      if (++open % 13 === 0) proxy.cut()
      gates[open - 1]!.open()
    }
    expect(seen).toEqual(await entriesOf(store, id))
    expect(proxy.connections).toBeGreaterThan(3)
    // From any entry on; and of a run that has ended, behind its last entry, nothing.
    expect(await all(far.follow(id, 7))).toEqual(seen.slice(7))
    expect(await all(far.follow(id, seen.length))).toEqual([])
    expect((await all(far.follow(id, 0, { types: ['text-delta'] }))).length).toBe(words.length)
  })
})

test('a key that no header can hold is refused when the client is made, and not repeated', () => {
  const make = () => new MillraceClient({ apiKey: 'sk-1\nsk-2' })
  expect(make).toThrow(expect.objectContaining({ code: 'bad-key' }))
  expect(make).not.toThrow('sk-1')
})

test.each(['websocket', 'polling'] as const)(
  'over Socket.IO, %s: a message beyond maxBodyBytes says so and is sent once; what is read beside it goes on',
  async (transport) => {
    const gate = latch()
    const model = createScriptedModel([[text('one '), gate, text('two'), finish()]])
    const small = await startServer({ agents: { a: agent() }, scripts: { m: model } }, { maxBodyBytes: 20_000 })
    onTestFinished(() => small.close())
    const client = overSocket(small.url, undefined, transport)
    const reading = client.run({ agent: 'a', messages: 'Hi' })
    const said = (async () => {
      let all = ''
      for await (const entry of reading) if (entry.type === 'text-delta') all += entry.delta
      return all
    })()
    await expect.poll(() => model.calls.length).toBe(1)
    const large = client.run({ agent: 'a', messages: '👋'.repeat(9000) })
    await expect(large.id).rejects.toMatchObject({
      code: 'too-large',
      message: expect.stringMatching(/18\d{3} characters.*server\.maxBodyBytes/u),
    })
    gate.open()
    expect(await said).toBe('one two')
    expect(await small.store.runs.list({ limit: 10 })).toHaveLength(1)
  },
)

test('a tool here whose answer does not arrive leaves its request open, which is told', async () => {
  const m = createScriptedModel([[toolCall('c1', 'title'), finish('tool-calls')]])
  const { url } = await start(overHttp, { scripts: { m } })
  const refused: typeof fetch = async (input, init) =>
    new Request(input).url.includes('/requests/') ? new Response('{}', { status: 500 }) : fetch(input, init)
  const client = new MillraceClient({ url, fetch: refused })
  const run = client.run({ agent: 'a', messages: 'Hi', tools: [{ name: 'title', execute: () => 'Home' }] })
  expect(await run.result).toMatchObject({ outcome: 'suspended', requests: [{ toolName: 'title' }] })
  await run.abort()
  expect(await run.result).toMatchObject({ outcome: 'aborted' })
})

test('follow gives up after its retries, at once when the server refuses, and quietly when it is told to stop', async () => {
  let asked = 0
  const answering = (status: number, body = '') =>
    new MillraceClient({ url: 'http://x', fetch: async () => (asked++, new Response(body, { status })) })
  await expect(all(answering(503).follow('r', 0, { retries: 1 }))).rejects.toMatchObject({ status: 503 })
  await expect(all(answering(200, 'id: 1\n').follow('r', 0, { retries: 1 }))).rejects.toMatchObject({
    code: 'connection-lost',
  })
  expect(asked).toBe(4)
  await expect(all(answering(403).follow('r'))).rejects.toMatchObject({ status: 403 })
  expect(asked).toBe(5)
  const failure =
    'data: {"type":"error","error":{"code":"store-failed","message":"The run can no longer be read."}}\n\n'
  await expect(all(answering(200, failure).follow('r', 0, { retries: 0 }))).rejects.toMatchObject({
    code: 'store-failed',
  })
  expect(await all(answering(503).follow('r', 0, { signal: AbortSignal.abort() }))).toEqual([])
  const controller = new AbortController()
  const following = all(answering(503).follow('r', 0, { signal: controller.signal }))
  setTimeout(() => controller.abort(), 1)
  expect(await following).toEqual([])
})
