/** Whose conversation a request of `/v1/messages` goes on with, and which run answers it: callers, sessions, retries, approvals, thoughts. */
import type Anthropic from '@anthropic-ai/sdk'
import { describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import {
  createScriptedModel,
  errorPart,
  finish,
  latch,
  reasoning,
  text,
  toolCall,
} from '../../src/models/testing/scripted-model.ts'
import type { HandlerOptions } from '../../src/server/handler-context.ts'
import { callers, createTestAccess, headersFor } from '../support/callers.ts'
import { agent, until, type EngineOptions } from '../support/engine.ts'
import { createTold, resultsIn, type Told } from '../support/going-on.ts'
import { says, thinksAndCalls } from '../support/protocol-lines.ts'
import { startServer } from '../support/server.ts'
import { startRecordedProvider } from '../../src/models/testing/recorded-provider.ts'
import { startUpstream } from '../support/upstream.ts'

const path = '/v1/messages'
type Content = Anthropic.MessageParam['content']

async function start(options: EngineOptions, handler: Partial<HandlerOptions> = {}) {
  const server = await startServer(options, handler)
  onTestFinished(() => server.close())
  const ask = async (messages: object[], headers: Record<string, string> = {}, more: object = {}) => {
    const response = await server.post(path, { model: 'a', max_tokens: 1000, messages, ...more }, { headers })
    return { status: response.status, headers: response.headers, json: (await response.json()) as Anthropic.Message }
  }
  const startOf = async (id: string) => {
    for await (const [entry] of server.store.log.read(id.replace(/^msg_/u, ''), { limit: 1 })) {
      if (entry?.type === 'run-start') return entry
    }
    throw new Error('No start.')
  }
  return { server, ask, startOf }
}

const hello = () => createTold((prompt) => [text(`${prompt.length} messages`), finish()])
const user = (content: Content) => ({ role: 'user', content })
const assistant = (content: Content) => ({ role: 'assistant', content })
const system = (content: Content) => ({ role: 'system', content })
const reminder = { type: 'text' as const, text: '<system-reminder>\nBe kind.\n</system-reminder>\n' }
const said = (words: string) => ({ type: 'text' as const, text: words })
const session = { 'x-claude-code-session-id': 'session-1' }
const fast = { description: 'Fast', parameters: z.looseObject({}), execute: () => 'done' }

describe('whose conversation', () => {
  test('another caller’s run is not found, by its ids, its thoughts or its words; the same session is another thread', async () => {
    const m = createTold((prompt) =>
      prompt.at(-1)!.role === 'tool' || resultsIn(prompt).size > 0
        ? [reasoning('Hm'), text('Done'), finish()]
        : [toolCall('c1', 'fast'), finish('tool-calls')],
    )
    const { ask, startOf } = await start({ agents: { a: agent('tools: [fast]') }, tools: { fast }, scripts: { m } }, {
      access: createTestAccess(),
      authorize: undefined,
    } as never)
    const as = (caller: keyof typeof callers) => ({ ...headersFor(caller), ...session })
    const first = await ask([user('One')], as('alice'))
    expect(first.json.content.map(({ type }) => type as string)).toEqual([
      'mcp_tool_use',
      'mcp_tool_result',
      'thinking',
      'text',
    ])
    const history = [user('One'), assistant(first.json.content), user('Two')]
    const alice = await startOf((await ask(history, as('alice'))).json.id)
    expect(alice.previousRunId).toBe(first.json.id.slice(4))
    for (const caller of ['bob', 'alice of beta', 'operator'] as const) {
      const other = await ask(history, as(caller))
      expect([caller, other.status]).toEqual([caller, 200])
      const run = await startOf(other.json.id)
      expect([caller, run.previousRunId]).toEqual([caller, undefined])
      expect(run.threadId).not.toBe(alice.threadId)
    }
  })

  test('a session is one chain; a title and a sub-agent stand apart, as do conversations without a session', async () => {
    const { ask, startOf } = await start({ agents: { a: agent() }, scripts: { m: hello() } })
    const format = { type: 'json_schema', schema: { type: 'object' } }
    const first = await ask([user([reminder, said('One')]), system([said('# Environment')])], session)
    const title = await ask([user('Title of: One')], session, { output_config: { format }, tools: [] })
    expect(title.status).toBe(500)
    const again = [user([reminder, said('One')]), system('# Environment'), assistant(first.json.content)]
    const second = await ask([...again, user([said('Two')])], session)
    const third = await ask(
      [...again, user('Two'), assistant(second.json.content), user([reminder, said('Three')])],
      session,
    )
    const part = await ask([user('Part')], { ...session, 'x-claude-code-agent-id': 'agent-1' })
    const [one, two, three, sub] = await Promise.all([first, second, third, part].map(({ json }) => startOf(json.id)))
    expect([one, two, three].map((entry) => entry!.previousRunId)).toEqual([undefined, one!.runId, two!.runId])
    expect(new Set([one, two, three].map((entry) => entry!.threadId))).toEqual(new Set(['session-1']))
    expect(sub!.threadId).toBe('session-1:agent-1')
    expect(three!.labels).toMatchObject({ session: 'session-1' })
    // Only what is new.
    expect(JSON.stringify(three!.input['messages'])).not.toContain('One')
  })

  test('a session that is continued has no reminders and other system messages: it goes on all the same', async () => {
    const m = hello()
    const { ask, startOf } = await start({ agents: { a: agent() }, scripts: { m } })
    const first = await ask([user([reminder, said('One')]), system('Long environment')], session)
    const second = await ask(
      [user('One'), system('Short'), assistant(first.json.content), user([reminder, said('Two')]), system('Long')],
      session,
    )
    expect((await startOf(second.json.id)).previousRunId).toBe(first.json.id.slice(4))
    expect(m.prompts[1]!.map(({ role }) => role)).toEqual(['user', 'system', 'assistant', 'user', 'system'])
    expect(JSON.stringify(m.prompts[1])).toContain('Long environment')
  })

  test('another conversation of the session, and one that was changed, begin anew', async () => {
    const { ask, startOf } = await start({ agents: { a: agent() }, scripts: { m: hello() } })
    const first = await ask([user('One')], session)
    const other = await ask([user('Else'), assistant(first.json.content), user('Two')], session)
    expect((await startOf(other.json.id)).previousRunId).toBeUndefined()
    const changed = await ask([user('One'), assistant('Not this'), user('Two')], session)
    expect((await startOf(changed.json.id)).previousRunId).toBeUndefined()
  })

  test('a client without a session: its history is found by the thoughts and tools in it', async () => {
    const m = createTold((prompt) => [reasoning('Hm'), text(`${prompt.length}`), finish()])
    const { ask, startOf } = await start({ agents: { a: agent() }, scripts: { m } })
    const first = await ask([user('One')])
    const second = await ask([user('One'), assistant(first.json.content), user('Two')])
    expect((await startOf(second.json.id)).previousRunId).toBe(first.json.id.slice(4))
    // The log's own thought.
    expect(JSON.stringify(m.prompts[1])).toContain('"reasoning"')
    // A token that was made up says nothing.
    const [thought, ...rest] = first.json.content as [Anthropic.ThinkingBlock, ...Anthropic.ContentBlock[]]
    const foreign = await ask([
      user('One'),
      assistant([{ ...thought, signature: 'sig-1' }, ...rest] as never),
      user('Two'),
    ])
    expect(foreign.status).toBe(200)
    expect((await startOf(foreign.json.id)).previousRunId).toBeUndefined()
    expect(JSON.stringify(m.prompts[2])).not.toContain('"reasoning"')
  })

  test('the model gets the server’s calls back, and the client’s results to its own', async () => {
    const m = createTold((prompt) => {
      const results = resultsIn(prompt)
      if (!results.has('c1')) return [toolCall('c1', 'fast', { n: 1 }), finish('tool-calls')]
      if (!results.has('functions.Bash:0'))
        return [toolCall('functions.Bash:0', 'Bash', { command: 'ls' }), finish('tool-calls')]
      return [text('Both.'), finish()]
    })
    let ran = 0
    const counted = { ...fast, execute: () => `run ${++ran}` }
    const { ask } = await start({ agents: { a: agent('tools: [fast]') }, tools: { fast: counted }, scripts: { m } })
    const tools = [{ name: 'Bash', input_schema: { type: 'object' } }]
    const first = await ask([user('Go')], session, { tools })
    expect(first.json.stop_reason).toBe('tool_use')
    const call = first.json.content.at(-1) as Anthropic.ToolUseBlock
    const result = { type: 'tool_result' as const, tool_use_id: call.id, content: 'a file' }
    // As Claude Code has it, with the blocks of the server's tool; and as a client that keeps none of them.
    for (const content of [first.json.content, [call]]) {
      const second = await ask([user('Go'), assistant(content as never), user([result])], session, { tools })
      expect(second.json.content).toEqual([{ type: 'text', text: 'Both.' }])
      const told = JSON.stringify(m.prompts.at(-1))
      expect(told).toContain('run 1')
      expect(told).toContain('a file')
    }
    expect(ran).toBe(1)
  })

  test('a history in which not every message names its run: the last one is found', async () => {
    const m = createTold((prompt) =>
      resultsIn(prompt).size > 0
        ? [text(`${prompt.length}`), finish()]
        : [toolCall('c1', 'fast'), finish('tool-calls')],
    )
    for (const headers of [session, {}]) {
      const { ask, startOf } = await start({ agents: { a: agent('tools: [fast]') }, tools: { fast }, scripts: { m } })
      const history: object[] = [user('One')]
      let before: string | undefined
      for (const words of ['Two', 'Three', 'Four']) {
        const { json } = await ask(history, headers as Record<string, string>)
        expect((await startOf(json.id)).previousRunId).toBe(before)
        before = json.id.slice(4)
        history.push(assistant(json.content as never), user(words))
      }
    }
  })

  test('a system message behind an answer belongs to the next turn', async () => {
    const m = hello()
    const { ask, startOf } = await start({ agents: { a: agent() }, scripts: { m } })
    const first = await ask([user('One')], session)
    const later = [system('Now in French'), user('Two')]
    const second = await ask([user('One'), assistant(first.json.content), ...later], session)
    expect((await startOf(second.json.id)).previousRunId).toBe(first.json.id.slice(4))
    expect(m.prompts[1]!.map(({ role }) => role)).toEqual(['user', 'assistant', 'system', 'user'])
  })

  test('an id that is too long for the protocol: the provider gets its own back', async () => {
    const long = `functions.${'get_the_weather_of_a_city'.repeat(3)}:0`
    const m = createTold((prompt) =>
      resultsIn(prompt).has(long) ? [text('Sunny.'), finish()] : [toolCall(long, 'Bash', {}), finish('tool-calls')],
    )
    const { ask, startOf } = await start({ agents: { a: agent() }, scripts: { m } })
    const more = { tools: [{ name: 'Bash', input_schema: { type: 'object' } }] }
    const first = await ask([user('Go')], session, more)
    const [call] = first.json.content as [Anthropic.ToolUseBlock]
    expect(call.id).toMatch(/^[\w-]{1,64}$/u)
    const result = { type: 'tool_result' as const, tool_use_id: call.id, content: 'sun' }
    const second = await ask([user('Go'), assistant([call]), user([result])], session, more)
    expect(second.json.content).toEqual([{ type: 'text', text: 'Sunny.' }])
    expect((await startOf(second.json.id)).previousRunId).toBe(first.json.id.slice(4))
  })

  test('X-Thread-Id names the thread', async () => {
    const { ask, startOf } = await start({ agents: { a: agent() }, scripts: { m: hello() } })
    const { json } = await ask([user('One')], { ...session, 'x-thread-id': 'named' })
    expect((await startOf(json.id)).threadId).toBe('named')
  })
})

describe('thoughts that a provider has signed', () => {
  const shown = ['shown', 'omitted'].flatMap((display) =>
    (['anthropic', 'openai-responses'] as const).map((protocol) => [protocol, display] as const),
  )

  test.each(shown)('%s gets its own signature or id back, byte-equal; display: %s', async (protocol, display) => {
    const replies = [thinksAndCalls('Bash')[protocol], says[protocol]].map((lines) => ({ protocol, lines }))
    const provider = await startRecordedProvider(replies)
    onTestFinished(() => provider.close())
    const endpoints = [{ name: 'local', baseURL: provider.baseURL, protocol }]
    const yaml = agent('reasoning: low').replace('script:m', 'local:m')
    const { ask } = await start({ agents: { a: yaml }, models: { endpoints } })
    const more = {
      tools: [{ name: 'Bash', input_schema: { type: 'object' } }],
      thinking: { type: 'adaptive', ...(display === 'omitted' && { display }) },
    }
    const first = await ask([user('Go')], session, more)
    const [thought, call] = first.json.content as [Anthropic.ThinkingBlock, Anthropic.ToolUseBlock]
    const isShown = display === 'shown' && protocol === 'anthropic'
    expect(thought).toMatchObject({ type: 'thinking', thinking: isShown ? 'Hm' : '' })
    expect(JSON.stringify(first.json)).not.toContain('SIG')
    expect(thought.signature.length).toBeLessThanOrEqual(200)
    const result = { type: 'tool_result' as const, tool_use_id: call.id, content: 'x' }
    await ask([user('Go'), assistant(first.json.content as never), user([result])], session, more)
    const sent = JSON.stringify(provider.requests[1]!.body)
    expect(sent).toContain(protocol === 'anthropic' ? '"signature":"SIG"' : '{"type":"item_reference","id":"rs"}')
    expect(sent).not.toContain('mrthought_')
  })
})

describe('retries of Claude Code', () => {
  const cut = {
    type: 'text' as const,
    text: '<system-reminder>\nYour response above was cut off mid-stream.\n</system-reminder>',
  }
  const stream = { stream: true }

  /** Leaves the first answer once it has some text. */
  async function leaving(answer: (gate: ReturnType<typeof latch>) => object[]) {
    const gate = latch()
    const m = createScriptedModel([answer(gate) as never, [text('Next'), finish()]])
    const started = await start({ agents: { a: agent() }, scripts: { m } })
    const { server } = started
    const body = { model: 'a', max_tokens: 1000, ...stream }
    const leave = new AbortController()
    const messages = [user([reminder, said('Go')]), system([said('Env')])]
    const first = await server.post(path, { ...body, messages }, { headers: session, signal: leave.signal })
    const run = first.headers.get('x-millrace-run-id')!
    await until(server.store, run, ({ type }) => type === 'text-delta')
    leave.abort()
    const again = (more: object[], streams = true) =>
      server.post(
        path,
        { ...body, stream: streams, messages: [messages[0], system('Env'), ...more] },
        { headers: session },
      )
    return { ...started, gate, run, again }
  }

  const beginnings: [string, object[]][] = [
    ['nothing', []],
    ['the beginning of the answer, and that it was cut off', [assistant([said('Hel')]), user([cut])]],
    ['the beginning of the answer', [assistant([said('Hel')])]],
  ]

  test.each(beginnings)(
    'a run that is open is joined, with %s: its whole answer; the model is asked once',
    async (_, more) => {
      const { gate, run, again, server } = await leaving((open) => [text('Hel'), open, text('lo'), finish()])
      const response = await again(more)
      expect(response.headers.get('x-millrace-run-id')).toBe(run)
      gate.open()
      const body = await response.text()
      expect(body).toContain('event: message_start')
      expect(body.match(/"text":"[^"]+"/gu)).toEqual(['"text":"Hel"', '"text":"lo"'])
      // It has ended, and is sent again, also without a stream.
      const whole = (await (await again([], false)).json()) as Anthropic.Message
      expect(whole).toMatchObject({ id: `msg_${run}`, stop_reason: 'end_turn' })
      expect(await server.store.runs.list()).toHaveLength(1)
    },
  )

  test('a run is joined by one who has only the blocks of its tools', async () => {
    const gate = latch()
    const m = createTold((prompt) =>
      resultsIn(prompt).size > 0
        ? [text('Hel'), gate, text('lo'), finish()]
        : [toolCall('c1', 'fast'), finish('tool-calls')],
    )
    const { server } = await start({ agents: { a: agent('tools: [fast]') }, tools: { fast }, scripts: { m } })
    const body = { model: 'a', max_tokens: 1000, messages: [user('Go')], ...stream }
    const leave = new AbortController()
    const first = await server.post(path, body, { headers: session, signal: leave.signal })
    const run = first.headers.get('x-millrace-run-id')!
    await gate.reached
    leave.abort()
    const id = `mcptoolu_${run}_0`
    const blocks = [
      { type: 'mcp_tool_use', id, name: 'fast', server_name: 'a', input: {} },
      { type: 'mcp_tool_result', tool_use_id: id, is_error: false, content: [said('done')] },
    ]
    const messages = [user('Go'), assistant(blocks as never), user([cut])]
    const again = server.post(path, { ...body, messages }, { headers: session })
    gate.open()
    expect((await again).headers.get('x-millrace-run-id')).toBe(run)
    expect(await (await again).text()).toContain('"text":"lo"')
    expect(await server.store.runs.list()).toHaveLength(1)
  })

  test('the next turn of a conversation that was cut off goes on with the run', async () => {
    const { gate, run, again, startOf } = await leaving((open) => [text('Hel'), open, text('lo'), finish()])
    const parts = [assistant([said('Hel')]), user([cut])]
    const joined = again(parts)
    gate.open()
    await (await joined).text()
    const next = await again([...parts, assistant([said('Hel'), said('lo')]), user('And?')], false)
    const { id } = (await next.json()) as Anthropic.Message
    const { previousRunId, input } = await startOf(id)
    expect(previousRunId).toBe(run)
    expect(JSON.stringify(input['messages'])).toBe(JSON.stringify([{ role: 'user', content: [said('And?')] }]))
  })

  test('a whole answer and a reminder are another turn', async () => {
    const { ask, server, startOf } = await start({ agents: { a: agent() }, scripts: { m: hello() } })
    const first = await ask([user('Go')], session)
    const next = await ask([user('Go'), assistant(first.json.content as never), user([reminder])], session)
    expect(next.json.id).not.toBe(first.json.id)
    expect((await startOf(next.json.id)).previousRunId).toBe(first.json.id.slice(4))
    expect(await server.store.runs.list()).toHaveLength(2)
  })

  test('a run that failed after a tool ran is told again, and not run again', async () => {
    let ran = 0
    const counted = { ...fast, execute: () => ++ran }
    const m = createTold((prompt) =>
      resultsIn(prompt).has('c1')
        ? [errorPart({ message: 'It broke.' })]
        : [toolCall('c1', 'fast'), finish('tool-calls')],
    )
    const { ask, server } = await start({
      agents: { a: agent('tools: [fast]') },
      tools: { fast: counted },
      scripts: { m },
    })
    for (let i = 0; i < 3; i++) {
      const { status, headers, json } = await ask([user('Go')], session)
      expect([status, headers.get('x-should-retry')]).toEqual([500, 'false'])
      expect(json).toMatchObject({
        type: 'error',
        error: { type: 'api_error', message: expect.stringContaining('It broke.') },
      })
    }
    expect(ran).toBe(1)
    expect(await server.store.runs.list()).toHaveLength(1)
  })

  test('a run that used up its budget is told again', async () => {
    const m = createTold(() => [text(...Array.from({ length: 400 }, () => 'x '.repeat(50))), finish()])
    const { ask, server } = await start({ agents: { a: agent('', 'budget: { tokens: 1000 }') }, scripts: { m } })
    for (let i = 0; i < 2; i++) expect((await ask([user('Go')], session)).status).toBe(500)
    expect(await server.store.runs.list()).toHaveLength(1)
  })

  test('a provider’s rate limit before anything was done is another run', async () => {
    const upstream = await startUpstream((reply) => reply.refuse(429, { error: { message: 'slow down' } }))
    onTestFinished(() => upstream.close())
    const endpoints = [{ name: 'local', baseURL: upstream.baseURL }]
    const { ask, server } = await start({
      agents: { a: agent('retries: 0').replace('script:m', 'local:m') },
      models: { endpoints },
    })
    for (let i = 0; i < 2; i++) expect((await ask([user('Go')], session)).status).toBe(429)
    expect(await server.store.runs.list()).toHaveLength(2)
  })

  test('another session, another question, or no session: another run; an Idempotency-Key joins its run', async () => {
    const { ask, server } = await start({ agents: { a: agent() }, scripts: { m: hello() } })
    await ask([user('Go')], session)
    await ask([user('Go')], session)
    await ask([user('Go')], { 'x-claude-code-session-id': 'session-2' })
    await ask([user('Stop')], session)
    await ask([user('Go')])
    await ask([user('Go')])
    expect(await server.store.runs.list()).toHaveLength(5)
    const key = { 'idempotency-key': 'k1' }
    const first = await ask([user('Go')], key)
    expect((await ask([user('Go')], key)).json.id).toBe(first.json.id)
    expect((await ask([user('Other')], key)).status).toBe(422)
  })
})

describe('approvals', () => {
  const waiting = async () => {
    let paid = 0
    const pay = { description: 'Pays', parameters: z.object({ sum: z.number() }), execute: () => `receipt ${++paid}` }
    const m: Told = createTold((prompt) =>
      resultsIn(prompt).size === 0
        ? [text('I pay.'), toolCall('c1', 'pay', { sum: 5 }), finish('tool-calls')]
        : [text('Paid.'), finish()],
    )
    const started = await start({
      agents: { a: agent('tools: [{ name: pay, approval: true }]') },
      scripts: { m },
      tools: { pay },
    })
    const first = await started.ask([user('Pay 5')], session)
    return { ...started, first, paid: () => paid }
  }

  test('the answer says so; once it is given, the conversation’s next request gets the rest', async () => {
    const { server, ask, first, paid } = await waiting()
    expect(first.json.stop_reason).toBe('end_turn')
    expect(JSON.stringify(first.json.content)).toContain('waits for approval')
    const run = first.json.id.slice(4)
    const open = await fetch(`${server.url}/api/runs/${run}/requests`)
    const { requests } = (await open.json()) as { requests: { requestId: string }[] }
    await server.post(`/api/runs/${run}/requests/${requests[0]!.requestId}`, { approved: true })
    const rest = await ask([user('Pay 5'), assistant(first.json.content as never)], session)
    expect(rest.json.id).toBe(first.json.id)
    expect(rest.json.content.at(-1)).toEqual({ type: 'text', text: 'Paid.' })
    expect(JSON.stringify(rest.json.content)).not.toContain('waits for approval')
    expect(paid()).toBe(1)
    expect(await server.store.runs.list()).toHaveLength(1)
  })

  test('a new message closes the call, which never runs', async () => {
    const { server, ask, first, paid } = await waiting()
    const next = await ask([user('Pay 5'), assistant(first.json.content as never), user('Rather not')], session)
    expect(next.json).toMatchObject({ stop_reason: 'end_turn' })
    expect(paid()).toBe(0)
    expect((await server.store.runs.get(first.json.id.slice(4)))!.status).toBe('aborted')
  })
})
