/** What comes from outside is read within limits: a provider, an MCP server, a model of one's own. */
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gzipSync } from 'node:zlib'
import { afterEach, describe, expect, onTestFinished, test } from 'vitest'
import { lengthOf } from '../../src/engine/model-feed.ts'
import type { SourcePart } from '../../src/part/part.ts'
import { z } from 'zod'
import { createScriptedModel, finish, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import { builtinWires } from '../../src/wire/builtin-wires.ts'
import { agent, createEngine, entriesOf, only, type Engine, type EngineOptions } from '../support/engine.ts'

let engine: Engine
afterEach(() => engine.close())

async function listen(listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, '127.0.0.1')
  onTestFinished(() => void server.close().closeAllConnections())
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** Writes a text again and again for as long as somebody reads. */
const endless =
  (contentType: string, first: string, again: string): RequestListener =>
  (_, outgoing) => {
    outgoing.writeHead(200, { 'content-type': contentType })
    outgoing.write(first)
    const fill = () => {
      while (!outgoing.destroyed && outgoing.write(again.repeat(1000)));
    }
    outgoing.on('drain', fill)
    fill()
  }

const messages = [{ role: 'user', content: 'Hi' }]
const limits = { lineBytes: 50_000, bodyBytes: 200_000 }

async function run(options: EngineOptions) {
  engine = createEngine(options)
  const { id, result } = await engine.runtime.start('a', { messages })
  return { ...(await result), entries: await entriesOf(engine.store, id) }
}

describe.each([
  ['google', { GEMINI_API_KEY: 'k' }, 'GEMINI_BASE_URL', 'google:gemini-3'],
  ['openai', { OPENAI_API_KEY: 'k' }, 'OPENAI_BASE_URL', 'openai:gpt-5'],
  ['anthropic', { ANTHROPIC_API_KEY: 'k' }, 'ANTHROPIC_BASE_URL', 'anthropic:claude-5'],
])('%s', (_, key, variable, model) => {
  const ask = (url: string) =>
    run({
      agents: { a: agent('retries: 0').replace('script:m', model) },
      environment: { ...key, [variable]: url },
      limits,
    })

  test.each([
    ['a line without an end', endless('text/event-stream', 'data: ', 'x'), 'line-too-long'],
    ['an answer without an end', endless('text/event-stream', '', ': still here\n\n'), 'body-too-large'],
  ])('%s ends the run, not the process', async (__, listener, code) => {
    const { outcome, error } = await ask(await listen(listener))
    expect(outcome).toBe('failed')
    expect(error).toMatchObject({ code, message: expect.stringContaining(`${model} sent`) })
  })

  test('a stream that decompresses to more than the limit ends the run', async () => {
    const bomb = gzipSync(Buffer.alloc(1 << 20, ': still here\n\n'))
    const url = await listen((__, outgoing) => {
      outgoing.writeHead(200, { 'content-type': 'text/event-stream', 'content-encoding': 'gzip' }).end(bomb)
    })
    expect((await ask(url)).error).toMatchObject({ code: 'body-too-large' })
  })

  test('neither key nor prompt goes to another origin', async () => {
    let asked = 0
    const stranger = await listen((__, outgoing) => (asked++, outgoing.end()))
    const url = await listen((__, outgoing) => outgoing.writeHead(307, { location: `${stranger}/v1?k=hidden` }).end())
    const { error, entries } = await ask(url)
    expect(error).toMatchObject({ code: 'redirect-refused', detail: `from ${url} to ${stranger}` })
    expect(error!.message).not.toContain('127.0.0.1')
    expect(JSON.stringify(entries)).not.toContain('hidden')
    expect(asked).toBe(0)
  })
})

test('of an error’s body the beginning is read, and its status counts', async () => {
  const url = await listen((_, outgoing) => {
    outgoing.writeHead(400, { 'content-type': 'application/json' })
    outgoing.end(`{"error":{"message":"${'x'.repeat(1 << 20)}"}}`)
  })
  const { error } = await run({
    agents: { a: agent('retries: 0').replace('script:m', 'box:tiny') },
    models: { endpoints: [{ name: 'box', baseURL: `${url}/v1` }] },
  })
  expect(error).toMatchObject({ code: 'model-refused', status: 400 })
})

describe('the answer of one model call', () => {
  const many = () => createScriptedModel([[text(...Array<string>(50).fill('0123456789')), finish()]])

  test.each([
    ['the agent says', 'limits: { answerChars: 200 }', undefined],
    ['the config says', '', { answerChars: 200 }],
    ['the agent says, whatever the config says', 'limits: { answerChars: 200 }', { answerChars: 10_000 }],
  ])('is as long as %s', async (_, rest, config) => {
    const model = many()
    const {
      outcome,
      error,
      text: said,
    } = await run({
      agents: { a: agent('retries: 2', rest) },
      scripts: { m: model },
      ...(config === undefined ? undefined : { limits: config }),
    })
    expect(outcome).toBe('failed')
    expect(error).toMatchObject({ code: 'answer-too-long', message: expect.stringContaining('limits.answerChars') })
    expect(said.length).toBeGreaterThan(100)
    expect(said.length).toBeLessThanOrEqual(200)
    expect(model.calls).toHaveLength(1)
    expect(model.calls[0]!.cancelled || model.calls[0]!.aborted).toBe(true)
  })

  test('is complete up to the last character of the limit', async () => {
    let length = 0
    const { stream } = await many().doStream({ prompt: [] })
    for await (const part of stream as AsyncIterable<SourcePart>)
      length += 'delta' in part ? part.delta.length : lengthOf(part, new Set())
    const within = (chars: number) =>
      run({ agents: { a: agent('', `limits: { answerChars: ${chars} }`) }, scripts: { m: many() } })
    expect((await within(length)).outcome).toBe('completed')
    await engine.close()
    expect((await within(length - 1)).error).toMatchObject({ code: 'answer-too-long' })
  })

  test('counts arguments of tools once', async () => {
    const args = { expression: `${'1+'.repeat(40)}1` }
    const script = () =>
      createScriptedModel([
        [toolCall('c', 'calculator', args), finish('tool-calls')],
        [text('41'), finish()],
      ])
    const tools = 'tools: [calculator]'
    const within = await run({ agents: { a: agent(tools, 'limits: { answerChars: 180 }') }, scripts: { m: script() } })
    expect(within.outcome).toBe('completed')
    await engine.close()
    const beyond = await run({ agents: { a: agent(tools, 'limits: { answerChars: 60 }') }, scripts: { m: script() } })
    expect(beyond.error).toMatchObject({ code: 'answer-too-long' })
  })

  test('of a called agent is as long as that agent says, or else its caller', async () => {
    const caller = (rest: string) => `
workflow:
  - { id: call, type: call-agent, config: { agent: b } }
${rest}`
    for (const [rest, own] of [
      ['limits: { answerChars: 200 }', ''],
      ['', 'limits: { answerChars: 200 }'],
    ] as const) {
      const { error } = await run({ agents: { a: caller(rest), b: agent('', own) }, scripts: { m: many() } })
      expect(error).toMatchObject({ code: 'answer-too-long' })
      await engine.close()
    }
  })
})

describe('the tool calls of one model answer', () => {
  /** Half of them with arguments that are written before. */
  const calling = (n: number, work: () => unknown) => {
    const calls = Array.from({ length: n }, (_, i) => {
      const written = toolCall(`c${i}`, 'work', {})
      return i % 2 === 0 ? written : written.slice(-1)
    })
    return {
      scripts: {
        m: createScriptedModel([
          [...calls.flat(), finish('tool-calls')],
          [text('done'), finish()],
        ]),
      },
      tools: { work: { parameters: z.looseObject({}), execute: work } },
    }
  }
  const tools = 'tools: [work]\nretries: 2'

  test.each([
    ['the agent says', 5, { a: agent(tools, 'limits: { toolCalls: 5 }') }, undefined],
    ['the config says', 5, { a: agent(tools) }, { toolCalls: 5 }],
    ['the agent says, whatever the config says', 5, { a: agent(tools, 'limits: { toolCalls: 5 }') }, { toolCalls: 9 }],
    ['nobody says otherwise', 1000, { a: agent(tools) }, undefined],
    [
      'a called agent’s caller says',
      5,
      {
        a: 'workflow:\n  - { id: call, type: call-agent, config: { agent: b } }\nlimits: { toolCalls: 5 }',
        b: agent(tools),
      },
      undefined,
    ],
  ])(
    'are as many as %s: one more ends the run, every wire says so, and no tool runs',
    async (_, most, agents, config) => {
      let ran = 0
      const limited = { agents, ...(config && { limits: config }) }
      const within = await run({ ...limited, ...calling(most, () => ran++) })
      expect([within.outcome, within.error, ran]).toEqual(['completed', undefined, most])
      await engine.close()
      ran = 0
      const { outcome, error, entries } = await run({ ...limited, ...calling(most + 1, () => ran++) })
      const message = `The model made more than ${most} tool calls in one answer. Raise limits.toolCalls in the agent file or the config to allow it.`
      expect([outcome, ran]).toEqual(['failed', 0])
      expect(error).toMatchObject({ code: 'too-many-tool-calls', message: expect.stringContaining(message) })
      expect(only(entries, 'tool-call').length).toBe(most)
      for (const [name, wire] of builtinWires) {
        const encoder = wire.createEncoder()
        const body = entries.map((each) => encoder.encode(each)).join('')
        // Plain text has no place for it: the transfer breaks off.
        if (name === 'text') expect(encoder.state).toBe('broken')
        else expect([name, body.includes(message)]).toEqual([name, true])
      }
    },
  )
})

describe('an MCP server over HTTP', () => {
  const step = 'workflow:\n  - { id: ask, type: mcp-tool, config: { server: far, tool: any } }'
  const ask = (url: string) =>
    run({ agents: { a: step }, mcpServers: { far: { url, headers: { 'x-api-key': 'k' } } }, limits })

  test.each([
    ['a line without an end', 'text/event-stream', 'data: '],
    ['JSON without an end', 'application/json', '{"a":"'],
  ])('%s ends the step, not the process', async (_, contentType, first) => {
    const { error } = await ask(await listen(endless(contentType, first, 'x')))
    expect(error).toMatchObject({ code: 'line-too-long', message: expect.stringContaining('limits.lineBytes') })
  })

  test('what decompresses to more than the limit ends the step', async () => {
    const bomb = gzipSync(Buffer.alloc(1 << 20, ' '))
    const { error } = await ask(
      await listen((_, outgoing) => {
        outgoing.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' }).end(bomb)
      }),
    )
    expect(error).toMatchObject({ code: 'line-too-long' })
  })

  test('its headers do not go to another origin', async () => {
    let asked = 0
    const stranger = await listen((_, outgoing) => (asked++, outgoing.end()))
    const url = await listen((_, outgoing) => outgoing.writeHead(307, { location: `${stranger}/?k=hidden` }).end())
    const { error } = await ask(url)
    expect(error).toMatchObject({ code: 'redirect-refused', detail: `from ${url} to ${stranger}` })
    expect(asked).toBe(0)
  })
})
