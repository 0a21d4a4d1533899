/**
 * Asked over Socket.IO, the server killed (SIGKILL), answered over AG-UI, `useChat` and REST at once: one answer counts, the side effect
 * happens once, the run goes on, and all three are told the same.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { UIMessage } from 'ai'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { AgUiEvent } from '../../src/wire/ag-ui/ag-ui-event.ts'
import { createChat } from '../support/chat.ts'
import { eventually } from '../support/going-on.ts'
import { framesOf } from '../support/server.ts'
import { spawnServer, type ServerProcess } from '../support/server-process.ts'
import { connectSocket, runInput, textOf } from '../support/socket.ts'
import { startUpstream, type Upstream } from '../support/upstream.ts'

const dir = mkdtempSync(join(tmpdir(), 'millrace-once-'))
const effects = join(dir, 'effects.txt')
let upstream: Upstream
let server: ServerProcess
/** The last words of each answer wait for it. */
const words = Promise.withResolvers<void>()

const yaml = `
workflow:
  - id: answer
    type: llm
    config:
      model: "up:m"
      stream: true
      tools:
        - { name: choose, client: true, parameters: { from: { type: string } } }
        - { name: pay, approval: true }
        - buy
`
// Plain JavaScript and JSON Schema: the folder has no packages to import from.
const config = `
import { appendFileSync } from 'node:fs'
const parameters = { type: 'object', properties: { what: { type: 'string' } } }
const execute = ({ what }, { threadId }) => {
  appendFileSync(${JSON.stringify(effects)}, threadId + ' ' + what + '\\n')
  return 'done: ' + what
}
export default { tools: { pay: { parameters, execute }, buy: { parameters, execute } } }
`

beforeAll(async () => {
  mkdirSync(join(dir, 'agents'))
  writeFileSync(join(dir, 'agents', 'shop.yaml'), yaml)
  writeFileSync(join(dir, 'agents', 'millrace.config.mjs'), config)
  writeFileSync(effects, '')
  upstream = await startUpstream(async (reply) => {
    const results = reply.body.messages.filter(({ role }) => role === 'tool')
    const asked = JSON.stringify(reply.body.messages.find(({ role }) => role === 'user'))
    const last = String(results.at(-1)?.content)
    if (results.length === 0) reply.call('call_1', asked.includes('choose') ? 'choose' : 'pay', { what: 'it' })
    else if (asked.includes('choose') && results.length === 1) reply.call('call_2', 'buy', { what: last })
    else {
      await words.promise
      reply.say(`I did: ${last}`)
      return reply.finish()
    }
    reply.finish('tool_calls')
  })
  await boot()
})
afterAll(async () => {
  await server?.kill()
  await upstream?.close()
  rmSync(dir, { recursive: true, force: true })
})

async function boot(): Promise<void> {
  server = await spawnServer(join(dir, 'agents'), join(dir, 'data'), '--endpoint', `up=${upstream.baseURL}`)
}

interface Asked {
  thread: string
  run: string
  requestId: string
}

const post = (path: string, body: unknown) =>
  fetch(server.url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })

async function ask(thread: string, question: string): Promise<Asked> {
  const client = await connectSocket(server.url)
  const messages = [{ id: `u-${thread}`, role: 'user', content: question }]
  const ack = await client.run({ threadId: thread, runId: thread, messages, forwardedProps: { agent: 'shop' } })
  const run = ack['millraceRunId'] as string
  const view = async () =>
    (await (await fetch(`${server.url}/api/runs/${run}`)).json()) as {
      status: string
      requests: { requestId: string }[]
    }
  await expect.poll(async () => (await view()).status, { interval: 50 }).toBe('suspended')
  const [request] = (await view()).requests
  return { thread, run, requestId: request!.requestId }
}

interface Told {
  status: number
  /** The end of the answer, or the code of the error. */
  said: string
  run: string
}
/** Sends the request; its result is there when the answer is complete. */
type Sent = { begun: Promise<unknown>; told: Promise<Told> }

/** `value`: the output of the tool, or whether it is approved. */
type Value = string | boolean

function rest({ run, requestId }: Asked, value: Value): Sent {
  const body = typeof value === 'boolean' ? { approved: value } : { output: value }
  const begun = post(`/api/runs/${run}/requests/${requestId}`, body)
  const told = begun.then(async (response): Promise<Told> => {
    const { answer, error } = (await response.json()) as { answer?: unknown; error?: { code: string } }
    return { status: response.status, said: error?.code ?? JSON.stringify(answer), run }
  })
  return { begun, told }
}

function agUi({ thread, requestId }: Asked, value: Value): Sent {
  const user = { id: `u-${thread}`, role: 'user', content: 'x' }
  const toolCalls = [{ id: 'call_1', type: 'function', function: { name: 'choose', arguments: '{}' } }]
  const result = { id: `t-${thread}`, role: 'tool', toolCallId: 'call_1', content: value }
  const resume = [{ interruptId: requestId, status: 'resolved', payload: { approved: value } }]
  const how =
    typeof value === 'boolean'
      ? { resume, messages: [user] }
      : {
          messages: [user, { id: 'a', role: 'assistant', toolCalls }, result],
        }
  const begun = post('/ag-ui/shop', runInput({ threadId: thread, runId: `${thread}-ag-ui`, ...how }))
  const told = begun.then(async (response): Promise<Told> => {
    const run = response.headers.get('x-millrace-run-id') ?? ''
    const text = await response.text()
    if (response.status !== 200) return { status: response.status, said: codeIn(text), run }
    return { status: 200, said: textOf(framesOf(text) as unknown as AgUiEvent[]), run }
  })
  return { begun, told }
}

function useChat({ thread, run, requestId }: Asked, value: Value): Sent {
  const part =
    typeof value === 'boolean'
      ? { type: 'tool-pay', state: 'approval-requested', approval: { id: requestId } }
      : { type: 'tool-choose', state: 'input-available' }
  const messages = [
    { id: `u-${thread}`, role: 'user', parts: [{ type: 'text', text: 'x' }] },
    {
      id: run,
      role: 'assistant',
      parts: [{ type: 'step-start' }, { toolCallId: 'call_1', input: { what: 'it' }, ...part }],
    },
  ] as unknown as UIMessage[]
  const over = Promise.withResolvers<void>()
  let isSent = false
  const { chat, errors, runs } = createChat(server.url, {
    id: thread,
    agentId: 'shop',
    messages,
    sendAutomaticallyWhen: () => !isSent && (isSent = true),
    onFinish: () => over.resolve(),
  })
  if (typeof value === 'boolean') void chat.addToolApprovalResponse({ id: requestId, approved: value })
  else void chat.addToolOutput({ tool: 'choose', toolCallId: 'call_1', output: value })
  const begun = eventually(() => runs.length > 0)
  const told = over.promise.then((): Told => {
    const [error] = errors
    if (error !== undefined) return { status: 409, said: codeIn(error.message), run: runs[0]! }
    const said = chat.lastMessage!.parts.map((each) => (each.type === 'text' ? each.text : '')).join('')
    return { status: 200, said, run: runs[0]! }
  })
  return { begun, told }
}

function codeIn(text: string): string {
  return /"code":"([\w-]+)"/u.exec(text)?.[1] ?? text
}

describe('requests answered once', () => {
  test('asked over Socket.IO, killed, answered from three places at once', { timeout: 120_000 }, async () => {
    const asked = {
      same: await ask('same', 'choose'),
      contrary: await ask('contrary', 'choose'),
      approved: await ask('approved', 'pay'),
      disputed: await ask('disputed', 'pay'),
    }
    await server.kill()
    await boot()
    const from = (each: Asked, [a, b, c]: readonly [Value, Value, Value]) => [
      agUi(each, a),
      useChat(each, b),
      rest(each, c),
    ]
    const sent = {
      same: from(asked.same, ['blue', 'blue', 'blue']),
      contrary: from(asked.contrary, ['red', 'green', 'blue']),
      approved: from(asked.approved, [true, true, true]),
      disputed: from(asked.disputed, [true, false, true]),
    }
    await Promise.all(Object.values(sent).flatMap((list) => list.map(({ begun }) => begun)))
    words.resolve()
    const told = async (name: keyof typeof sent) => Promise.all(sent[name].map((each) => each.told))
    const effectsOf = (thread: string) =>
      readFileSync(effects, 'utf8')
        .split('\n')
        .filter((line) => line.startsWith(`${thread} `))
    const ends = async ({ run }: Asked) => {
      const view = (await (await fetch(`${server.url}/api/runs/${run}`)).json()) as { status: string; text: string }
      return [view.status, view.text]
    }

    const same = await told('same')
    expect(same.map(({ status, run }) => [status, run])).toEqual(same.map(() => [200, asked.same.run]))
    expect(same.slice(0, 2).map(({ said }) => said)).toEqual(['I did: done: blue', 'I did: done: blue'])
    expect(JSON.parse(same[2]!.said)).toEqual({ kind: 'tool', output: 'blue' })
    expect(effectsOf('same')).toEqual(['same blue'])

    const contrary = await told('contrary')
    const winners = contrary.filter(({ status }) => status === 200)
    expect(winners).toHaveLength(1)
    expect(contrary.filter(({ status }) => status === 409).map(({ said }) => said)).toEqual([
      'answer-conflict',
      'answer-conflict',
    ])
    const colour = ['red', 'green', 'blue'][contrary.indexOf(winners[0]!)]
    expect(effectsOf('contrary')).toEqual([`contrary ${colour}`])
    await expect.poll(() => ends(asked.contrary)).toEqual(['completed', `I did: done: ${colour}`])

    const approved = await told('approved')
    expect(approved.map(({ status, run }) => [status, run])).toEqual(approved.map(() => [200, asked.approved.run]))
    expect(approved.slice(0, 2).map(({ said }) => said)).toEqual(['I did: done: it', 'I did: done: it'])
    expect(effectsOf('approved')).toEqual(['approved it'])

    const disputed = await told('disputed')
    const yes = disputed[0]!.status === 200
    expect(disputed.map(({ status }) => status)).toEqual(yes ? [200, 409, 200] : [409, 200, 409])
    expect(effectsOf('disputed')).toEqual(yes ? ['disputed it'] : [])
    await expect.poll(async () => (await ends(asked.disputed))[0]).toBe('completed')
    expect(server.stderr()).not.toMatch(/unhandled|TypeError/iu)
    const { runs } = (await (await fetch(`${server.url}/api/runs`)).json()) as { runs: unknown[] }
    expect(runs).toHaveLength(4)
  })
})
