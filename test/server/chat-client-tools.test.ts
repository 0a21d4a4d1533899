/** Client tools and approvals through `useChat`'s own class: the run suspends, the client answers, the message goes on. */
import { lastAssistantMessageIsCompleteWithApprovalResponses, lastAssistantMessageIsCompleteWithToolCalls } from 'ai'
import { afterEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { createScriptedModel, finish, latch, text, throws, toolCall } from '../../src/models/testing/scripted-model.ts'
import { createChat, lines, stored } from '../support/chat.ts'
import { agent, createEngine, entriesOf, only } from '../support/engine.ts'
import { pairingFault, resultsIn } from '../support/going-on.ts'
import { framesOf, startServer, type TestServer } from '../support/server.ts'

let server: TestServer
afterEach(() => server.close())

const pick = { name: 'pick', description: 'Asks the user', parameters: { type: 'object', properties: {} } }
const withPick = { body: { tools: [pick] } }

async function view(id: string) {
  return (await (await fetch(`${server.url}/api/runs/${id}`)).json()) as {
    status: string
    messages: { role: string; id?: string }[]
    requests: { requestId: string; toolCallId: string }[]
  }
}

describe('chat: client tools', () => {
  test('a client tool: the client runs it and the same message goes on; three rounds, each one run and two messages', async () => {
    const model = createScriptedModel(
      [1, 2, 3].flatMap((i) => [
        [text('Which? '), toolCall(`c${i}`, 'pick'), finish('tool-calls')],
        [text(`You picked ${i}.`), finish()],
      ]),
    )
    server = await startServer({ agents: { a: agent() }, scripts: { m: model } })
    let round = 0
    const { chat, errors, runs } = createChat(server.url, {
      ...withPick,
      id: 'c',
      sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithToolCalls,
      onToolCall({ toolCall: { toolCallId, toolName } }) {
        // Not awaited: the client's queue of jobs waits for this callback.
        void chat.addToolOutput({ tool: toolName, toolCallId, output: round })
      },
    })
    for (round = 1; round <= 3; round++) {
      await chat.sendMessage({ text: `Round ${round}` })
      await expect.poll(() => lines(chat.messages).at(-1)).toContain(`You picked ${round}.`)
      await expect.poll(() => chat.status).toBe('ready')
    }
    expect(errors).toEqual([])
    expect(lines(chat.messages)).toEqual(
      [1, 2, 3].flatMap((i) => [`user: Round ${i}`, `assistant: Which?  [pick output-available] You picked ${i}.`]),
    )
    // Each round is one run, asked twice: its message keeps its id.
    expect(runs).toEqual([0, 1, 2].flatMap((i) => [runs[2 * i], runs[2 * i]]))
    expect(chat.messages.filter(({ role }) => role === 'assistant').map(({ id }) => id)).toEqual([...new Set(runs)])
    expect(await server.store.runs.list({ threadId: 'c' })).toHaveLength(3)
    for (const id of new Set(runs)) {
      const { status, messages } = await view(id)
      expect([status, messages.map(({ role }) => role)]).toEqual(['completed', ['assistant', 'tool', 'assistant']])
    }
    // What the model was told at last: three rounds, every call with its result, nothing doubled.
    expect(model.calls.at(-1)!.options.prompt.map(({ role }) => role)).toEqual([
      'user',
      'assistant',
      'tool',
      'assistant',
      'user',
      'assistant',
      'tool',
      'assistant',
      'user',
      'assistant',
      'tool',
    ])
    expect(model.calls[0]!.options.tools).toMatchObject([{ name: 'pick' }])
    const entries = await entriesOf(server.store, runs[0]!)
    expect(only(entries, 'resume')).toMatchObject([{ protocol: 'ui', input: { tools: [pick] } }])
  })

  test('two branches whose models call their calls the same: each gets its own answer, under the id it gave', async () => {
    const asking = (of: string) =>
      createScriptedModel([
        [toolCall('call_1', 'pick', { of }), finish('tool-calls')],
        [toolCall('call_2', 'pick', { of: `${of} again` }), finish('tool-calls')],
        [text(`Thanks for ${of}.`), finish()],
        [text('Bye.'), finish()],
      ])
    const models = { cats: asking('cats'), dogs: asking('dogs') }
    const branch = (name: string) => `[{ id: ${name}, type: llm, config: { model: "script:${name}", stream: true } }]`
    const yaml = `workflow:
  - id: both
    type: parallel
    config: { branches: { a: ${branch('cats')}, b: ${branch('dogs')} } }`
    server = await startServer({ agents: { a: yaml }, scripts: models })
    const asked: { id: string; of: string }[] = []
    const { chat, errors, runs } = createChat(server.url, {
      ...withPick,
      id: 'c',
      sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithToolCalls,
      onToolCall({ toolCall: { toolCallId, toolName, input } }) {
        const { of } = input as { of: string }
        asked.push({ id: toolCallId, of })
        void chat.addToolOutput({ tool: toolName, toolCallId, output: `picked ${of}` })
      },
    })
    await chat.sendMessage({ text: 'Go' })
    await expect.poll(() => lines(chat.messages).at(-1)).toContain('Thanks for dogs.')
    await expect.poll(() => chat.status).toBe('ready')
    expect(errors).toEqual([])
    expect(asked.map(({ of }) => of).toSorted()).toEqual(['cats', 'cats again', 'dogs', 'dogs again'])
    expect(new Set(asked.map(({ id }) => id)).size).toBe(4)
    expect(new Set(runs).size).toBe(1)
    for (const [name, model] of Object.entries(models)) {
      // What each model was told at last: its own ids, its own answers.
      const told = model.calls
        .at(-1)!
        .options.prompt.flatMap((message) => (message.role === 'tool' ? message.content : []))
      expect(told).toMatchObject([
        { toolCallId: 'call_1', output: { value: `picked ${name}` } },
        { toolCallId: 'call_2', output: { value: `picked ${name} again` } },
      ])
    }
    const parts = chat.lastMessage!.parts.flatMap((part) => ('output' in part ? [[part.input, part.output]] : []))
    expect(parts.map(([input, output]) => `picked ${(input as { of: string }).of}` === output)).toEqual(
      Array(4).fill(true),
    )
    expect((await view(runs[0]!)).status).toBe('completed')
    // A strict provider takes the next turn: every call once, with its outcome behind it.
    await chat.sendMessage({ text: 'Bye' })
    const { prompt } = models.cats.calls.at(-1)!.options
    expect(pairingFault(prompt)).toBeUndefined()
    expect(resultsIn(prompt).size).toBe(4)
  })

  test('the same for a client of its own that answers with `tool` messages', async () => {
    const asking = () =>
      createScriptedModel([
        [toolCall('call_1', 'pick'), finish('tool-calls')],
        [text('Done.'), finish()],
      ])
    const models = { cats: asking(), dogs: asking() }
    const branch = (name: string) => `[{ id: ${name}, type: llm, config: { model: "script:${name}", stream: true } }]`
    const yaml = `workflow: [{ id: both, type: parallel, config: { branches: { cats: ${branch('cats')}, dogs: ${branch('dogs')} } } }]`
    server = await startServer({ agents: { a: yaml }, scripts: models })
    const user = { role: 'user', content: 'Go' }
    const body = { agentId: 'a', id: 'c', tools: [pick] }
    const first = framesOf(await (await server.post('/api/chat', { ...body, messages: [user] })).text())
    const calls = first.flatMap((frame) =>
      frame !== 'done' && frame['type'] === 'tool-input-available' ? [frame] : [],
    )
    const [assistant, tool] = [[] as object[], [] as object[]]
    for (const [i, { toolCallId }] of calls.entries()) {
      assistant.push({ type: 'tool-call', toolCallId, toolName: 'pick', input: {} })
      tool.push({ type: 'tool-result', toolCallId, toolName: 'pick', output: { type: 'text', value: `answer ${i}` } })
    }
    const messages = [user, { role: 'assistant', content: assistant }, { role: 'tool', content: tool }]
    expect(await (await server.post('/api/chat', { ...body, messages })).text()).toContain('Done.')
    const run = (await server.store.runs.list({ threadId: 'c' }))[0]!
    const asked = only(await entriesOf(server.store, run.id), 'request')
    expect(calls.map(({ toolCallId }) => toolCallId)).toEqual(asked.map(({ toolCallId }) => toolCallId))
    for (const [i, { step }] of asked.entries()) {
      const [, , name] = step.split('/') as [string, string, keyof typeof models]
      const told = models[name].calls[1]!.options.prompt.at(-1)
      expect(told).toMatchObject({ content: [{ toolCallId: 'call_1', output: { value: `answer ${i}` } }] })
    }
  })

  test('a reload while the client is asked: the answer of the new page counts, and it shows one message', async () => {
    const model = createScriptedModel([
      [toolCall('c1', 'pick'), finish('tool-calls')],
      [text('Red it is.'), finish()],
    ])
    server = await startServer({ agents: { a: agent() }, scripts: { m: model } })
    const first = createChat(server.url, { ...withPick, id: 'c' })
    await first.chat.sendMessage({ text: 'Go' })
    expect(lines(first.chat.messages)).toEqual(['user: Go', 'assistant: [pick input-available]'])
    expect(first.chat.status).toBe('ready')
    expect(await view(first.runs[0]!)).toMatchObject({ status: 'suspended', requests: [{ toolCallId: 'c1' }] })
    const sendAutomaticallyWhen = lastAssistantMessageIsCompleteWithToolCalls
    const second = createChat(server.url, {
      ...withPick,
      id: 'c',
      messages: stored(first.chat.messages),
      sendAutomaticallyWhen,
    })
    await second.chat.resumeStream()
    expect(second.runs).toEqual([''])
    await second.chat.addToolOutput({ tool: 'pick', toolCallId: 'c1', output: 'red' })
    await expect
      .poll(() => lines(second.chat.messages))
      .toEqual(['user: Go', 'assistant: [pick output-available] Red it is.'])
    expect(second.runs.at(-1)).toBe(first.runs[0])
    expect(await view(first.runs[0]!)).toMatchObject({ status: 'completed' })
  })

  test('a reload after the answer to a tool: the replay spans the suspension and doubles nothing', async () => {
    const gate = latch()
    const model = createScriptedModel([
      [text('Which? '), toolCall('c1', 'pick'), finish('tool-calls')],
      [
        { type: 'text-start', id: 't' },
        { type: 'text-delta', id: 't', delta: 'Red ' },
        gate,
        { type: 'text-delta', id: 't', delta: 'it is.' },
        { type: 'text-end', id: 't' },
        finish(),
      ],
    ])
    server = await startServer({ agents: { a: agent() }, scripts: { m: model } })
    const sendAutomaticallyWhen = lastAssistantMessageIsCompleteWithToolCalls
    const first = createChat(server.url, { ...withPick, id: 'c', sendAutomaticallyWhen })
    await first.chat.sendMessage({ text: 'Go' })
    void first.chat.addToolOutput({ tool: 'pick', toolCallId: 'c1', output: 'red' })
    await expect.poll(() => lines(first.chat.messages).at(-1)).toContain('Red ')
    for (const kept of [0, 1, 2]) {
      const page = createChat(server.url, {
        ...withPick,
        id: 'c',
        sendAutomaticallyWhen,
        messages: stored(first.chat.messages.slice(0, kept)),
      })
      const resumed = page.chat.resumeStream()
      await expect.poll(() => lines(page.chat.messages).at(-1)).toBe('assistant: Which?  [pick output-available] Red ')
      // A page that has it all already says so before it has asked.
      await expect.poll(() => page.chat.status).toBe('streaming')
      if (kept === 2) gate.open()
      else await page.chat.stop()
      await resumed
      expect(page.errors).toEqual([])
      if (kept === 2) {
        expect(lines(page.chat.messages)).toEqual(['user: Go', 'assistant: Which?  [pick output-available] Red it is.'])
      }
    }
    await expect.poll(() => first.chat.status).toBe('ready')
  })

  const tools = () => {
    const ran: unknown[] = []
    const remove = {
      parameters: z.object({ file: z.string() }),
      execute: (input: unknown) => {
        ran.push(input)
        return 'removed'
      },
    }
    return { ran, tools: { remove } }
  }

  test('a server tool that wants approval: one call approved, one refused', async () => {
    const { ran, tools: registered } = tools()
    const model = createScriptedModel([
      [toolCall('c1', 'remove', { file: 'a' }), toolCall('c2', 'remove', { file: 'b' }), finish('tool-calls')],
      [text('a is gone, b stays.'), finish()],
    ])
    const yaml = agent('tools: [{ name: remove, approval: true }]')
    server = await startServer({ agents: { a: yaml }, tools: registered, scripts: { m: model } })
    const sendAutomaticallyWhen = lastAssistantMessageIsCompleteWithApprovalResponses
    const { chat, errors, runs } = createChat(server.url, { id: 'c', sendAutomaticallyWhen })
    await chat.sendMessage({ text: 'Delete both' })
    expect(lines(chat.messages).at(-1)).toBe('assistant: [remove approval-requested] [remove approval-requested]')
    expect(ran).toEqual([])
    const approvals = chat.lastMessage!.parts.flatMap((part) =>
      'approval' in part && part.approval ? [part.approval.id] : [],
    )
    await chat.addToolApprovalResponse({ id: approvals[0]!, approved: true })
    await chat.addToolApprovalResponse({ id: approvals[1]!, approved: false, reason: 'I need b.' })
    await expect
      .poll(() => lines(chat.messages))
      .toEqual(['user: Delete both', 'assistant: [remove output-available] [remove output-denied] a is gone, b stays.'])
    await expect.poll(() => chat.status).toBe('ready')
    expect(errors).toEqual([])
    expect(ran).toEqual([{ file: 'a' }])
    expect(new Set(runs).size).toBe(1)
    expect((await view(runs[0]!)).messages.map(({ role }) => role)).toEqual(['assistant', 'tool', 'assistant'])
    expect(JSON.stringify(model.calls[1]!.options.prompt)).toContain('I need b.')
  })

  test('the thread moves on without an answer: the suspended run ends, the new message is answered', async () => {
    const model = createScriptedModel([
      [text('Which?'), toolCall('c1', 'pick'), finish('tool-calls')],
      [text('As you like.'), finish()],
    ])
    server = await startServer({ agents: { a: agent() }, scripts: { m: model } })
    const { chat, errors, runs } = createChat(server.url, { ...withPick, id: 'c' })
    await chat.sendMessage({ text: 'Go' })
    await chat.sendMessage({ text: 'Never mind' })
    expect(errors).toEqual([])
    expect(lines(chat.messages).at(-1)).toBe('assistant: As you like.')
    expect(await view(runs[0]!)).toMatchObject({ status: 'aborted', requests: [] })
    expect(await view(runs[1]!)).toMatchObject({ status: 'completed' })
    // A strict provider takes it: no call without an outcome.
    expect(model.calls[1]!.options.prompt).toMatchObject([
      { role: 'user' },
      { role: 'assistant', content: [{ type: 'text', text: 'Which?' }] },
      { role: 'user' },
    ])
  })

  test('a restart while the client is asked: the next server goes on with the run', async () => {
    const first = createEngine({
      agents: { a: agent() },
      scripts: { m: createScriptedModel([[toolCall('c1', 'pick'), finish('tool-calls')]]) },
      keep: true,
    })
    const run = await first.runtime.start(
      'a',
      { messages: [{ role: 'user', content: 'Go' }], tools: [pick] },
      { threadId: 'c', protocol: 'ui' },
    )
    expect(await run.result).toMatchObject({ outcome: 'suspended' })
    await first.close()
    const model = createScriptedModel([[text('Red it is.'), finish()]])
    server = await startServer({ agents: { a: agent() }, scripts: { m: model }, dir: first.dir })
    await server.runtime.recover()
    const sendAutomaticallyWhen = lastAssistantMessageIsCompleteWithToolCalls
    const page = createChat(server.url, {
      ...withPick,
      id: 'c',
      sendAutomaticallyWhen,
      messages: [
        { id: 'u', role: 'user', parts: [{ type: 'text', text: 'Go' }] },
        {
          id: run.id,
          role: 'assistant',
          parts: [{ type: 'step-start' }, { type: 'tool-pick', toolCallId: 'c1', state: 'input-available', input: {} }],
        },
      ],
    })
    await page.chat.addToolOutput({ tool: 'pick', toolCallId: 'c1', output: 'red' })
    await expect
      .poll(() => lines(page.chat.messages))
      .toEqual(['user: Go', 'assistant: [pick output-available] Red it is.'])
    expect(page.errors).toEqual([])
  })

  test('a model that refuses after the client has answered is a real status', async () => {
    const refusal = Object.assign(new Error('slow down'), { statusCode: 429 })
    const model = createScriptedModel([[toolCall('c1', 'pick'), finish('tool-calls')], [throws(refusal)]])
    server = await startServer({ agents: { a: agent('retries: 0') }, scripts: { m: model } })
    const sendAutomaticallyWhen = lastAssistantMessageIsCompleteWithToolCalls
    const { chat, errors } = createChat(server.url, { ...withPick, id: 'c', sendAutomaticallyWhen })
    await chat.sendMessage({ text: 'Go' })
    await chat.addToolOutput({ tool: 'pick', toolCallId: 'c1', output: 'red' })
    await expect.poll(() => chat.status).toBe('error')
    expect(errors[0]!.message).toContain('answered 429: slow down')
  })

  test('a router’s calls of client tools, and its approvals, are the client’s to answer as well; nothing else of it is shown', async () => {
    const route = createScriptedModel([
      [
        text('Words of the router.'),
        toolCall('c1', 'pick', { of: 'cats' }),
        toolCall('c2', 'quick'),
        finish('tool-calls'),
      ],
      [toolCall('c3', 'pay', { usd: 3 }), finish('tool-calls')],
      [toolCall('c4', 'respond'), finish('tool-calls')],
    ])
    const answer = createScriptedModel([[text('Bought.'), finish()]])
    const any = z.looseObject({})
    server = await startServer({
      agents: {
        a: `workflow:
  - { id: route, type: router, result: routed, config: { model: "script:route", clientTools: true, tools: [quick, { name: pay, approval: true }] } }
  - { id: answer, type: llm, config: { model: "script:answer", stream: true, messages: "$routed.messages" } }`,
      },
      scripts: { route, answer },
      tools: { quick: { parameters: any, execute: () => 'done' }, pay: { parameters: any, execute: () => 'paid' } },
    })
    const { chat, errors, runs } = createChat(server.url, {
      ...withPick,
      id: 'c',
      sendAutomaticallyWhen: (options) =>
        lastAssistantMessageIsCompleteWithToolCalls(options) ||
        lastAssistantMessageIsCompleteWithApprovalResponses(options),
      onToolCall({ toolCall: { toolCallId, toolName, input } }) {
        if (toolName === 'pick') void chat.addToolOutput({ tool: toolName, toolCallId, output: input })
      },
    })
    await chat.sendMessage({ text: 'Go' })
    await expect.poll(() => lines(chat.messages).at(-1)).toContain('[pay approval-requested]')
    await expect.poll(() => chat.status).toBe('ready')
    const pay = chat.lastMessage!.parts.find((part) => part.type === 'tool-pay') as { approval: { id: string } }
    await chat.addToolApprovalResponse({ id: pay.approval.id, approved: true })
    await expect.poll(() => lines(chat.messages).at(-1)).toContain('Bought.')
    await expect.poll(() => chat.status).toBe('ready')
    expect(errors).toEqual([])
    expect(lines(chat.messages)).toEqual([
      'user: Go',
      'assistant: [pick output-available] [pay output-available] Bought.',
    ])
    expect(new Set(runs).size).toBe(1)
    expect([...resultsIn(answer.calls[0]!.options.prompt).values()]).toEqual([
      { type: 'json', value: { of: 'cats' } },
      { type: 'text', value: 'done' },
      { type: 'text', value: 'paid' },
    ])
    await entriesOf(server.store, runs[0]!)
  })

  test.each([
    ['none', {}, undefined],
    ['one', { pick: { description: pick.description, parameters: pick.parameters } }, [{ name: 'pick' }]],
  ])('tools as a map by name, as assistant-ui sends them: %s', async (_, tools, offered) => {
    const model = createScriptedModel([
      [toolCall('c1', 'pick'), finish('tool-calls')],
      [text('ok'), finish()],
    ])
    server = await startServer({ agents: { a: agent() }, scripts: { m: model } })
    const { chat, errors } = createChat(server.url, { body: { tools, metadata: {} } })
    await chat.sendMessage({ text: 'Hi' })
    expect(errors).toEqual([])
    if (offered === undefined) expect(model.calls[0]!.options.tools).toBeUndefined()
    else expect(model.calls[0]!.options.tools).toMatchObject(offered)
  })

  test('a client’s answer counts also when its request lists no tools', async () => {
    const model = createScriptedModel([
      [toolCall('c1', 'pick'), finish('tool-calls')],
      [text('ok'), finish()],
    ])
    server = await startServer({ agents: { a: agent() }, scripts: { m: model } })
    const { chat, errors } = createChat(server.url)
    await chat.sendMessage({ text: 'Hi' }, { body: { tools: [pick] } })
    await chat.addToolOutput({ tool: 'pick', toolCallId: 'c1', output: 'red' })
    await chat.sendMessage(undefined, { body: { tools: [] } })
    expect(errors).toEqual([])
    expect(lines(chat.messages).at(-1)).toBe('assistant: [pick output-available] ok')
    expect(JSON.stringify(model.calls[1]!.options.prompt)).toContain('red')
  })
})
