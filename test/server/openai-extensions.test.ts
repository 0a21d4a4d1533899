/** What a server shows beside the protocol: to whom, exactly how, how much of it, and when not. */
import { describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { createScriptedModel, finish, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import type { HandlerOptions } from '../../src/server/handler-context.ts'
import { entriesOf, only } from '../support/engine.ts'
import { messages } from '../support/openai.ts'
import { framesOf, startServer } from '../support/server.ts'

const routed = `
workflow:
  - { id: route, type: router, config: { model: "script:r", system: "Look.", tools: [read] }, result: found }
  - { id: answer, type: llm, config: { model: "script:m", stream: true, system: "Say.", messages: "$found.messages" } }
`
const long = `${'x'.repeat(12)}😀${'y'.repeat(6)}`

/** A router that reads once, hands over, and an answer; as often as it is asked. */
const all: HandlerOptions['openai'] = { extensions: ['tools', 'trace'] }

async function start(openai = all) {
  const often = Array.from({ length: 12 })
  const router = createScriptedModel(
    often.flatMap(() => [
      [text('I look.'), toolCall('call_1', 'read', { page: 7 }), finish('tool-calls')],
      [toolCall('call_2', 'respond', { reason: 'known' }), finish('tool-calls')],
    ]),
  )
  const answers = createScriptedModel(often.map(() => [text('It says x.'), finish()]))
  const read = { description: 'Reads.', parameters: z.object({ page: z.number() }), execute: () => long }
  const server = await startServer(
    { agents: { a: routed }, scripts: { r: router, m: answers }, tools: { read } },
    { openai },
  )
  onTestFinished(() => server.close())
  const ask = (path: string, more: object = {}, headers: Record<string, string> = {}) =>
    server.post(path, { model: 'a', messages, stream: true, ...more }, { headers })
  return { ...server, ask }
}

const [strict, open] = ['/v1/chat/completions', '/api/v1/chat/completions']

interface Frame {
  choices: { delta: object; finish_reason: string | null }[]
  [key: string]: unknown
}
/** What each frame says: its delta, its trace, or why it ends. */
function saidIn(body: string, traceKey = 'bernard'): unknown[] {
  return framesOf(body).map((frame) => {
    if (frame === 'done') return frame
    const { choices, [traceKey]: trace } = frame as unknown as Frame
    if (trace !== undefined) return trace
    return choices[0]?.finish_reason ?? choices[0]?.delta ?? 'usage'
  })
}

const role = { role: 'assistant', content: '' }
const plain = [role, { content: 'It says x.' }, 'stop', 'done']
const call = { index: 0, id: 'call_1', type: 'function', function: { name: 'read', arguments: '{"page":7}' } }
const shown = [{ tool_calls: [call] }, { tool_outputs: [{ id: 'call_1', content: long }] }]
const { index: _, ...whole } = call
const reading = { role: 'assistant', content: 'I look.', tool_calls: [whole] }
const result = { role: 'tool', tool_call_id: 'call_1', content: long }
const prompt = (stage: string, name: string, told: object[]) => {
  return { type: 'llm_prompt', stage, model: `script:${name}`, messages: told }
}
const traces = [
  prompt('router', 'r', [{ role: 'system', content: 'Look.' }, ...messages]),
  prompt('router', 'r', [{ role: 'system', content: 'Look.' }, ...messages, reading, result]),
  prompt('response', 'm', [{ role: 'system', content: 'Say.' }, ...messages, reading, result]),
]

describe('OpenAI: extensions', () => {
  test('by header or body, one or both, and under /api/v1 without being asked: exactly these frames', async () => {
    const { ask } = await start()
    const both = [role, traces[0], ...shown, traces[1], traces[2], ...plain.slice(1)]
    const header = (value: string) => ({ 'x-millrace-extensions': value })
    for (const [args, expected] of [
      [[strict], plain],
      [[strict, {}, header('tools, trace')], both],
      [[strict, { extensions: ['trace', 'tools'] }], both],
      [
        [strict, {}, header('tools')],
        [role, ...shown, ...plain.slice(1)],
      ],
      [
        [strict, { extensions: ['trace'] }],
        [role, ...traces, ...plain.slice(1)],
      ],
      [[open], both],
      [[open, { extensions: [] }], plain],
      [[open, {}, header('')], plain],
      [
        [open, { extensions: ['tools'] }, header('trace')],
        [role, ...shown, ...plain.slice(1)],
      ],
    ] as [Parameters<typeof ask>, unknown[]][]) {
      expect(saidIn(await (await ask(...args)).text())).toEqual(expected)
    }
  })

  test('a trace frame has no choices, stands under the key of the server, and before its model’s words', async () => {
    const { ask } = await start({ ...all, traceKey: 'told' })
    const body = await (await ask(strict, { extensions: ['trace'], stream_options: { include_usage: true } })).text()
    expect(saidIn(body, 'told').filter((each) => (each as { type?: string }).type === 'llm_prompt')).toEqual(traces)
    for (const frame of framesOf(body)) {
      if (frame !== 'done' && 'told' in frame)
        expect(frame).toMatchObject({ object: 'chat.completion.chunk', choices: [], usage: null })
    }
    expect(body).not.toContain('bernard')
  })

  test('one JSON: the calls, their outputs and the traces; without being asked none of them', async () => {
    const { ask } = await start()
    const read = async (path: string, more: object = {}) =>
      (await (await ask(path, { stream: false, ...more })).json()) as {
        choices: { message: object }[]
        bernard?: unknown
      }
    const full = await read(open)
    expect(full.choices[0]!.message).toEqual({
      role: 'assistant',
      content: 'It says x.',
      refusal: null,
      tool_calls: [whole],
      tool_outputs: [{ id: 'call_1', content: long }],
    })
    expect(full.bernard).toEqual(traces)
    const bare = await read(strict)
    expect(bare.choices[0]!.message).toEqual({ role: 'assistant', content: 'It says x.', refusal: null })
    expect(Object.keys(bare).toSorted()).toEqual(['choices', 'created', 'id', 'model', 'object', 'usage'])
  })

  test('a trace holds the system prompts: under /v1 it is refused unless the config allows it, in every way to ask', async () => {
    const { ask } = await start({})
    for (const [more, headers, param] of [
      [{ extensions: ['trace'] }, {}, 'extensions'],
      [{ extensions: ['tools', 'trace'], stream: false }, {}, 'extensions'],
      [{}, { 'x-millrace-extensions': 'tools, trace' }, 'X-Millrace-Extensions'],
    ] as const) {
      const response = await ask(strict, more, headers)
      const body = await response.text()
      expect(response.status).toBe(400)
      expect(JSON.parse(body)).toMatchObject({
        error: { param, message: expect.stringContaining('server.openai.ext') },
      })
      expect(body).not.toMatch(/Look\.|Say\./u)
    }
    const text = await ask('/v1/completions', { messages: undefined, prompt: 'Hi', extensions: ['trace'] })
    expect(text.status).toBe(400)
    expect(saidIn(await (await ask(strict, { extensions: ['tools'] })).text())).toEqual([
      role,
      ...shown,
      ...plain.slice(1),
    ])
    expect(saidIn(await (await ask(open)).text())).toEqual([
      role,
      traces[0],
      ...shown,
      ...traces.slice(1),
      ...plain.slice(1),
    ])
  })

  test('what the server forbids is shown nowhere, and asked for it is 400', async () => {
    const { ask } = await start({ extensions: [] })
    expect(saidIn(await (await ask(open)).text())).toEqual(plain)
    for (const [more, headers, param] of [
      [{ extensions: ['tools'] }, {}, 'extensions'],
      [{}, { 'x-millrace-extensions': 'trace' }, 'X-Millrace-Extensions'],
    ] as const) {
      const response = await ask(open, more, headers)
      expect(await response.json()).toMatchObject({
        error: { param, message: expect.stringContaining('does not allow') },
      })
    }
    const some = await start({ extensions: ['tools'] })
    expect(saidIn(await (await some.ask(open)).text())).toEqual([role, ...shown, ...plain.slice(1)])
  })

  test('the output of a tool is cut behind the limit, in outputs and traces; the record keeps it whole', async () => {
    // At 13 the emoji would be cut in half.
    for (const [limit, content] of [
      [12, `${'x'.repeat(12)}… [truncated: 12 of 20 characters]`],
      [13, `${'x'.repeat(12)}… [truncated: 12 of 20 characters]`],
      [14, `${'x'.repeat(12)}😀… [truncated: 14 of 20 characters]`],
      [19, `${'x'.repeat(12)}😀yyyyy… [truncated: 19 of 20 characters]`],
      [20, long],
    ] as const) {
      const { ask, store } = await start({ ...all, streamToolOutputMaxChars: limit })
      const response = await ask(open)
      const said = saidIn(await response.text())
      expect(said).toContainEqual({ tool_outputs: [{ id: 'call_1', content }] })
      expect(said).toContainEqual(
        prompt('response', 'm', [{ role: 'system', content: 'Say.' }, ...messages, reading, { ...result, content }]),
      )
      const entries = await entriesOf(store, response.headers.get('x-millrace-run-id')!)
      expect(only(entries, 'tool-result').map((entry) => entry.result)).toContain(long)
    }
  })

  test('the respond of a router is in the record, and in no frame', async () => {
    const { ask, store } = await start()
    const response = await ask(open)
    expect(await response.text()).not.toMatch(/respond|known|Handed/u)
    const entries = await entriesOf(store, response.headers.get('x-millrace-run-id')!)
    expect(only(entries, 'tool-call').map(({ toolName }) => toolName)).toEqual(['read', 'respond'])
  })
})
