/** What leaves the OpenAI routes when: every wait is a latch that the test opens. */
import { afterEach, describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import {
  createScriptedModel,
  finish,
  latch,
  text,
  toolCall,
  type ScriptStep,
} from '../../src/models/testing/scripted-model.ts'
import { agent } from '../support/engine.ts'
import { messages } from '../support/openai.ts'
import { framesOf, readBody, startServer, type TestServer } from '../support/server.ts'
import { startUpstream } from '../support/upstream.ts'
import { chat, role, heldAfterOne } from './openai-timing.ts'

let server: TestServer
describe('OpenAI: timing', () => {
  afterEach(() => server.close())

  test('a model that has accepted and says nothing: status and role frame are there, and each token before the next', async () => {
    const gates = [latch(), latch()]
    const upstream = await startUpstream(async (reply) => {
      reply.accept()
      await gates[0]!.opened
      reply.say('one')
      await gates[1]!.opened
      reply.say('two')
      reply.finish()
    })
    onTestFinished(() => upstream.close())
    server = await startServer({
      agents: { a: agent().replace('script:m', 'up:m') },
      models: { endpoints: [{ name: 'up', baseURL: upstream.baseURL }] },
    })
    // What is loaded with the first call is not what is timed.
    gates.forEach((gate) => gate.open())
    await (await server.post(chat, { model: 'a', messages })).json()
    gates.splice(0, 2, latch(), latch())
    const response = await server.post(chat, { model: 'a', messages, stream: true })
    const body = readBody(response)
    await body.until(role)
    expect([response.status, body.text]).toEqual([200, expect.not.stringContaining('one')])
    gates[0]!.open()
    await body.until('"one"')
    expect(body.text).not.toContain('two')
    gates[1]!.open()
    expect(framesOf(await body.rest()).at(-1)).toBe('done')
  })

  test('the first token is there while the second is held, for Completions too', async () => {
    const gates = [latch(), latch()]
    server = await startServer({
      agents: { a: agent() },
      scripts: { m: createScriptedModel(gates.map(heldAfterOne)) },
    })
    for (const [i, [path, asked]] of [
      [chat, { messages }],
      ['/v1/completions', { prompt: 'Hi' }],
    ].entries()) {
      const body = readBody(await server.post(path as string, { model: 'a', ...(asked as object), stream: true }))
      await body.until('one')
      expect(body.text).not.toContain('two')
      gates[i]!.open()
      expect(await body.rest()).toContain('two')
    }
  })

  const looks = [toolCall('call_1', 'fast'), toolCall('call_2', 'slow'), finish('tool-calls')]
  const routed = `
workflow:
  - { id: route, type: router, config: { model: "script:r", tools: [fast, slow] }, result: found }
  - { id: answer, type: llm, config: { model: "script:m", stream: true, messages: "$found.messages" } }
`
  test.each([
    ['an agent with tools', agent('tools: [fast, slow]'), { m: [looks, [text('Done.'), finish()]] }],
    [
      'a router',
      routed,
      { r: [looks, [toolCall('call_3', 'respond', {}), finish('tool-calls')]], m: [[text('Done.'), finish()]] },
    ],
  ] as [string, string, Record<string, ScriptStep[][]>][])(
    '%s, with the extension tools: each call before it runs, a fast tool’s output before a slow tool’s end',
    async (_, yaml, scripts) => {
      const gate = latch()
      const begun = latch()
      let ended = false
      server = await startServer({
        agents: { a: yaml },
        scripts: Object.fromEntries(
          Object.entries(scripts).map(([name, script]) => [name, createScriptedModel(script)]),
        ),
        tools: {
          fast: { description: 'Fast.', parameters: z.object({}), execute: () => 'quick' },
          slow: {
            description: 'Slow.',
            parameters: z.object({}),
            async execute() {
              begun.arrive()
              await gate.opened
              ended = true
              return 'late'
            },
          },
        },
      })
      const headers = { 'x-millrace-extensions': 'tools' }
      const body = readBody(await server.post(chat, { model: 'a', messages, stream: true }, { headers }))
      await begun.reached
      await body.until('"tool_outputs":[{"id":"call_1","content":"quick"}]')
      // The status does not wait for the step that answers.
      expect(ended).toBe(false)
      expect(body.text).toContain(
        '"tool_calls":[{"index":1,"id":"call_2","type":"function","function":{"name":"slow","arguments":"{}"}}]',
      )
      expect(body.text).not.toMatch(/late|Done/u)
      gate.open()
      const all = await body.rest()
      expect(all.indexOf('"late"')).toBeLessThan(all.indexOf('Done.'))
      expect(all).not.toContain('respond')
      expect(framesOf(all).at(-1)).toBe('done')
    },
  )
})
