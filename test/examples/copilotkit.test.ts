/** CopilotKit's core without a page, with the agent class of the example, over a real server. */
import { afterEach, describe, expect, test, vi } from 'vitest'
import { z } from 'zod'
import { createScriptedModel, finish, latch, text, throws, toolCall } from '../../src/models/testing/scripted-model.ts'
import { createCopilot, linesOf } from '../support/copilotkit.ts'
import { agent, entriesOf, only } from '../support/engine.ts'
import { startServer, type TestServer } from '../support/server.ts'

let server: TestServer
afterEach(() => server.close())

const row = async () => (await server.store.runs.list({ threadId: 't' }))[0]

const words = (...pieces: (string | ReturnType<typeof latch>)[]) => [
  { type: 'text-start' as const, id: 't' },
  ...pieces.map((piece) =>
    typeof piece === 'string' ? { type: 'text-delta' as const, id: 't', delta: piece } : piece,
  ),
  { type: 'text-end' as const, id: 't' },
]

/** A tool of the page that waits for the test. */
function picker(answer: () => unknown = () => 'red') {
  const calls: unknown[] = []
  const tool = {
    name: 'pick',
    description: 'Asks the user',
    parameters: z.object({ of: z.string() }),
    handler: async (input: unknown) => {
      calls.push(input)
      return await answer()
    },
  }
  return { tool, calls }
}

function payer() {
  let paid = 0
  const pay = { parameters: z.looseObject({}), execute: () => `paid ${++paid}` }
  return { tools: { pay }, paid: () => paid }
}

const clients = ['ag-ui-client-old', '@ag-ui/client'] as const

describe.each(clients)('CopilotKit’s core on %s', (client) => {
  test('text is there before the model has finished; the next turn knows what was said', async () => {
    const gate = latch()
    const model = createScriptedModel([
      [...words('Hel', gate, 'lo 👋'), finish()],
      [text('Again.'), finish()],
    ])
    server = await startServer({ agents: { a: agent() }, scripts: { m: model } })
    const page = await createCopilot(server.url, { client })
    const said = page.say('Hi')
    await expect.poll(() => linesOf(page.agent)).toEqual(['user: Hi', 'assistant: Hel'])
    gate.open()
    await said
    await page.say('And again?')
    expect(linesOf(page.agent)).toEqual(['user: Hi', 'assistant: Hello 👋', 'user: And again?', 'assistant: Again.'])
    expect(model.calls[1]!.options.prompt.map(({ role }) => role)).toEqual(['user', 'assistant', 'user'])
    expect(page.errors).toEqual([])
  })

  test('a tool of the page: the run is suspended while it works, then goes on; three rounds', async () => {
    const model = createScriptedModel(
      [1, 2, 3].flatMap((i) => [
        [text('Which? '), toolCall(`c${i}`, 'pick', { of: `${i}` }), finish('tool-calls')],
        [text(`You picked ${i}.`), finish()],
      ]),
    )
    server = await startServer({ agents: { a: agent() }, scripts: { m: model } })
    const statuses: unknown[] = []
    let round = 0
    const { tool, calls } = picker(async () => {
      statuses.push((await row())?.status)
      return { picked: round }
    })
    const page = await createCopilot(server.url, { client, tools: [tool] })
    for (round = 1; round <= 3; round++) await page.say(`Round ${round}`)
    expect(page.errors).toEqual([])
    expect(calls).toEqual([{ of: '1' }, { of: '2' }, { of: '3' }])
    expect(statuses).toEqual(['suspended', 'suspended', 'suspended'])
    expect(linesOf(page.agent)).toEqual(
      [1, 2, 3].flatMap((i) => [
        `user: Round ${i}`,
        `assistant: Which? [pick {"of":"${i}"}]`,
        `tool: {"picked":${i}}`,
        `assistant: You picked ${i}.`,
      ]),
    )
    expect(await server.store.runs.list({ threadId: 't' })).toHaveLength(3)
    expect(model.calls[0]!.options.tools).toMatchObject([{ name: 'pick' }])
    const roles = ['user', 'assistant', 'tool', 'assistant']
    const told = model.calls.at(-1)!.options.prompt.map(({ role }) => role)
    expect(told).toEqual([...roles, ...roles, ...roles.slice(0, 3)])
    // A request of its own each time, and the events of one run in each.
    expect(new Set(page.sent.map(({ runId }) => runId)).size).toBe(6)
    expect(page.events.filter((type) => type === 'RUN_STARTED' || type === 'RUN_FINISHED')).toEqual(
      Array.from({ length: 6 }).flatMap(() => ['RUN_STARTED', 'RUN_FINISHED']),
    )
  })

  test('two calls at once: both tools run, one request answers both', async () => {
    const calls = [toolCall('c1', 'pick', { of: 'a' }), toolCall('c2', 'pick', { of: 'b' })]
    const model = createScriptedModel([
      [...calls, finish('tool-calls')],
      [text('Both.'), finish()],
    ])
    server = await startServer({ agents: { a: agent() }, scripts: { m: model } })
    const { tool, calls: asked } = picker()
    const page = await createCopilot(server.url, { client, tools: [tool] })
    await page.say('Go')
    expect([asked, page.sent.length, page.errors]).toEqual([[{ of: 'a' }, { of: 'b' }], 2, []])
    expect(linesOf(page.agent)).toEqual([
      'user: Go',
      'assistant: [pick {"of":"a"}] [pick {"of":"b"}]',
      'tool: red',
      'tool: red',
      'assistant: Both.',
    ])
  })

  test.each([
    ['as its docs show for code without React', false],
    ['as useInterrupt does: a tool message beside it, and the run id again', true],
  ])('an approval is answered %s', async (_how, asReact) => {
    const { tools, paid } = payer()
    const gate = latch()
    const model = createScriptedModel([
      [text('I pay. '), toolCall('c1', 'pay', { to: 'Ada' }), finish('tool-calls')],
      [...words('Pa', gate, 'id.'), finish()],
      [text('Bye.'), finish()],
    ])
    const yaml = agent('tools: [{ name: pay, approval: true }]')
    server = await startServer({ agents: { a: yaml }, tools, scripts: { m: model } })
    const page = await createCopilot(server.url, { client })
    await page.say('Pay Ada')
    const [interrupt] = page.agent.pendingInterrupts
    expect(interrupt).toMatchObject({ reason: 'tool_call', toolCallId: 'c1', message: expect.stringContaining('pay') })
    expect([paid(), (await row())?.status]).toEqual([0, 'suspended'])
    const payload = { approved: true }
    if (asReact) {
      const content = JSON.stringify(payload)
      page.agent.addMessage({ id: crypto.randomUUID(), role: 'tool', toolCallId: 'c1', content })
    }
    const answered = page.core.runAgent({
      agent: page.agent,
      resume: [{ interruptId: interrupt!.id, status: 'resolved', payload }],
      ...(asReact ? { runId: page.sent[0]!.runId } : undefined),
    })
    await expect.poll(() => linesOf(page.agent).at(-1)).toBe('assistant: Pa')
    // The same request again joins the run that it has continued, while it runs and afterwards.
    const again = await server.post('/ag-ui/a', page.sent.at(-1))
    gate.open()
    expect(await again.text()).toContain('id.')
    await answered
    expect(await (await server.post('/ag-ui/a', page.sent.at(-1))).text()).toContain('id.')
    expect(page.errors).toEqual([])
    expect([paid(), (await row())?.status]).toEqual([1, 'completed'])
    expect(linesOf(page.agent)).toEqual([
      'user: Pay Ada',
      'assistant: I pay. [pay {"to":"Ada"}]',
      ...(asReact ? ['tool: {"approved":true}'] : []),
      'tool: paid 1',
      'assistant: Paid.',
    ])
    await page.say('Thanks')
    expect(page.errors).toEqual([])
    // The model is told the real result, once.
    const told = JSON.stringify(model.calls[2]!.options.prompt)
    expect(told.match(/tool-result/gu)).toHaveLength(1)
    expect(told).toContain('paid 1')
  })

  test.each(['resolved', 'cancelled'] as const)('an approval is refused: %s', async (status) => {
    const { tools, paid } = payer()
    const model = createScriptedModel([
      [toolCall('c1', 'pay'), finish('tool-calls')],
      [text('Then not.'), finish()],
    ])
    const yaml = agent('tools: [{ name: pay, approval: true }]')
    server = await startServer({ agents: { a: yaml }, tools, scripts: { m: model } })
    const page = await createCopilot(server.url, { client })
    await page.say('Pay Ada')
    const [interrupt] = page.agent.pendingInterrupts
    const payload = status === 'resolved' ? { payload: { approved: false, reason: 'Too dear.' } } : {}
    await page.core.runAgent({ agent: page.agent, resume: [{ interruptId: interrupt!.id, status, ...payload }] })
    expect([paid(), page.errors]).toEqual([0, []])
    expect(linesOf(page.agent).at(-1)).toBe('assistant: Then not.')
    if (status === 'resolved') expect(JSON.stringify(model.calls[1]!.options.prompt)).toContain('Too dear.')
  })

  test('stop in the middle of text ends the run on the server; the next turn works', async () => {
    const model = createScriptedModel([
      [...words('Hel', latch(), 'lo'), finish()],
      [text('Here.'), finish()],
    ])
    server = await startServer({ agents: { a: agent() }, scripts: { m: model } })
    const page = await createCopilot(server.url, { client })
    const said = page.say('Hi')
    await expect.poll(() => linesOf(page.agent).at(-1)).toBe('assistant: Hel')
    page.core.stopAgent({ agent: page.agent })
    await said
    expect(model.calls[0]!.options.abortSignal?.aborted).toBe(true)
    expect((await row())?.status).toBe('aborted')
    expect(page.errors).toEqual([])
    expect(page.agent.isRunning).toBe(false)
    await page.say('Still there?')
    expect(linesOf(page.agent).slice(-2)).toEqual(['user: Still there?', 'assistant: Here.'])
    expect(page.errors).toEqual([])
  })

  test('a reload while text comes: the new page has the thread, and sees the rest live', async () => {
    const gate = latch()
    const model = createScriptedModel([
      [text('One.'), finish()],
      [...words('Tw', gate, 'o.'), finish()],
      [text('Three.'), finish()],
    ])
    server = await startServer({ agents: { a: agent() }, scripts: { m: model } })
    const first = await createCopilot(server.url, { client })
    await first.say('1')
    void first.say('2')
    await expect.poll(() => linesOf(first.agent).at(-1)).toBe('assistant: Tw')
    const page = await createCopilot(server.url, { client })
    const joined = page.core.connectAgent({ agent: page.agent })
    await expect.poll(() => linesOf(page.agent)).toEqual(['user: 1', 'assistant: One.', 'user: 2', 'assistant: Tw'])
    gate.open()
    await joined
    await page.say('3')
    const all = ['user: 1', 'assistant: One.', 'user: 2', 'assistant: Two.', 'user: 3', 'assistant: Three.']
    expect(linesOf(page.agent)).toEqual(all)
    expect(page.errors).toEqual([])
    const late = await createCopilot(server.url, { client })
    await late.core.connectAgent({ agent: late.agent })
    expect([linesOf(late.agent), late.errors]).toEqual([all, []])
  })

  test('a thread that does not exist yet has no messages and no errors', async () => {
    server = await startServer({ agents: { a: agent() }, scripts: {} })
    const page = await createCopilot(server.url, { client })
    await page.core.connectAgent({ agent: page.agent })
    expect([linesOf(page.agent), page.errors]).toEqual([[], []])
  })

  test('a reload while an approval is open: the new page can answer', async () => {
    const { tools, paid } = payer()
    const model = createScriptedModel([
      [toolCall('c1', 'pay'), finish('tool-calls')],
      [text('Paid.'), finish()],
    ])
    const yaml = agent('tools: [{ name: pay, approval: true }]')
    server = await startServer({ agents: { a: yaml }, tools, scripts: { m: model } })
    const first = await createCopilot(server.url, { client })
    await first.say('Pay')
    const page = await createCopilot(server.url, { client })
    await page.core.connectAgent({ agent: page.agent })
    expect(page.agent.pendingInterrupts).toEqual(first.agent.pendingInterrupts)
    const resume = page.agent.pendingInterrupts.map(({ id }) => {
      return { interruptId: id, status: 'resolved' as const, payload: { approved: true } }
    })
    await page.core.runAgent({ agent: page.agent, resume })
    expect([paid(), page.errors]).toEqual([1, []])
    expect(linesOf(page.agent)).toEqual(['user: Pay', 'assistant: [pay {}]', 'tool: paid 1', 'assistant: Paid.'])
  })

  test('a reload while a person is asked by a tool of the page: the new page asks again, and the run goes on', async () => {
    const model = createScriptedModel([
      [toolCall('c1', 'pick', { of: 'x' }), finish('tool-calls')],
      [text('Red it is.'), finish()],
    ])
    server = await startServer({ agents: { a: agent() }, scripts: { m: model } })
    const asking = latch()
    const closed = picker(() => new Promise(() => asking.open()))
    const first = await createCopilot(server.url, { client, tools: [{ ...closed.tool, type: 'human-in-the-loop' }] })
    void first.say('Go')
    await expect.poll(() => closed.calls).toEqual([{ of: 'x' }])
    const { tool, calls } = picker()
    const page = await createCopilot(server.url, { client, tools: [{ ...tool, type: 'human-in-the-loop' }] })
    await page.core.connectAgent({ agent: page.agent })
    await expect.poll(() => linesOf(page.agent).at(-1)).toBe('assistant: Red it is.')
    expect([calls, page.errors]).toEqual([[{ of: 'x' }], []])
    await expect.poll(async () => (await row())?.status).toBe('completed')
    const runs = await server.store.runs.list({ threadId: 't' })
    expect(only(await entriesOf(server.store, runs[0]!.id), 'request')).toHaveLength(1)
  })
})

test('what went wrong reaches the page in words, and the next turn works', async () => {
  const said = vi.spyOn(console, 'error').mockReturnValue()
  const model = createScriptedModel([
    [text('Hal'), throws(new Error('busy'))],
    [text('Fine.'), finish()],
  ])
  server = await startServer({ agents: { a: agent('retries: 0') }, scripts: { m: model } })
  const page = await createCopilot(server.url)
  await page.say('Hi')
  expect(page.errors).toHaveLength(1)
  await page.say('Again')
  expect(linesOf(page.agent).at(-1)).toBe('assistant: Fine.')
  said.mockRestore()
})
