/** Turns that a client names by ids of calls, or by what a run said that waited: an operator sees those of others, and goes on with its own alone. */
import { z } from 'zod'
import { expect, onTestFinished, test } from 'vitest'
import { createScriptedModel, finish, text, toolCall } from '../../src/models/scripted.ts'
import { agent } from '../support/engine.ts'
import { callers, createTestAccess, headersFor } from '../support/callers.ts'
import { startServer } from '../support/server.ts'

const parameters = { type: 'object', properties: { disk: { type: 'string' } } }
const tools = [{ type: 'function', function: { name: 'pick', description: 'Picks', parameters } }]

interface Completion {
  choices: [{ message: { role: string; content: string | null; tool_calls?: { id: string }[] } }]
}

async function start() {
  const m = createScriptedModel((call) => {
    const asked = JSON.stringify(call.options.prompt.at(-1))
    if (asked.includes('pick it')) return [toolCall('pick', { disk: 'a' }), finish('tool-calls')]
    if (asked.includes('wipe it')) return [text('I ask.'), toolCall('wipe', {}), finish('tool-calls')]
    return [text('Hello.'), finish()]
  })
  const wipe = { description: 'Wipes', parameters: z.looseObject({}), approval: true, execute: () => 'done' }
  const agents = { a: agent('tools: [wipe]') }
  const server = await startServer({ agents, scripts: { m }, tools: { wipe } }, { access: createTestAccess() })
  onTestFinished(() => server.close())
  return async (caller: keyof typeof callers, messages: object[]) => {
    const response = await server.post(
      '/v1/chat/completions',
      { model: 'a', tools, messages },
      { headers: headersFor(caller) },
    )
    const run = (await server.store.runs.get(response.headers.get('x-millrace-run-id')!))!
    const { choices } = (await response.json()) as Completion
    return { message: choices[0].message, run, row: async () => (await server.store.runs.get(run.id))! }
  }
}

test('the result of a call of somebody else starts a conversation of its own', async () => {
  const say = await start()
  const asked = { role: 'user', content: 'pick it' }
  const { message, run } = await say('alice', [asked])
  const messages = [asked, message, { role: 'tool', tool_call_id: message.tool_calls![0]!.id, content: 'b' }]
  expect((await say('alice', messages)).run.threadId).toBe(run.threadId)
  expect((await say('operator', messages)).run.threadId).not.toContain('alice')
})

test('what a waiting run of somebody else said does not stop it', async () => {
  const say = await start()
  const asked = { role: 'user', content: 'wipe it' }
  const { message, row } = await say('alice', [asked])
  const messages = [asked, message, { role: 'user', content: 'Hi' }]
  const { run } = await say('operator', messages)
  expect(run.threadId).not.toContain('alice')
  expect((await row()).status).toBe('suspended')
  await say('alice', messages)
  expect((await row()).status).not.toBe('suspended')
})
