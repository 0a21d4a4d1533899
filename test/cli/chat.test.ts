/** `millrace chat`: on a pseudo-terminal and from a pipe, with a live server and without one. */
import { describe, expect, onTestFinished, test } from 'vitest'
import type { RunRow } from '../../src/part/log.ts'
import { folder, millrace, ran, serving } from '../support/cli.ts'
import { askingAgent as tools, onTerminal } from '../support/terminal.ts'
import { startUpstream, type UpstreamReply } from '../support/upstream.ts'

const onUpstream = `metadata: { name: Upstream, description: "Counts messages" }
workflow:
  - { id: answer, type: llm, config: { model: "up:m", stream: true } }
`
const rowsOf = async (cwd: string) => JSON.parse((await ran(['ps', '--json'], { cwd })).out) as RunRow[]

/** What a model was told, as its roles and its last words. */
function told({ body }: UpstreamReply): string {
  const roles = body.messages.map(({ role }) => role[0]).join('')
  return `${roles} ${String(body.messages.at(-1)!.content)}`
}

async function upstream(answer: (reply: UpstreamReply, n: number) => unknown) {
  const server = await startUpstream(answer)
  onTestFinished(() => server.close())
  return { flags: ['--endpoint', `up=${server.baseURL}`], requests: server.requests }
}

const counting = (reply: UpstreamReply) => {
  reply.say(`told: ${told(reply)}.`)
  reply.finish()
}

test.each([true, false])('from a pipe a line is a message, and the thread is kept (server: %s)', async (hasServer) => {
  const { flags } = await upstream(counting)
  const cwd = folder({ 'agents/up.yaml': onUpstream })
  if (hasServer) await serving(flags, { cwd })
  const input = 'One\n\nTwo\n/new\nThree\n//four\n'
  const chat = await ran(['chat', 'up', ...flags], { cwd, input })
  expect(chat).toEqual({
    code: 0,
    out: 'told: u One.\ntold: uau Two.\ntold: u Three.\ntold: uau /four.\n',
    err: 'Started a new conversation.\n',
  })
  const rows = await rowsOf(cwd)
  expect(rows.map(({ title }) => title)).toEqual(['/four', 'Three', 'Two', 'One'])
  const [, , two, one] = rows
  expect(two!.threadId).toBe(one!.threadId)
  // Another process goes on with the thread.
  const more = await ran(['chat', 'up', '--thread', one!.threadId, ...flags], { cwd, input: 'More' })
  expect([more.code, more.out]).toEqual([0, 'told: uauau More.\n'])
  const once = await ran(['run', 'up', '--thread', one!.threadId, '-m', 'Last', ...flags], { cwd })
  expect([once.code, once.out]).toEqual([0, 'told: uauauau Last.\n'])
})

test('in memory the thread is kept for as long as the chat lasts', async () => {
  const { flags } = await upstream(counting)
  const cwd = folder({ 'agents/up.yaml': onUpstream })
  const chat = await ran(['chat', '--data', 'none', ...flags], { cwd, input: 'One\nTwo\n' })
  expect(chat).toEqual({ code: 0, out: 'told: u One.\ntold: uau Two.\n', err: '' })
})

test('an agent whose clients keep the history is sent it', async () => {
  const { flags } = await upstream(counting)
  const cwd = folder({ 'agents/up.yaml': `history: client\n${onUpstream}` })
  const chat = await ran(['chat', ...flags], { cwd, input: 'One\nTwo\n/new\nThree\n' })
  expect([chat.code, chat.out]).toEqual([0, 'told: u One.\ntold: uau Two.\ntold: u Three.\n'])
})

test('from a pipe a failure is exit 1, an unknown command exit 2, and what waits for an answer ends the chat', async () => {
  const { flags } = await upstream((reply, n) => {
    if (n === 1) return reply.refuse(400, { error: { message: 'No such model' } })
    counting(reply)
  })
  const cwd = folder({ 'agents/up.yaml': onUpstream, 'agents/ask.yaml': tools })
  const failed = await ran(['chat', 'up', ...flags], { cwd, input: 'One\nTwo\n' })
  expect([failed.code, failed.out]).toEqual([1, expect.stringMatching(/^told: u.* Two\.\n$/)])
  expect(failed.err).toMatch(/^failed: .*No such model/)
  const unknown = await ran(['chat', 'up', ...flags], { cwd, input: '/nw\n' })
  expect([unknown.code, unknown.err]).toEqual([2, expect.stringContaining('no command /nw (did you mean "/new"?)')])
  const waiting = await ran(['chat', 'ask', ...flags], {
    cwd,
    input: 'Use the tool askUser with question "Which town?"\nHello\n',
  })
  expect([waiting.code, waiting.err]).toEqual([
    1,
    expect.stringMatching(/\n {2}millrace answer run_\w+ '<JSON or text>' --endpoint up=\S+\n$/),
  ])
  expect(waiting.out).not.toContain('Hello')
  for (const [args, message] of [
    [['chat', 'uq'], /no agent "uq" \(did you mean "up"\?\)/],
    [['chat', 'no/such.yaml'], /There is no agent file/],
    [['chat', '--dir', 'nowhere'], /no folder of agents at nowhere/],
  ] as const) {
    expect(await ran([...args, ...flags], { cwd })).toMatchObject({
      code: 2,
      out: '',
      err: expect.stringMatching(message),
    })
  }
})

test('a thread is continued with the history of a client, and with its agent', async () => {
  const { flags } = await upstream(counting)
  const cwd = folder({ 'agents/a.yaml': onUpstream, 'agents/up.yaml': `history: client\n${onUpstream}` })
  await serving(flags, { cwd })
  await ran(['chat', 'up', ...flags], { cwd, input: 'One\nTwo\n' })
  const [{ threadId }] = (await rowsOf(cwd)) as [RunRow]
  const more = await ran(['chat', '--thread', threadId, ...flags], { cwd, input: 'Three\nFour\n/new\nFive\n' })
  expect([more.code, more.out]).toEqual([0, 'told: uauau Three.\ntold: uauauau Four.\ntold: u Five.\n'])
  expect((await rowsOf(cwd)).map(({ agent }) => agent)).toEqual(['up', 'up', 'up', 'up', 'up'])
})

/** A thread whose only run waits for a tool of the client. */
async function waitingThread(cwd: string, message = 'Use the tool askUser with question "Which town?"') {
  const { code } = await ran(['run', 'ask', '-m', message], { cwd })
  expect(code).toBe(1)
  const [{ id, threadId, status }] = (await rowsOf(cwd)) as [RunRow]
  expect(status).toBe('suspended')
  return { id, threadId }
}

test('from a pipe a message that ends a suspended run of its thread is warned of; run warns too', async () => {
  const cwd = folder({ 'agents/ask.yaml': tools })
  for (const args of [
    ['chat', 'ask'],
    ['run', 'ask'],
  ]) {
    const { id, threadId } = await waitingThread(cwd)
    const empty = await ran([...args, '--thread', threadId], { cwd, input: '\n' })
    expect(empty.err).not.toContain('warning')
    const { code, err } = await ran([...args, '--thread', threadId], { cwd, input: 'Hello\n' })
    const warning = `warning: ${id} of this thread waits for an answer (askUser); a new message ends that run\n`
    expect([code, err.includes(warning)]).toEqual([0, true])
    const again = await ran([...args, '--thread', threadId], { cwd, input: 'Hello\n' })
    expect([again.code, again.err.includes('warning')]).toEqual([0, false])
    const row = (await rowsOf(cwd)).find((each) => each.id === id)
    expect(row!.status).toBe('aborted')
  }
})

test('from a pipe --yes approves what the thread waits for, before the first message', async () => {
  const cwd = folder({ 'agents/ask.yaml': tools })
  const server = await serving([], { cwd })
  const headers = { 'content-type': 'application/json' }
  const body = JSON.stringify({ agentId: 'ask', input: { messages: [{ role: 'user', content: 'What is 12*7?' }] } })
  const started = await fetch(`${server.url}/api/runs`, { method: 'POST', headers, body })
  const { id } = (await started.json()) as { id: string }
  await expect.poll(async () => (await rowsOf(cwd))[0]!.status).toBe('suspended')
  const [{ threadId }] = (await rowsOf(cwd)) as [RunRow]
  const chat = await ran(['chat', 'ask', '--yes', '--thread', threadId], { cwd, input: 'Hello\n' })
  expect([chat.code, chat.out.split('\n')[0], chat.err.includes('warning')]).toEqual([0, '12*7 = 84.', false])
  expect((await rowsOf(cwd)).find((row) => row.id === id)!.status).toBe('completed')
})

/** The prompt is there, and nothing behind it. */
const prompted = (chat: { readonly shown: string }, agent = 'up') =>
  expect.poll(() => chat.shown, { interval: 10 }).toMatch(new RegExp(`${agent}> \u001b\\[\\d+G$`, 'u'))

describe('on a terminal', () => {
  test('tools and approvals are shown inline; /agents, /agent, /help, a slip, /exit', async () => {
    const cwd = folder({
      'agents/a.yaml': tools,
      'agents/b.yaml': tools.replace('workflow', 'metadata: { name: Bee }\nworkflow'),
    })
    const chat = onTerminal(['chat'], { cwd, env: { NO_COLOR: '1' }, columns: 120 })
    await chat.until('Chatting with a. Type /help for commands, Ctrl-D to exit.')
    await chat.until('a> ')
    chat.type('What is 12*7?\r')
    await chat.until('→ calculator {"expression":"12*7"}')
    await chat.until('Allow calculator {"expression":"12*7"}? [y/N]')
    chat.type('y\r')
    await chat.until('← calculator {"result":84}')
    await chat.until('12*7 = 84.\r\n')
    chat.type('Use the tool askUser with question "\u202etxt"\r')
    await chat.until(String.raw`askUser {"question":"\u202etxt"} runs in the client.`)
    chat.type('{"town":"Ghent"}\r')
    await chat.until('askUser gave {"town":"Ghent"}.')
    chat.type('/agnts\r')
    await chat.until('did you mean "/agents"?')
    chat.type('/agents\r')
    await chat.until('b      Bee')
    expect(chat.shown).toMatch(/\* +a/)
    chat.type('/help\r')
    await chat.until('Chat with another agent')
    chat.type('/agent b\r')
    await chat.until('Chatting with b in a new conversation.')
    await chat.until('b> ')
    chat.type('/exit\r')
    expect(await chat.exit).toBe(0)
    const [last, first] = await rowsOf(cwd)
    expect([first!.threadId, last!.agent]).toEqual([last!.threadId, 'a'])
  })

  test.each([true, false])(
    'Ctrl-C stops the answer, then leaves; the history is at the arrow keys (server: %s)',
    async (hasServer) => {
      const { flags, requests } = await upstream((reply, n) => {
        reply.say(n === 1 ? 'Half an answer' : `told: ${told(reply)}.`)
        if (n > 1) reply.finish()
      })
      const cwd = folder({ 'agents/up.yaml': onUpstream })
      if (hasServer) await serving(flags, { cwd })
      const chat = onTerminal(['chat', 'up', ...flags], { cwd, env: { NO_COLOR: '1' }, columns: 120 })
      await chat.until('up> ')
      chat.type('First\r')
      await chat.until('Half an answer')
      chat.type('\u0003')
      await chat.until('aborted: Stopped with Ctrl-C')
      await requests[0]!.left
      chat.type('Second\r')
      await chat.until('told: uau Second.')
      // Up twice is the first message.
      chat.type('\u001b[A\u001b[A\r')
      await chat.until('told: uauau First.')
      chat.type('/new\r')
      await chat.until('Started a new conversation.')
      // Two lines that are pasted are two messages.
      chat.type('Third\rFourth\r')
      await chat.until('told: u Third.')
      await chat.until('told: uau Fourth.')
      // What has been typed is dropped first.
      await prompted(chat)
      chat.type('Fif\u0003\u0003')
      expect(await chat.exit).toBe(130)
      expect(chat.shown).toMatch(/Continue with: millrace chat up --thread thread_\w+/)
      expect((await rowsOf(cwd)).map(({ status, title }) => `${status} ${title}`)).toEqual([
        'completed Fourth',
        'completed Third',
        'completed First',
        'completed Second',
        'aborted First',
      ])
    },
  )

  test('what a run of the thread waits for is asked before the first message', async () => {
    const cwd = folder({ 'agents/ask.yaml': tools })
    const { id, threadId } = await waitingThread(cwd)
    const chat = onTerminal(['chat', '--thread', threadId], { cwd, env: { NO_COLOR: '1' }, columns: 120 })
    await chat.until(`Continuing ${threadId}.`)
    await chat.until(`${id} waits for your answer (Ctrl-C ends the run):`)
    await chat.until('askUser {"question":"Which town?"} runs in the client.')
    chat.type('Ghent\r')
    await chat.until('askUser gave Ghent.')
    await prompted(chat, 'ask')
    chat.type('\u0004')
    expect(await chat.exit).toBe(0)
    expect((await rowsOf(cwd)).map(({ status }) => status)).toEqual(['completed'])
  })

  test('Ctrl-C at what a thread waits for ends that run, and the chat goes on', async () => {
    const cwd = folder({ 'agents/ask.yaml': tools })
    const { threadId } = await waitingThread(cwd)
    const chat = onTerminal(['chat', '--thread', threadId], { cwd, env: { NO_COLOR: '1' }, columns: 120 })
    await chat.until('askUser {"question":"Which town?"} runs in the client.')
    chat.type('\u0003')
    await chat.until('aborted: Stopped with Ctrl-C')
    await prompted(chat, 'ask')
    chat.type('Hello\r')
    await chat.until('I am the Millrace demo model')
    await prompted(chat, 'ask')
    chat.type('\u0004')
    expect(await chat.exit).toBe(0)
    expect((await rowsOf(cwd)).map(({ status }) => status)).toEqual(['completed', 'aborted'])
  })

  test('what another command may be asking is left to it', async () => {
    const { flags, requests } = await upstream((reply) => reply.say('Half'))
    const cwd = folder({ 'agents/ask.yaml': tools, 'agents/up.yaml': onUpstream })
    const { id, threadId } = await waitingThread(cwd)
    const other = millrace(['run', 'up', '-m', 'Hi', ...flags], { cwd })
    await other.until('Half')
    const chat = onTerminal(['chat', '--thread', threadId], { cwd, env: { NO_COLOR: '1' }, columns: 200 })
    await chat.until(`To answer it first:\r\n  millrace answer ${id} '<JSON or text>'`)
    await prompted(chat, 'ask')
    chat.type('\u0004')
    expect(await chat.exit).toBe(0)
    expect(requests).toHaveLength(1)
    expect(chat.shown).not.toContain('runs in the client')
  })

  test('a chat that waits for its user keeps no server from starting, and goes on there', async () => {
    const { flags } = await upstream(counting)
    const cwd = folder({ 'agents/up.yaml': onUpstream })
    const chat = onTerminal(['chat', ...flags], { cwd, env: { NO_COLOR: '1' }, columns: 120 })
    await chat.until('up> ')
    chat.type('One\r')
    await chat.until('told: u One.')
    await prompted(chat)
    const server = await serving(flags, { cwd })
    chat.type('Two\r')
    await chat.until('told: uau Two.')
    const { runs } = (await (await fetch(`${server.url}/api/runs`)).json()) as { runs: RunRow[] }
    expect(runs.map(({ title, protocol }) => [title, protocol])).toEqual([
      ['Two', 'api'],
      ['One', 'cli'],
    ])
    server.kill('SIGTERM')
    await server.exit
    chat.type('Three\r')
    await chat.until('told: uauau Three.')
    await prompted(chat)
    chat.type('\u0004')
    expect(await chat.exit).toBe(0)
  })

  test('nothing that a model says or calls is a command to the terminal', async () => {
    const hostile = '\u001b[31mred\u009b2J\u001b]0;title\u0007'
    const { flags } = await upstream((reply, n) => {
      if (n > 1) {
        reply.say(`Done ${hostile}`)
        return reply.finish()
      }
      reply.call('call_1', 'calculator', { expression: hostile })
      reply.finish('tool_calls')
    })
    const agent = onUpstream.replace('stream: true', 'stream: true, tools: [calculator]')
    const cwd = folder({ 'agents/up.yaml': agent })
    const chat = onTerminal(['chat', ...flags], { cwd, env: { NO_COLOR: '1' }, columns: 200 })
    await prompted(chat)
    chat.type('Go\r')
    await chat.until(String.raw`Done \u001b[31mred\u009b2J\u001b]0;title\u0007`)
    await prompted(chat)
    chat.type('\u0004')
    expect(await chat.exit).toBe(0)
    expect(chat.shown).toContain('→ calculator {')
    expect(chat.shown).toContain('← calculator')
    for (const piece of ['\u001b[31m', '\u009b', '\u001b]0', '\u0007']) expect(chat.shown).not.toContain(piece)
  })
})

/** A chat with a server, in the middle of the first answer. `isWaiting`: until one message waits for the run to take it. */
async function chatting(flags: string[]) {
  const cwd = folder({ 'agents/up.yaml': onUpstream })
  const server = await serving(flags, { cwd })
  const chat = onTerminal(['chat', 'up', ...flags], { cwd, env: { NO_COLOR: '1' }, columns: 120 })
  await chat.until('up> ')
  chat.type('One\r')
  await chat.until('told: u One.')
  const waiting = async () => {
    const [{ id }] = (await rowsOf(cwd)) as [RunRow]
    const view = (await (await fetch(`${server.url}/api/runs/${id}`)).json()) as { waiting?: object[] }
    return view.waiting?.length
  }
  return { cwd, chat, isWaiting: () => expect.poll(waiting).toBe(1) }
}

test('Enter sends a line into the answer that is written; a late one is the next message, and its answer follows', async () => {
  const gates = Array.from({ length: 2 }, () => Promise.withResolvers<void>())
  const { flags, requests } = await upstream(async (reply, n) => {
    reply.say(`told: ${told(reply)}.`)
    await gates[n - 1]?.promise
    reply.finish()
  })
  const { cwd, chat, isWaiting } = await chatting(flags)
  chat.type('Two\nThr')
  await isWaiting()
  gates[0]!.resolve()
  await chat.until('told: uau Two.')
  expect(chat.shown).toContain('» Two')
  gates[1]!.resolve()
  // What was not finished stands at the prompt.
  await chat.until('\u001b[5GThr')
  chat.type('ee\r')
  await chat.until('told: uauau Three.')
  await prompted(chat)
  chat.type('\u0004')
  await chat.exit
  expect(requests).toHaveLength(3)
  expect(await rowsOf(cwd)).toHaveLength(2)
})

test('what a stop has dropped stands at the prompt; a command that is typed into an answer waits for the prompt', async () => {
  const { flags, requests } = await upstream(async (reply, n) => {
    reply.say(`told: ${told(reply)}.`)
    if (n > 1) reply.finish()
  })
  const { chat, isWaiting } = await chatting(flags)
  chat.type('/help\nTwo\nand')
  await isWaiting()
  chat.type('\u0003')
  await chat.until('/exit')
  await chat.until('\u001b[5GTwo and')
  chat.type(' more\r')
  await chat.until('Two and more.')
  await prompted(chat)
  chat.type('\u0004')
  await chat.exit
  expect(requests).toHaveLength(2)
})
