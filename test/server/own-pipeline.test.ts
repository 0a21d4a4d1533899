/** YAML of a request at every door where people chat, with the clients of each: the same permission, bounds, errors and log. */
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { MillraceClient } from '../../src/client.ts'
import { longestText } from '../../src/server/turn/own-pipeline.ts'
import { createAgUiClient } from '../support/ag-ui.ts'
import { headersFor, createTestAccess, tokenOf, type Caller } from '../support/callers.ts'
import { createChat } from '../support/chat.ts'
import { agent, entriesOf, only } from '../support/engine.ts'
import { createTold } from '../support/going-on.ts'
import { finish, latch, text, type Latch } from '../../src/models/testing/scripted-model.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { connectSocket, textOf, user } from '../support/socket.ts'
import { toldWords } from '../support/steering.ts'

const file = agent('system: The file.', 'onBusy: steer\n')
const own = agent('system: Its own.', 'onBusy: steer\n')

/** Says its system prompt. */
const echo = () =>
  createTold((prompt) => [
    text(prompt.flatMap(({ role, content }) => (role === 'system' ? [String(content)] : [])).join('')),
    finish(),
  ])

interface Asked {
  threadId: string
  pipeline?: unknown
  caller?: Caller
}
/** What the client was told: the answer, or the error in the words of the server. */
interface Told {
  text?: string
  run?: string
  error?: string
}
type Door = (asked: Asked) => Promise<Told>

let server: TestServer
beforeAll(async () => {
  const access = createTestAccess()
  server = await startServer(
    { agents: { a: file }, scripts: { m: echo() } },
    { access, edit: true, maxBodyBytes: 2 ** 20 },
  )
})
afterAll(() => server.close())

const fieldsOf = ({ pipeline }: Asked) => (pipeline === undefined ? {} : { pipeline })

async function overRuns({ threadId, caller = 'admin', ...asked }: Asked): Promise<Told> {
  const input = { messages: [{ role: 'user', content: 'Hi' }] }
  const body = { agentId: 'a', threadId, input, ...fieldsOf({ threadId, ...asked }) }
  const response = await server.post('/api/runs', body, { headers: headersFor(caller) })
  const said = await response.text()
  if (!response.ok) return { error: said }
  const { id: run } = JSON.parse(said) as { id: string }
  const { text: words } = await (await server.runtime.open(run))!.result
  return { text: words, run }
}

async function overChat({ threadId, caller = 'admin', ...asked }: Asked): Promise<Told> {
  const { chat, errors, runs } = createChat(server.url, {
    id: threadId,
    body: fieldsOf({ threadId, ...asked }),
    headers: headersFor(caller),
  })
  await chat.sendMessage({ text: 'Hi' })
  if (errors[0] !== undefined) return { error: errors[0].message }
  const words = chat.messages
    .at(-1)!
    .parts.map((part) => (part.type === 'text' ? part.text : ''))
    .join('')
  return { text: words, run: runs[0]! }
}

async function overAgUi({ threadId, caller = 'admin', ...asked }: Asked): Promise<Told> {
  const client = createAgUiClient(server.url, { threadId, headers: headersFor(caller) })
  client.say('Hi')
  try {
    const { events, run } = await client.run({ forwardedProps: { city: 'Rome', ...fieldsOf({ threadId, ...asked }) } })
    return { text: textOf(events), run }
  } catch (error) {
    return { error: String((error as Error).message) }
  }
}

async function overSocket({ threadId, caller = 'admin', ...asked }: Asked): Promise<Told> {
  const client = await connectSocket(server.url, 'websocket', { auth: { token: tokenOf(caller) } })
  const runId = crypto.randomUUID()
  const messages = [{ id: crypto.randomUUID(), role: 'user', content: 'Hi' }]
  const forwardedProps = { agent: 'a', city: 'Rome', ...fieldsOf({ threadId, ...asked }) }
  const ack = await client.run({ runId, threadId, messages, forwardedProps })
  if (ack.error !== undefined) return { error: JSON.stringify(ack.error) }
  return { text: textOf(await client.ended(runId)), run: String(ack['millraceRunId']) }
}

const doors: [name: string, door: Door, place: string][] = [
  ['POST /api/runs', overRuns, 'pipeline'],
  ['useChat', overChat, 'pipeline'],
  ['AG-UI', overAgUi, 'forwardedProps.pipeline'],
  ['Socket.IO', overSocket, 'forwardedProps.pipeline'],
]

describe.each(doors)('%s', (name, ask, place) => {
  test('a run has the YAML of its request, as no input; its conversation keeps it through every door, until null', async () => {
    const threadId = `kept ${name}`
    expect((await ask({ threadId })).text).toBe('The file.')
    const { text: words, run = '' } = await ask({ threadId, pipeline: own })
    expect(words).toBe('Its own.')
    const [start] = only(await entriesOf(server.store, run), 'run-start')
    expect(start).toMatchObject({ agent: 'a', pipeline: own, ownPipeline: true })
    expect(JSON.stringify(start!.input)).not.toContain('Its own.')
    for (const [other, next] of doors) expect([other, (await next({ threadId })).text]).toEqual([other, 'Its own.'])
    expect((await ask({ threadId, pipeline: null })).text).toBe('The file.')
    expect((await ask({ threadId })).text).toBe('The file.')
    expect(server.runtime.agents.get('a')!.pipeline.text).toBe(file)
  })

  test('who may not edit agents gets a 403 and no run, but may ask for the file', async () => {
    for (const caller of ['alice', 'operator', 'admin of acme'] as const) {
      const threadId = `refused ${name}`
      const { error } = await ask({ threadId, pipeline: own, caller })
      expect([caller, error]).toEqual([caller, expect.stringContaining('forbidden')])
      // Before anybody looks at what it is.
      for (const pipeline of [1, 'workflow: 1', 'x'.repeat(longestText + 1)])
        expect((await ask({ threadId, pipeline, caller })).error).toContain('forbidden')
      expect(await ask({ threadId, pipeline: null, caller })).toMatchObject({ text: 'The file.' })
    }
    // A thread of the same name of another user has nothing of it.
    await ask({ threadId: 'mine', pipeline: own })
    expect((await ask({ threadId: 'mine', caller: 'alice' })).text).toBe('The file.')
  })

  test.each([
    ['workflow: 1', 'bad-pipeline', 'Line 1, column 11'],
    [`${own}x: 1\ny: 2\n`, 'bad-pipeline', 'Line 10, column 1: unknown key'],
    ['a: &a [*a', 'bad-pipeline', 'Line 1'],
    ['', 'bad-pipeline', 'Line 1'],
    [7, 'bad-input', 'the YAML of an agent, or null'],
    [{ workflow: [] }, 'bad-input', 'the YAML of an agent, or null'],
    [`${own}#${'x'.repeat(longestText)}`, 'bad-input', 'at most 256 KB'],
  ])('%o is refused with its place, and nothing is stored', async (pipeline, code, words) => {
    const threadId = `faults ${name}`
    const { error = '' } = await ask({ threadId, pipeline })
    expect(error).toContain(code)
    expect(error).toContain(words)
    expect(error.replaceAll('\\', '')).toContain(place)
    if (code === 'bad-pipeline') expect(error.replaceAll('\\', '')).toContain('"faults":[{"line":')
    expect(await server.store.runs.list({ threadId })).toEqual([])
  })
})

test('over Socket.IO the token for editing comes with the handshake', async () => {
  const locked = await startServer(
    { agents: { a: file }, scripts: { m: echo() } },
    { edit: true, editToken: 'let-me-edit' },
  )
  onTestFinished(() => locked.close())
  const ask = async (auth: object) => {
    const client = await connectSocket(locked.url, 'websocket', { auth })
    const ack = await client.run({ runId: 'r1', threadId: 't', forwardedProps: { agent: 'a', pipeline: own } })
    return ack.error?.code ?? textOf(await client.ended('r1'))
  }
  for (const editToken of [undefined, '', 'let-me-edi', ['let-me-edit'], 'let-me-edit\n', 'ł'])
    expect([editToken, await ask({ editToken })]).toEqual([editToken, 'forbidden'])
  expect(await ask({ editToken: 'let-me-edit' })).toBe('Its own.')
  expect(JSON.stringify(await entriesOf(locked.store, (await locked.store.runs.list({}))[0]!.id))).not.toContain(
    'let-me',
  )
})

test('a message goes into the active run only with the text that this has', async () => {
  const [first, more, last] = [latch(), latch(), latch()]
  const answersOf: Latch[] = [first, more, last]
  const m = createTold((prompt) => {
    const said = prompt.flatMap(({ role, content }) => (role === 'system' ? [String(content)] : [])).join('')
    return [text(`${said} ${toldWords(prompt).join(' | ')}`), ...answersOf.splice(0, 1), finish()]
  })
  const steering = await startServer({ agents: { a: file }, scripts: { m } }, { edit: true })
  onTestFinished(() => steering.close())
  const ask = async (words: string, pipeline?: string | null) => {
    const body = { agentId: 'a', id: 't', messages: [user(words)], ...(pipeline !== undefined && { pipeline }) }
    const response = await steering.post('/api/chat', body, { headers: { accept: 'text/plain' } })
    return { run: response.headers.get('x-millrace-run-id'), text: response.text() }
  }
  const one = await ask('One', own)
  await first.reached
  const into = ask('Two')
  await expect.poll(async () => (await steering.runtime.waiting(one.run!)).length).toBe(1)
  first.open()
  const two = await into
  expect(two.run).toBe(one.run)
  await more.reached
  // The file is another text: it waits for a run of its own.
  const apart = ask('Three', null)
  await expect.poll(async () => (await steering.store.runs.list({ threadId: 't' })).length).toBe(2)
  more.open()
  last.open()
  const three = await apart
  expect(three.run).not.toBe(one.run)
  expect(await two.text).toMatch(/^Its own\. .*Two/u)
  expect(await three.text).toMatch(/^The file\. .*Three/u)
})

test('without a key only the page of the server itself sends YAML, over Socket.IO as over HTTP; other pages go on with what is there', async () => {
  const origin = 'https://app.example'
  const options = { localOnly: true, allowedOrigins: [origin], edit: true, authorize: undefined as never }
  const local = await startServer({ agents: { a: file }, scripts: { m: echo() } }, options)
  onTestFinished(() => local.close())
  const itself = new URL(local.url).origin
  let n = 0
  const ask = async (page: string, pipeline?: string | null) => {
    const client = await connectSocket(local.url, 'websocket', { extraHeaders: { origin: page } })
    const forwardedProps = { agent: 'a', ...(pipeline !== undefined && { pipeline }) }
    const runId = `r${n++}`
    const ack = await client.run({ runId, threadId: 't', messages: [user(`Hi ${runId}`)], forwardedProps })
    return ack.error?.code ?? textOf(await client.ended(runId))
  }
  expect(await ask(origin, own)).toBe('forbidden')
  expect(await ask('http://localhost:5173', own)).toBe('forbidden')
  expect(await ask(itself, own)).toBe('Its own.')
  expect(await ask(origin)).toBe('Its own.')
  expect(await ask(origin, null)).toBe('The file.')
})

test('millrace/client sends it, takes it back, and tells the line of a mistake', async () => {
  const client = new MillraceClient({ url: server.url, headers: headersFor('admin') })
  const ask = (more: object = {}) => client.run({ agent: 'a', messages: 'Hi', threadId: 'client', ...more }).text
  expect(await ask({ pipeline: own })).toBe('Its own.')
  expect(await ask()).toBe('Its own.')
  expect(await ask({ pipeline: null })).toBe('The file.')
  await expect(client.start({ agent: 'a', pipeline: `${own}x: 1` })).rejects.toMatchObject({
    code: 'bad-pipeline',
    status: 422,
    message: expect.stringContaining('Line 10, column 1: unknown key "x"'),
  })
})
