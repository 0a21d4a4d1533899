/** A failing step is named once, wherever it stands, to everybody; what it said of itself is told to those who read the log. */
import { APICallError } from '@ai-sdk/provider'
import { afterEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { MillraceError, wholeMessage } from '../../src/part/error.ts'
import {
  createScriptedModel,
  errorPart,
  finish,
  text,
  throws,
  toolCall,
} from '../../src/models/testing/scripted-model.ts'
import { createEngine, entriesOf, only, type Engine, type EngineOptions } from '../support/engine.ts'

let engine: Engine
afterEach(() => engine.close())

const messages = [{ role: 'user', content: 'Hi' }]
const internal = () => {
  throw new Error('no row in db.internal', { cause: new Error('connect 10.0.0.7') })
}
const steps = {
  internal,
  ours: () => Promise.reject(new MillraceError('no-stock', 'there is none left.', { status: 409, detail: 'shelf 7' })),
  odd: () => Promise.reject({ code: 'E7', message: 'odd internals', headers: { authorization: 'canary' } }),
  nothing: () => Promise.reject(undefined),
  stream: () => {
    const said = ['Once ']
    return new ReadableStream<string>({
      pull: (controller) => (said.length > 0 ? controller.enqueue(said.shift()!) : internal()),
    })
  },
  refused: () => ({ url: 'http://x', status: 503, headers: new Headers(), body: null, text: async () => 'internals' }),
  speaks: (_: unknown, { emit }: { emit(part: unknown): void }) => emit({ type: 'text-delta', id: '1', delta: 'x' }),
}
const refusal = new APICallError({
  message: 'no such model',
  url: 'http://api.example/v1?key=canary',
  requestBodyValues: { messages: ['canary'] },
  statusCode: 404,
  responseHeaders: { cookie: 'canary' },
  responseBody: '{}',
})
const llm = (id: string, model = 'm') => `{ id: ${id}, type: llm, config: { model: "script:${model}", retries: 0 } }`
const words = 'no row in db.internal; caused by: connect 10.0.0.7'

async function failed(workflow: string, options: Partial<EngineOptions> = {}) {
  engine = createEngine({
    agents: {
      a: `workflow: [${workflow}]`,
      child: 'workflow: [{ id: inner, type: internal }]',
      talks: `workflow: [${llm('say')}]`,
    },
    steps,
    scripts: {
      m: createScriptedModel([[throws(refusal)]]),
      late: createScriptedModel([
        [text('Half'), errorPart({ type: 'overloaded_error', message: 'too busy' }), finish()],
      ]),
      broken: createScriptedModel([[throws(new TypeError('x.y is undefined'))]]),
    },
    ...options,
  })
  const { id, result } = await engine.runtime.start('a', { messages, word: 'no number' })
  const { error, outcome } = await result
  expect(outcome).not.toBe('completed')
  const entries = await entriesOf(engine.store, id)
  expect(JSON.stringify(entries)).not.toContain('canary')
  expect(only(entries, 'run-end')[0]!.error).toEqual(error)
  expect(only(entries, 'error')).toHaveLength(1)
  // The step that failed and all around it say the same; what lies inside of it need not say where it is.
  for (const { step, error: told } of only(entries, 'step-finish')) {
    if (told !== undefined && error!.step!.startsWith(step)) expect(told).toEqual(error)
  }
  return { ...error!, entries, id }
}

describe('every failure of a step names the step and its type, once', () => {
  test.each<[string, string, string, string?]>([
    ['Step "answer" (llm): script:m refused the request (404): no such model', 'main/answer', llm('answer')],
    ['Step "answer" (llm): script:late is not available (503): too busy', 'main/answer', llm('answer', 'late')],
    [
      'Step "answer" (llm): script:broken failed.',
      'main/answer',
      llm('answer', 'broken'),
      'TypeError: x.y is undefined',
    ],
    ['Step "answer" (llm) failed.', 'main/answer', llm('answer', 'none'), 'no script none'],
    ['Step "answer" (llm): ', 'main/answer', '{ id: answer, type: llm, config: { model: "$input.word" } }'],
    ['Step "look" (internal) failed.', 'main/look', '{ id: look, type: internal }', words],
    ['Step "look" (ours): there is none left.', 'main/look', '{ id: look, type: ours }', 'shelf 7'],
    ['Step "look" (odd) failed.', 'main/look', '{ id: look, type: odd }', 'odd internals'],
    ['Step "look" (nothing) failed.', 'main/look', '{ id: look, type: nothing }', 'undefined'],
    ['Step "look" (stream) failed.', 'main/look', '{ id: look, type: stream }', words],
    ['Step "look" (refused): its Response has status 503.', 'main/look', '{ id: look, type: refused }'],
    ['Step "look" (speaks): it emitted "text-delta".', 'main/look', '{ id: look, type: speaks }'],
    [
      'Step "out" (output-generator): The text contains no valid JSON (Unexpected token \'o\').',
      'main/out',
      '{ id: out, type: output-generator, config: { json: "$input.word" } }',
      'no number',
    ],
    [
      'Step "out" (output-generator): ',
      'main/out',
      '{ id: out, type: output-generator, config: { template: "$input.none.at" } }',
    ],
    [
      'Step "ask" (mcp-tool): The MCP server "gone" cannot be reached: its command was not found.',
      'main/ask',
      '{ id: ask, type: mcp-tool, config: { server: gone, tool: x } }',
      'ENOENT',
    ],
    [
      'Step "call/inner" (internal) failed.',
      'main/call/inner',
      '{ id: call, type: call-agent, config: { agent: child } }',
      words,
    ],
    [
      'Step "call/say" (llm): script:m refused',
      'main/call/say',
      '{ id: call, type: call-agent, config: { agent: talks } }',
    ],
    [
      'Step "look" (internal) failed.',
      'main/all/one/look',
      '{ id: all, type: parallel, config: { branches: { one: [{ id: look, type: internal }], two: [{ id: fine, type: output-generator, config: { template: 1 } }] } } }',
      words,
    ],
    [
      'Step "call/inner" (internal) failed.',
      'main/if/then/each/0/call/inner',
      '{ id: if, type: condition, config: { if: "1 == 1", then: [{ id: each, type: loop, config: { over: [1], steps: [{ id: call, type: call-agent, config: { agent: child } }] } }] } }',
      words,
    ],
    ['Step "look" (slow) took longer than 20 ms.', 'main/look', '{ id: look, type: slow, timeouts: { step: 20ms } }'],
  ])('%s', async (message, step, workflow, detail) => {
    const told = await failed(workflow, {
      mcpServers: { gone: { command: 'no-such-command' } },
      steps: { ...steps, slow: () => new Promise(() => undefined) },
    })
    expect(told.step).toBe(step)
    expect(told.message.slice(0, message.length)).toBe(message)
    expect(told.message.match(/Step "/gu)).toHaveLength(1)
    expect(told.detail).toBe(detail)
  })

  test('an MCP tool that says it failed is quoted, as a provider is', async () => {
    const { message, detail } = await failed('{ id: ask, type: mcp-tool, config: { server: lines, tool: x } }', {
      mcpServers: { lines: { command: process.execPath, args: ['-e', failingServer] } },
    })
    expect(message).toBe('Step "ask" (mcp-tool): The disk is full.')
    expect(detail).toBeUndefined()
  })

  test('what stderr of an MCP server said is for the log', async () => {
    const { message, detail } = await failed('{ id: ask, type: mcp-tool, config: { server: x, tool: x } }', {
      mcpServers: {
        x: { command: process.execPath, args: ['-e', 'console.error("config at 10.0.0.7"); process.exit(2)'] },
      },
    })
    expect(message).toMatch(/^Step "ask" \(mcp-tool\): The MCP server "x" cannot be reached: it exited with code 2\.$/u)
    expect(detail).toBe('its stderr: config at 10.0.0.7')
  })

  test('onError is told the same, with what was thrown as its cause', async () => {
    const events: { error: MillraceError }[] = []
    const { message, step } = await failed(llm('answer').replace('retries: 0', 'retries: 0, onError: told'), {
      callbacks: { told: (event) => void events.push(event) },
    })
    expect(events).toHaveLength(1)
    expect(events[0]!.error).toMatchObject({ code: 'model-refused', message, step, cause: refusal })
  })

  test('the run’s own limit names the run, not the step that it met', async () => {
    engine = createEngine({
      agents: { a: 'timeouts: { run: 30ms }\nworkflow: [{ id: look, type: slow }]' },
      steps: { slow: () => new Promise(() => undefined) },
    })
    const { error } = await (await engine.runtime.start('a', { messages })).result
    expect(error).toEqual({ code: 'timed-out', message: 'The run took longer than 30 ms.' })
  })

  test('a recording of a failure fails as what it is now', async () => {
    const { id } = await failed(llm('answer'))
    const other = createEngine({
      agents: { b: `workflow: [{ id: again, type: llm, config: { model: "recording:${id}", retries: 0 } }]` },
      wrapStore: (store) => ({
        ...store,
        log: { ...store.log, read: (run, ...rest) => (run === id ? engine.store : store).log.read(run, ...rest) },
      }),
    })
    const { error } = await (await other.runtime.start('b', { messages })).result
    await other.close()
    expect(error?.message).toBe('Step "again" (llm): script:m refused the request (404): no such model')
  })
})

test('a tool’s own error goes to the model as its result, and nothing of it into the run’s', async () => {
  const model = createScriptedModel([
    [toolCall('c', 'breaks', {}), finish('tool-calls')],
    [text('Sorry.'), finish()],
  ])
  engine = createEngine({
    agents: { a: 'workflow: [{ id: answer, type: llm, config: { model: "script:m", tools: [breaks] } }]' },
    scripts: { m: model },
    tools: { breaks: { parameters: z.object({}), execute: () => Promise.reject(new Error('no such file')) } },
  })
  const run = await engine.runtime.start('a', { messages })
  expect(await run.result).toMatchObject({ outcome: 'completed' })
  expect(only(await entriesOf(engine.store, run.id), 'tool-result')).toMatchObject([
    { result: 'no such file', isError: true },
  ])
})

test('a callback’s own error stands whole in its warning', async () => {
  engine = createEngine({
    agents: { a: 'workflow: [{ id: answer, type: llm, config: { model: "script:m", onFinish: keep } }]' },
    scripts: { m: createScriptedModel([[text('Hi'), finish()]]) },
    callbacks: { keep: internal },
  })
  const run = await engine.runtime.start('a', { messages })
  await run.result
  expect(only(await entriesOf(engine.store, run.id), 'warning')).toMatchObject([
    { message: `Callback keep threw: ${words}` },
  ])
})

test('whoever reads the log reads all of it in one line', async () => {
  const told = await failed('{ id: look, type: internal }')
  expect(wholeMessage(told)).toBe(`Step "look" (internal) failed: ${words}`)
})

const failingServer = `
const say = (id, result) => console.log(JSON.stringify({ jsonrpc: '2.0', id, result }))
require('readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method } = JSON.parse(line)
  if (method === 'initialize') say(id, { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'x', version: '1' } })
  else if (method === 'tools/list') say(id, { tools: [{ name: 'x', inputSchema: { type: 'object' } }] })
  else if (method === 'tools/call') say(id, { content: [{ type: 'text', text: 'The disk is full.' }], isError: true })
  else if (id !== undefined) console.log(JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32601, message: 'Method not found' } }))
})`
