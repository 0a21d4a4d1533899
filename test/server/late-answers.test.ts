/** An answer that comes when the run has completed, since another client was faster: it joins the run, and no tool runs again. */
import { afterEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { finish, text, toolCall, type ScriptStep } from '../../src/models/testing/scripted-model.ts'
import { agent, only, entriesOf } from '../support/engine.ts'
import { createTold, resultsIn, type Told } from '../support/going-on.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { runInput } from '../support/socket.ts'

let server: TestServer
let bought: unknown[]
afterEach(() => server.close())

const script = (prompt: Told['prompts'][number]): ScriptStep[] => {
  const results = resultsIn(prompt)
  if (results.size === 0)
    return [toolCall('c1', JSON.stringify(prompt).includes('choose') ? 'choose' : 'pay'), finish('tool-calls')]
  return results.has('c1') && results.size === 1 && JSON.stringify(prompt).includes('choose')
    ? [toolCall('c2', 'buy'), finish('tool-calls')]
    : [text('Bought.'), finish()]
}
const user = (content: string) => ({ id: 'u', role: 'user', content })

/** Asks over `useChat`'s protocol, and answers over REST: the run completes. */
async function answered(question: string, answer: object) {
  bought = []
  const buy = { parameters: z.object({}), execute: () => (bought.push(1), 'bought') }
  server = await startServer({
    agents: { a: agent('tools: [{ name: choose, client: true }, { name: pay, approval: true }, buy]') },
    scripts: { m: createTold(script) },
    tools: { buy, pay: buy },
  })
  await (await server.post('/api/chat', { agentId: 'a', id: 't', messages: [user(question)] })).text()
  const [run] = await server.store.runs.list()
  const [request] = only(await entriesOf(server.store, run!.id), 'request')
  await server.post(`/api/runs/${run!.id}/requests/${request!.requestId}`, answer)
  await expect.poll(async () => (await server.store.runs.get(run!.id))!.status).toBe('completed')
  return { run: run!.id, requestId: request!.requestId }
}

function chat(question: string, run: string, part: object) {
  const parts = [{ type: 'step-start' }, { toolCallId: 'c1', input: {}, ...part }]
  const messages = [
    { id: 'u', role: 'user', parts: [{ type: 'text', text: question }] },
    { id: run, role: 'assistant', parts },
  ]
  return server.post('/api/chat', { agentId: 'a', id: 't', messages })
}

const agUi = (more: object) => server.post('/ag-ui/a', runInput({ threadId: 't', runId: crypto.randomUUID(), ...more }))

async function same(response: Response, run: string) {
  expect([response.status, response.headers.get('x-millrace-run-id')]).toEqual([200, run])
  expect(await response.text()).toContain('Bought.')
  expect([bought.length, (await server.store.runs.list()).length]).toEqual([1, 1])
}

async function refused(response: Response) {
  expect([response.status, await response.text()]).toEqual([409, expect.stringContaining('answer-conflict')])
  expect([bought.length, (await server.store.runs.list()).length]).toEqual([1, 1])
}

describe('the result of a client’s tool', () => {
  const result = (output: string) => ({ type: 'tool-choose', state: 'output-available', output })
  const asToolMessage = (content: string) => ({
    messages: [
      user('choose'),
      {
        id: 'x',
        role: 'assistant',
        toolCalls: [{ id: 'c1', type: 'function', function: { name: 'choose', arguments: '{}' } }],
      },
      { id: 'y', role: 'tool', toolCallId: 'c1', content },
    ],
  })

  test('the same over useChat and AG-UI reads the rest of the run; another one is refused', async () => {
    const { run } = await answered('choose', { output: 'red' })
    await same(await chat('choose', run, result('red')), run)
    await same(await agUi(asToolMessage('red')), run)
    await refused(await chat('choose', run, result('blue')))
    await refused(await agUi(asToolMessage('blue')))
  })

  test('a client that has read the answer and asks for more starts a run', async () => {
    const { run } = await answered('choose', { output: 'red' })
    const { messages } = asToolMessage('red')
    const more = { messages: [...messages, { id: run, role: 'assistant', content: 'Bought.' }] }
    expect((await agUi(more)).headers.get('x-millrace-run-id')).not.toBe(run)
  })
})

test('an approval: the same over useChat and AG-UI reads the rest; another one is refused', async () => {
  const { run, requestId } = await answered('pay', { approved: true })
  const part = (approved: boolean) => ({
    type: 'tool-pay',
    state: 'approval-responded',
    approval: { id: requestId, approved },
  })
  const resume = (approved: boolean) => ({
    messages: [user('pay')],
    resume: [{ interruptId: requestId, status: 'resolved', payload: { approved } }],
  })
  await same(await chat('pay', run, part(true)), run)
  await same(await agUi(resume(true)), run)
  await refused(await chat('pay', run, part(false)))
  await refused(await agUi(resume(false)))
})
