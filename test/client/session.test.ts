/** `createAgentSession`: a conversation as a store, against a server on a real socket. */
import { afterEach, describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import {
  createAgentSession,
  defineTool,
  MillraceClient,
  type AgentSession,
  type SessionOptions,
  type SessionState,
} from '../../src/client.ts'
import {
  createScriptedModel,
  finish,
  latch,
  text,
  throws,
  toolCall,
  type ScriptedModel,
} from '../../src/models/testing/scripted-model.ts'
import { agent, type EngineOptions } from '../support/engine.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { cuttingProxy } from './cutting-proxy.ts'

let server: TestServer | undefined
afterEach(() => server?.close())

async function start(m: ScriptedModel, options: Partial<EngineOptions> = {}) {
  server = await startServer({ agents: { a: agent() }, scripts: { m }, ...options })
  return { ...server, client: new MillraceClient({ url: server.url }) }
}

interface Watched extends AgentSession {
  until(matches: (state: SessionState) => boolean): Promise<SessionState>
  leave(): void
  /** How often it has told of a change. */
  readonly changes: number
}

function watch(options: SessionOptions): Watched {
  const session = createAgentSession(options)
  let again = Promise.withResolvers<void>()
  let changes = 0
  const leave = session.subscribe(() => {
    changes++
    again.resolve()
    again = Promise.withResolvers()
  })
  onTestFinished(leave)
  return {
    ...session,
    leave,
    get changes() {
      return changes
    },
    async until(matches) {
      while (!matches(session.getState())) await again.promise
      return session.getState()
    },
  }
}

const isReady = ({ status, messages }: SessionState) => status === 'ready' && messages.length > 0
const lines = ({ messages }: SessionState) =>
  messages.map(
    ({ role, parts }) => `${role}: ${parts.map((part) => ('text' in part ? part.text : part.type)).join(' ')}`,
  )

describe('client session', () => {
  test('a message, the answer as it comes, and the end; what has not changed is the same object', async () => {
    const gate = latch()
    const reasoning = [
      { type: 'reasoning-start', id: 'r' },
      { type: 'reasoning-delta', id: 'r', delta: 'hm' },
      { type: 'reasoning-end', id: 'r' },
    ] as const
    const m = createScriptedModel([
      [...reasoning, text('Hel'), gate, text('lo'), finish()],
      [text('Bye'), finish()],
    ])
    const { client } = await start(m)
    const session = watch({ client, agent: 'a' })
    expect(session.getState()).toEqual({ status: 'ready', messages: [], requests: [] })
    const sent = session.send('Hi')
    expect(lines(await session.until(({ status }) => status === 'submitted'))).toEqual(['user: Hi'])
    await sent
    const half = await session.until((state) => lines(state)[1] === 'assistant: hm Hel')
    expect([half.status, half.messages[1]!.parts.map((part) => ('state' in part ? part.state : ''))]).toEqual([
      'streaming',
      ['done', 'done'],
    ])
    gate.open()
    const whole = await session.until(isReady)
    expect(lines(whole)).toEqual(['user: Hi', 'assistant: hm Hel lo'])
    expect(whole.messages[1]).toMatchObject({ id: whole.runId, runId: whole.runId, outcome: 'completed' })
    expect(whole.messages[0]).toBe(half.messages[0])
    expect(whole.messages[1]!.parts[0]).toBe(half.messages[1]!.parts[0])
    await session.send('Bye')
    const two = await session.until((state) => isReady(state) && state.messages.length === 4)
    expect(two.messages[1]).toBe(whole.messages[1])
    expect(two.threadId).toBe(whole.threadId)
  })

  test('a reload in the middle: the conversation, what was said so far, and the rest as it comes', async () => {
    const gate = latch()
    const m = createScriptedModel([
      [text('Hello'), finish()],
      [text('Ro'), gate, text('me'), finish()],
    ])
    const { client } = await start(m)
    const first = watch({ client, agent: 'a', threadId: 't' })
    await first.send('Hi')
    await first.until(isReady)
    await first.send('Where?')
    const left = await first.until((state) => lines(state).at(-1) === 'assistant: Ro')
    first.leave()
    const back = watch({ client, agent: 'a', threadId: 't' })
    expect(back.getState().status).toBe('loading')
    const now = await back.until((state) => lines(state).at(-1) === 'assistant: Ro')
    expect([lines(now), now.status]).toEqual([lines(left), 'streaming'])
    expect(now.messages.map(({ id }) => id)).toEqual(left.messages.map(({ id }) => id))
    gate.open()
    expect(lines(await back.until(isReady)).at(-1)).toBe('assistant: Ro me')
    // And once more, when nothing runs: never as if it were streaming.
    const last = watch({ client, agent: 'a', threadId: 't' })
    const seen = new Set<string>([last.getState().status])
    last.subscribe(() => void seen.add(last.getState().status))
    expect(lines(await last.until(isReady))).toEqual([
      'user: Hi',
      'assistant: Hello',
      'user: Where?',
      'assistant: Ro me',
    ])
    expect([...seen]).toEqual(['loading', 'ready'])
  })

  test('a tool of the page with its states; a tool that must be confirmed is an open request with its question', async () => {
    const m = createScriptedModel([
      [toolCall('c1', 'title', {}), finish('tool-calls')],
      [toolCall('c2', 'pay', { euros: 5 }), finish('tool-calls')],
      [toolCall('c3', 'pay', { euros: 6 }), finish('tool-calls')],
      [text('Done.'), finish()],
    ])
    const { client } = await start(m)
    const paid: number[] = []
    const tools = {
      title: defineTool('The title', z.object({}), () => 'Home'),
      pay: defineTool('Pays', z.object({ euros: z.number() }), ({ euros }) => paid.push(euros), {
        confirm: ({ euros }) => `Pay ${euros}?`,
      }),
    }
    const session = watch({ client, agent: 'a', tools })
    await session.send('Hi')
    const asked = await session.until(({ requests }) => requests[0]?.message !== undefined)
    expect([asked.status, asked.requests[0]]).toEqual([
      'waiting',
      expect.objectContaining({ kind: 'approval', message: 'Pay 5?' }),
    ])
    const calls = (state: SessionState) =>
      state.messages[1]!.parts.flatMap((part) => (part.type === 'tool' ? [[part.toolCallId, part.state]] : []))
    expect(calls(asked)).toEqual([
      ['c1', 'output-available'],
      ['c2', 'approval-requested'],
    ])
    await session.answer(asked.requests[0]!.requestId, { approved: true })
    const next = await session.until(({ requests }) => requests[0]?.toolCallId === 'c3')
    await session.answer(next.requests[0]!.requestId, { approved: false, reason: 'no' })
    const done = await session.until(isReady)
    expect(calls(done)).toEqual([
      ['c1', 'output-available'],
      ['c2', 'output-available'],
      ['c3', 'output-denied'],
    ])
    expect([paid, lines(done)[1]]).toEqual([[5], 'assistant: tool tool tool Done.'])
  })

  test('stop, then a message while an answer runs: the first is stopped on the server', async () => {
    const m = createScriptedModel([
      [text('one'), latch(), finish()],
      [text('two'), latch(), finish()],
      [text('three'), finish()],
    ])
    const { client, store } = await start(m)
    const session = watch({ client, agent: 'a' })
    await session.send('Hi')
    await session.until((state) => lines(state)[1] === 'assistant: one')
    await session.stop()
    expect((await session.until(isReady)).messages[1]).toMatchObject({ outcome: 'aborted' })
    await session.send('Again')
    await session.until((state) => lines(state)[3] === 'assistant: two')
    await session.send('And again')
    const state = await session.until((now) => isReady(now) && now.messages.length === 6)
    expect(lines(state)).toEqual([
      'user: Hi',
      'assistant: one',
      'user: Again',
      'assistant: two',
      'user: And again',
      'assistant: three',
    ])
    expect((await store.runs.list({})).map(({ status }) => status)).toEqual(['completed', 'aborted', 'aborted'])
  })

  test('edit and regenerate replace what came after; the model is told what is shown', async () => {
    const m = createScriptedModel(['one', 'two', 'three', 'four'].map((word) => [text(word), finish()]))
    const { client } = await start(m)
    const session = watch({ client, agent: 'a' })
    await session.send('A')
    const first = (await session.until(isReady)).runId!
    await session.send('B')
    await session.until((state) => isReady(state) && state.messages.length === 4)
    await session.regenerate()
    expect(lines(await session.until((state) => isReady(state) && lines(state).at(-1) === 'assistant: three'))).toEqual(
      ['user: A', 'assistant: one', 'user: B', 'assistant: three'],
    )
    await session.edit(first, 'C')
    expect(lines(await session.until((state) => isReady(state) && lines(state).at(-1) === 'assistant: four'))).toEqual([
      'user: C',
      'assistant: four',
    ])
    expect(m.calls.at(-1)!.options.prompt).toHaveLength(1)
    await session.reload()
    expect(lines(await session.until(isReady))).toEqual(['user: C', 'assistant: four'])
  })

  test('a run that fails is an error with its message; a message that could not be sent is sent again, once', async () => {
    const m = createScriptedModel([[throws(new Error('broken'))], [text('Hello'), finish()]])
    const { client, url, store } = await start(m)
    const session = watch({ client, agent: 'a' })
    await session.send('Hi')
    const failed = await session.until(({ status }) => status === 'error')
    expect([failed.error?.code, lines(failed)]).toEqual(['model-failed', ['user: Hi', 'assistant: ']])
    let isAway = true
    const flaky = new MillraceClient({
      url,
      fetch: async (input, init) => (isAway ? Promise.reject(new Error('offline')) : fetch(input, init)),
    })
    const offline = watch({ client: flaky, agent: 'a' })
    await offline.send('Are you there?')
    const lost = await offline.until(({ status }) => status === 'error')
    expect([lost.error?.code, lines(lost)]).toEqual(['connection-lost', ['user: Are you there?']])
    isAway = false
    await offline.regenerate()
    expect(lines(await offline.until(isReady))).toEqual(['user: Are you there?', 'assistant: Hello'])
    expect(await store.runs.list({})).toHaveLength(2)
  })

  test('changes are told once per frame, however many entries come; a broken connection changes nothing', async () => {
    const words = Array.from({ length: 300 }, (_, i) => `word${i} `)
    const gate = latch()
    const m = createScriptedModel([[text(...words), gate, text(...words), finish()]])
    const { client, url } = await start(m)
    const proxy = await cuttingProxy(url)
    onTestFinished(() => proxy.close())
    const far = new MillraceClient({ url: proxy.url })
    const session = watch({ client: far, agent: 'a', threadId: 't' })
    await session.send('Hi')
    await session.until((state) => lines(state)[1]?.includes('word299') === true)
    proxy.cut()
    gate.open()
    expect(lines(await session.until(isReady))[1]).toBe(`assistant: ${words.join('')} ${words.join('')}`)
    expect(session.changes).toBeLessThan(200)
    expect((await client.thread('t').show()).messages).toHaveLength(2)
  })
})
