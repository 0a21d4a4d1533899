/** Tools with schemas and confirmation in `millrace/client`, against a server on a real socket. */
import { afterEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import * as mini from 'zod/mini'
import { defineTool, MillraceClient, type Confirmation, type Entry } from '../../src/client.ts'
import { createScriptedModel, finish, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import { agent, only, until, type EngineOptions } from '../support/engine.ts'
import { startServer, type TestServer } from '../support/server.ts'

let server: TestServer | undefined
afterEach(() => server?.close())

async function start(options: Partial<EngineOptions>) {
  server = await startServer({ agents: { a: agent() }, ...options })
  return { ...server, client: new MillraceClient({ url: server.url }) }
}

async function all(entries: AsyncIterable<Entry>): Promise<Entry[]> {
  const list: Entry[] = []
  for await (const entry of entries) list.push(entry)
  return list
}

const colour = z.object({ color: z.string().min(3).describe('A CSS colour'), fade: z.number().default(2) })

describe('client tools', () => {
  test('defineTool: the schema is what the model is told, and what the function gets is checked, with defaults', async () => {
    const m = createScriptedModel([
      [toolCall('c1', 'setColor', { color: 'red' }), finish('tool-calls')],
      [text('Done.'), finish()],
    ])
    const { client } = await start({ scripts: { m } })
    const seen: { color: string; fade: number }[] = []
    const setColor = defineTool('Colours the page', colour, (input) => void seen.push(input))
    const run = client.run({ agent: 'a', messages: 'Hi', tools: { setColor } })
    expect(await run.text).toBe('Done.')
    expect(seen).toEqual([{ color: 'red', fade: 2 }])
    expect(only(await all(run), 'prompt')[0]!.tools).toEqual([
      {
        name: 'setColor',
        description: 'Colours the page',
        inputSchema: {
          type: 'object',
          properties: {
            color: { type: 'string', minLength: 3, description: 'A CSS colour' },
            fade: { type: 'number', default: 2 },
          },
          required: ['color'],
        },
        client: true,
      },
    ])
  })

  test('a call whose arguments do not fit never runs: the model is told what is wrong, and corrects it', async () => {
    const m = createScriptedModel([
      [toolCall('c1', 'setColor', { color: 'x' }), finish('tool-calls')],
      [toolCall('c2', 'setColor', { color: 'blue' }), finish('tool-calls')],
      [text('Done.'), finish()],
    ])
    const { client } = await start({ scripts: { m } })
    const seen: string[] = []
    // A rule that JSON Schema cannot say.
    const known = colour.refine(({ color }) => color !== 'x', { path: ['color'], message: 'no such colour' })
    const tool = defineTool('Colours', known, ({ color }) => void seen.push(color), {
      name: 'setColor',
      parameters: { type: 'object' },
    })
    const run = client.run({ agent: 'a', messages: 'Hi', tools: [tool] })
    expect(await run.text).toBe('Done.')
    expect(seen).toEqual(['blue'])
    const [first] = only(await all(run), 'tool-result')
    expect(first).toMatchObject({
      toolCallId: 'c1',
      isError: true,
      result: expect.stringMatching(/color: (no such|Too small)/u),
    })
  })

  test('schemas: JSON Schema as it is; one that says none needs `parameters`; names are needed, once', () => {
    const parameters = { type: 'object', properties: { q: { type: 'string' } } }
    expect(defineTool('Finds', parameters, () => 1)).toMatchObject({ description: 'Finds', parameters })
    const small = mini.object({ q: mini.string() })
    expect(() => defineTool('Finds', small, () => 1)).toThrow(
      /The schema of "zod" does not say its JSON Schema. Pass it as `parameters`/u,
    )
    expect(defineTool('Finds', small, ({ q }) => q.length, { parameters }).parameters).toBe(parameters)
    const client = new MillraceClient({ url: 'http://127.0.0.1:9' })
    const run = (tools: object[]) => () => client.run({ agent: 'a', tools: tools as [] })
    expect(run([defineTool('Finds', parameters, () => 1)])).toThrow('tools[0] has no name. Give each tool a name')
    expect(run([{ name: 'a' }, { name: 'a' }])).toThrow('Two tools are called "a".')
  })

  const pays = (id = 'c1') => [toolCall(id, 'pay', { euros: 5 }), finish('tool-calls')] as const
  const amount = z.object({ euros: z.number() })

  test('confirm: the call waits on the server, is open for whoever asks, and runs once approved', async () => {
    const m = createScriptedModel([[...pays()], [text('Paid.'), finish()]])
    const { client } = await start({ scripts: { m } })
    const paid: number[] = []
    const pay = defineTool('Pays', amount, ({ euros }) => paid.push(euros), { confirm: true })
    const run = client.run({ agent: 'a', messages: 'Hi', tools: { pay } })
    const { outcome, requests } = await run.result
    expect([outcome, requests]).toEqual([
      'suspended',
      [expect.objectContaining({ kind: 'approval', toolName: 'pay', input: { euros: 5 } })],
    ])
    expect(paid).toEqual([])
    await run.answer(requests![0]!.requestId, { approved: true })
    expect(await run.text).toBe('Paid.')
    expect(paid).toEqual([5])
  })

  test('onConfirm: asked with the question, and its answer counts; denied, the tool does not run and the model is told', async () => {
    const m = createScriptedModel([[...pays()], [...pays('c2')], [...pays('c3')], [text('Done.'), finish()]])
    const { client } = await start({ scripts: { m } })
    const paid: unknown[] = []
    const asked: Confirmation[] = []
    const answers = [{ approved: false, reason: 'too much' }, { approved: true, input: { euros: 1 } }, true]
    const run = client.run({
      agent: 'a',
      messages: 'Hi',
      tools: { pay: defineTool('Pays', amount, (input) => void paid.push(input), { confirm: 'Pay now?' }) },
      onConfirm: (confirmation) => (asked.push(confirmation), answers[asked.length - 1]!),
    })
    expect(await run.text).toBe('Done.')
    expect(asked.map(({ message, request }) => [message, request.input])).toEqual(
      Array(3).fill(['Pay now?', { euros: 5 }]),
    )
    expect(paid).toEqual([{ euros: 1 }, { euros: 5 }])
    expect(JSON.stringify(m.calls[1]!.options.prompt)).toContain('too much')
  })

  test('confirm by arguments: only calls that need it are asked about; the gate stands on the server all the same', async () => {
    const big = [toolCall('c2', 'pay', { euros: 500 }), finish('tool-calls')] as const
    const m = createScriptedModel([[...pays()], [...big], [text('Done.'), finish()]])
    const { client, store } = await start({ scripts: { m } })
    const paid: number[] = []
    const confirm = ({ euros }: { euros: number }) => euros > 100 && `Pay ${euros} euros?`
    const pay = defineTool('Pays', amount, ({ euros }) => paid.push(euros), { confirm })
    const asked: (string | undefined)[] = []
    const run = client.run({
      agent: 'a',
      messages: 'Hi',
      tools: { pay },
      onConfirm: ({ message }) => (asked.push(message), true),
    })
    expect(await run.text).toBe('Done.')
    expect([asked, paid]).toEqual([['Pay 500 euros?'], [5, 500]])
    expect(only(await all(run), 'request').map(({ kind }) => kind)).toEqual(['approval', 'tool', 'approval', 'tool'])
    expect(await store.runs.list({})).toHaveLength(1)
  })

  test('onConfirm is asked about tools of the agent as well; what it throws leaves the request open', async () => {
    const m = createScriptedModel([[...pays()], [text('Done.'), finish()]])
    const agents = { a: agent('tools: [{ name: pay, approval: true }]') }
    const { client } = await start({
      scripts: { m },
      agents,
      tools: { pay: { parameters: { type: 'object' }, execute: () => 'paid' } },
    })
    const run = client.run({
      agent: 'a',
      messages: 'Hi',
      onConfirm: () => {
        throw new Error('no dialog here')
      },
    })
    const { outcome, requests } = await run.result
    expect(outcome).toBe('suspended')
    const other = client.attach(await run.id, { onConfirm: () => true })
    expect(await other.text).toBe('Done.')
    expect(requests).toHaveLength(1)
  })

  test('attach: a tool that a page left pending is run by the page that comes back, once', async () => {
    const m = createScriptedModel([
      [toolCall('c1', 'title'), finish('tool-calls')],
      [toolCall('c2', 'title'), finish('tool-calls')],
      [text('Home.'), finish()],
    ])
    const { client, store } = await start({ scripts: { m } })
    const left = client.run({ agent: 'a', messages: 'Hi', tools: [{ name: 'title' }] })
    const id = await left.id
    await until(store, id, ({ type }) => type === 'suspend')
    await left.answer((await left.result).requests![0]!.requestId, { output: 'First' })
    await until(store, id, (entry) => entry.type === 'request' && entry.toolCallId === 'c2')
    const calls: string[] = []
    const title = { execute: (_: unknown, { toolCallId }: { toolCallId: string }) => (calls.push(toolCallId), 'Home') }
    const back = client.attach(id, { tools: { title } })
    expect(await back.text).toBe('Home.')
    expect([calls, await back.threadId]).toEqual([['c2'], await left.threadId])
    await expect(client.attach('run_none').id).rejects.toMatchObject({ code: 'unknown-run' })
  })
})
