/** What an OpenAI request asks that is not served, or is no value: refused by the name of the parameter; hints only by a strict server. */
import { describe, expect, onTestFinished, test } from 'vitest'
import * as z from 'zod'
import { createScriptedModel, finish, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import { agent, entriesOf, only } from '../support/engine.ts'
import { messages } from '../support/openai.ts'
import { startServer } from '../support/server.ts'

const tool = (name: string, more: object = {}) => ({ type: 'function', function: { name, ...more } })

const faults: [object, string, RegExp][] = [
  [{ n: 2 }, 'n', /not supported.*send 1/u],
  [{ n: '1' }, 'n', /not supported/u],
  [{ logprobs: true }, 'logprobs', /not supported.*false/u],
  [{ top_logprobs: 3 }, 'top_logprobs', /not supported/u],
  [{ parallel_tool_calls: 'no' }, 'parallel_tool_calls', /must be true or false/u],
  [{ logit_bias: { 50256: -100 } }, 'logit_bias', /not supported/u],
  [{ modalities: ['text', 'audio'] }, 'modalities', /not supported/u],
  [{ thinking: { type: 'enabled' } }, 'thinking', /use reasoning_effort/u],
  [{ search_parameters: {} }, 'search_parameters', /not supported/u],
  [{ audio: { voice: 'alloy', format: 'mp3' } }, 'audio', /not supported/u],
  [{ service_tier: 'flex' }, 'service_tier', /not supported/u],
  [{ functions: [] }, 'functions', /Use tools/u],
  [{ pipeline: agent() }, 'pipeline', /Send it to POST \/api\/chat/u],
  [{ function_call: 'auto' }, 'function_call', /Use tool_choice/u],
  [{ web_search_options: {} }, 'web_search_options', /not supported/u],
  [{ temprature: 1 }, 'temprature', /did you mean "temperature"/u],
  [{ top_k: 5 }, 'top_k', /not a known parameter/u],
  [{ constructor: 1 }, 'constructor', /not a known parameter/u],
  [JSON.parse('{"__proto__": {"temperature": 1}}') as object, '__proto__', /not a known parameter/u],
  [{ temperature: '0.5' }, 'temperature', /must be a number from 0 to 2/u],
  [{ temperature: 2.1 }, 'temperature', /from 0 to 2/u],
  [{ top_p: -0.1 }, 'top_p', /from 0 to 1/u],
  [{ max_tokens: -1 }, 'max_tokens', /whole number from 1/u],
  [{ max_completion_tokens: 1.5 }, 'max_completion_tokens', /whole number/u],
  [{ max_tokens: '10' }, 'max_tokens', /whole number/u],
  [{ seed: 1.5 }, 'seed', /whole number/u],
  [{ stop: ['a', 'b', 'c', 'd', 'e'] }, 'stop', /at most 4/u],
  [{ stop: [1] }, 'stop', /must be a string/u],
  [{ stream: 'true' }, 'stream', /true or false/u],
  [{ stream: true, stream_options: 'x' }, 'stream_options', /must be an object/u],
  [{ stream: true, stream_options: [] }, 'stream_options', /must be an object/u],
  [{ stream: true, stream_options: { include_usage: 'yes' } }, 'stream_options.include_usage', /true or false/u],
  [{ stream: true, stream_options: { includeUsage: true } }, 'stream_options.includeUsage', /did you mean/u],
  [{ stream_options: { include_usage: true } }, 'stream_options', /stream: true/u],
  [{ tools: {} }, 'tools', /must be an array/u],
  [{ tools: Array.from({ length: 129 }, (_, i) => tool(`t${i}`)) }, 'tools', /at most 128/u],
  [{ tools: [null] }, 'tools[0]', /must be an object/u],
  [{ tools: [{ type: 'custom', custom: { name: 'x' } }] }, 'tools[0].type', /must be "function"/u],
  [{ tools: [tool('a b')] }, 'tools[0].function.name', /letters/u],
  [{ tools: [tool('a'), tool('a')] }, 'tools[1].function.name', /more than once/u],
  [{ tools: [tool('a', { parameters: 'x' })] }, 'tools[0].function.parameters', /must be an object/u],
  [{ tools: [tool('a', { description: 1 })] }, 'tools[0].function.description', /must be a string/u],
  [{ tools: [tool('a', { strict: 'yes' })] }, 'tools[0].function.strict', /true or false/u],
  [{ tools: [tool('a')], tool_choice: 'sometimes' }, 'tool_choice', /none, auto, required/u],
  [
    { tools: [tool('a')], tool_choice: { type: 'function', function: { name: 'b' } } },
    'tool_choice.function.name',
    /"b"/u,
  ],
  [
    { tools: [tool('a')], tool_choice: { type: 'function', function: { name: 'toString' } } },
    'tool_choice.function.name',
    /toString/u,
  ],
  [{ tool_choice: { type: 'function', function: { name: 'b' } } }, 'tool_choice.function.name', /not among the tools/u],
  [{ tool_choice: 'required' }, 'tool_choice', /there are no tools/u],
  [{ tools: [], tool_choice: 'required' }, 'tool_choice', /there are no tools/u],
  [{ response_format: 'json' }, 'response_format', /must be an object/u],
  [{ response_format: { type: 'xml' } }, 'response_format.type', /json_schema/u],
  [{ response_format: { type: 'json_schema' } }, 'response_format.json_schema', /must be an object/u],
  [
    { response_format: { type: 'json_schema', json_schema: { schema: {} } } },
    'response_format.json_schema.name',
    /name/u,
  ],
  [
    { response_format: { type: 'json_schema', json_schema: { name: 'x', schema: [] } } },
    'response_format.json_schema.schema',
    /must be an object/u,
  ],
  [{ reasoning_effort: 'extreme' }, 'reasoning_effort', /one of none/u],
  [{ user: 7 }, 'user', /must be a string/u],
  [{ metadata: [] }, 'metadata', /must be an object/u],
  [{ extensions: 'tools' }, 'extensions', /must be an array/u],
  [{ extensions: ['tols'] }, 'extensions', /did you mean "tools"/u],
  [{ model: 7 }, 'model', /name of an agent/u],
  [{ model: 'b' }, 'model', /no agent "b"/u],
]

describe('OpenAI: refused requests', () => {
  test('what is not served, or is no value, is refused by name; nothing is asked, recorded or reported', async () => {
    const model = createScriptedModel([])
    const server = await startServer({ agents: { a: agent() }, scripts: { m: model } }, { openai: { strict: true } })
    onTestFinished(() => server.close())
    async function refused(body: object, path = '/v1/chat/completions'): Promise<[number, string, string]> {
      const response = await server.post(path, { model: 'a', messages, ...body })
      const { error } = (await response.json()) as {
        error: { param: string; message: string; type: string; code: string }
      }
      expect(error).toMatchObject({ type: 'invalid_request_error', code: expect.any(String) })
      return [response.status, error.param, error.message]
    }
    for (const [body, param, cure] of faults) {
      const [status, ...told] = await refused(body)
      expect([status, told], JSON.stringify(body)).toEqual([
        'model' in body && body.model === 'b' ? 404 : 400,
        [param, expect.stringMatching(cure)],
      ])
    }
    const words = { model: 'a', prompt: 'Hi', messages: undefined }
    for (const [body, param] of [
      [{ prompt: undefined }, 'prompt'],
      [{ prompt: ['a', 'b'] }, 'prompt'],
      [{ prompt: [1, 2] }, 'prompt'],
      [{ best_of: 2 }, 'best_of'],
      [{ echo: true }, 'echo'],
      [{ suffix: 'x' }, 'suffix'],
      [{ logprobs: 5 }, 'logprobs'],
      [{ tools: [] }, 'tools'],
    ] as const) {
      expect((await refused({ ...words, ...body }, '/v1/completions')).slice(0, 2)).toEqual([400, param])
    }
    expect([model.calls, await server.store.runs.list(), server.reported]).toEqual([[], [], []])
  })

  const one = { tools: [tool('a')] }
  // What coding CLIs send: Kimi, Grok, GitHub Copilot, and others.
  test.each<[object, object, string[]]>([
    [{ thinking: { type: 'enabled', keep: 'all' } }, {}, ['thinking']],
    [{ thinking: { type: 'disabled' } }, { reasoning: 'none' }, []],
    [{ reasoning_effort: 'max' }, { reasoning: 'max' }, []],
    [{ reasoning_effort: 'extreme' }, {}, ['reasoning_effort']],
    [{ search_parameters: { mode: 'off' } }, {}, ['search_parameters']],
    [{ ...one, tool_choice: 'validated' }, { toolChoice: { type: 'auto' } }, ['tool_choice']],
    [{ ...one, tool_choice: { type: 'allowed_tools' } }, { toolChoice: { type: 'auto' } }, ['tool_choice']],
    [{ temprature: 1, verbosity: 'low' }, {}, ['temprature is not a known parameter', 'verbosity']],
    [{ logit_bias: { 50256: -100 }, service_tier: 'flex' }, {}, ['logit_bias', 'service_tier']],
    [{ stream: true, stream_options: { include_usage: true, more: 1 } }, {}, ['stream_options.more']],
    [
      { constructor: 1, ...(JSON.parse('{"__proto__": {"temperature": 1}}') as object) },
      {},
      ['constructor', '__proto__'],
    ],
  ])('a hint that is not followed is a warning in the log: %j', async (body, options, ignored) => {
    const model = createScriptedModel([[text('ok'), finish()]])
    const server = await startServer({ agents: { a: agent() }, scripts: { m: model } })
    onTestFinished(() => server.close())
    const response = await server.post('/v1/chat/completions', { model: 'a', messages, ...body })
    expect([response.status, await response.text()]).toEqual([200, expect.stringContaining('ok')])
    expect(model.calls[0]!.options).toMatchObject(options)
    expect(model.calls[0]!.options.temperature).toBeUndefined()
    const entries = await entriesOf(server.store, response.headers.get('x-millrace-run-id')!)
    expect(only(entries, 'warning').map(({ message }) => message)).toEqual(
      ignored.map((name) => expect.stringContaining(`The request's ${name}`) as string),
    )
  })

  test('a tool of the request with the name of one of the agent: the agent’s runs, and the log says so', async () => {
    const model = createScriptedModel([
      [toolCall('c1', 'a', {}), finish('tool-calls')],
      [text('ok'), finish()],
    ])
    const mine = { description: 'Mine', parameters: z.object({}), execute: () => 'mine' }
    const server = await startServer({ agents: { a: agent('tools: [a]') }, tools: { a: mine }, scripts: { m: model } })
    onTestFinished(() => server.close())
    const response = await server.post('/v1/chat/completions', { model: 'a', messages, ...one })
    expect(await response.text()).toContain('ok')
    const entries = await entriesOf(server.store, response.headers.get('x-millrace-run-id')!)
    expect(only(entries, 'warning')).toMatchObject([
      { code: 'tool-name-taken', message: expect.stringContaining('"a"') },
    ])
    expect(only(entries, 'tool-result')).toMatchObject([{ result: 'mine' }])
  })

  test('a body that is too large: the error names the key of the config', async () => {
    const server = await startServer({ agents: { a: agent() } }, { maxBodyBytes: 100 })
    onTestFinished(() => server.close())
    const response = await server.post('/v1/chat/completions', { model: 'a', messages, user: 'x'.repeat(100) })
    expect([response.status, await response.text()]).toEqual([413, expect.stringContaining('server.maxBodyBytes')])
  })
})
