/** An approval asked of an OpenAI client: told, answered over the API, and the rest of the answer fetched by the same client. */
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { ChatOpenAI } from '@langchain/openai'
import { generateText, jsonSchema, streamText, tool, type JSONSchema7 } from 'ai'
import OpenAI from 'openai'
import { zodResponseFormat } from 'openai/helpers/zod'
import { describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { memoryStore } from '../../src/store/memory-store.ts'
import { finish, text, toolCall, type ScriptStep } from '../../src/models/testing/scripted-model.ts'
import { agent, entriesOf, only } from '../support/engine.ts'
import { createTold, resultsIn, type Told } from '../support/going-on.ts'
import { startServer } from '../support/server.ts'
import { clientTools } from '../support/openai.ts'

type Messages = OpenAI.ChatCompletionMessageParam[]
const asked: Messages = [{ role: 'user', content: 'Pay 5' }]
/** What the finish frame, or the body, says besides. */
interface Aside {
  runId: string
  threadId: string
  requests?: { requestId: string; kind: string; toolCallId: string; toolName: string; input: unknown }[]
  denied?: { toolCallId: string; toolName: string; reason: string }[]
}
interface Got {
  content: string
  reason: string | undefined
  aside: Aside | undefined
  usage: OpenAI.CompletionUsage | undefined
  calls: number
  roles: number
}

function outcomesIn(prompt: Told['prompts'][number]): string[] {
  return [...resultsIn(prompt)].map(
    ([id, output]) => `${id}: ${JSON.stringify((output as { value?: unknown }).value ?? output)}`,
  )
}

async function start(
  script: (prompt: Told['prompts'][number]) => ScriptStep[],
  more: object = {},
  config = '',
  handler = {},
) {
  const paid: unknown[] = []
  const m = createTold(script)
  const server = await startServer(
    {
      agents: { a: agent(`tools: [{ name: pay, approval: true }]${config}`) },
      scripts: { m },
      tools: {
        pay: {
          parameters: z.object({ sum: z.number(), note: z.string().optional() }),
          execute: (input: unknown) => {
            paid.push(input)
            return `receipt ${paid.length}`
          },
        },
      },
      ...more,
    },
    handler,
  )
  onTestFinished(() => server.close())
  const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'none', maxRetries: 0 })
  const answer = async ({ runId, requests }: Aside, approved: boolean, i = 0, reason?: string) => {
    const path = `/api/runs/${runId}/requests/${requests![i]!.requestId}`
    const response = await server.post(path, { approved, reason })
    expect(response.status).toBe(200)
  }
  return { server, client, m, paid, answer }
}

const payOnce = (prompt: Told['prompts'][number]): ScriptStep[] => {
  const results = outcomesIn(prompt)
  if (results.length === 0)
    return [text('I pay. '), toolCall('call_1', 'pay', { sum: 5 }), finish('tool-calls', { in: 10, out: 2 })]
  return [text(`Done: ${results.join(', ')}`), finish('stop', { in: 20, out: 3 })]
}

const ways = {
  async stream(client: OpenAI, messages: Messages, more: object = {}): Promise<Got> {
    const stream = await client.chat.completions.create({
      model: 'a',
      messages,
      stream: true,
      stream_options: { include_usage: true },
      ...more,
    })
    const got: Got = { content: '', reason: undefined, aside: undefined, usage: undefined, calls: 0, roles: 0 }
    for await (const chunk of stream) {
      got.usage = chunk.usage ?? got.usage
      got.aside = (chunk as { millrace?: Aside }).millrace ?? got.aside
      const [choice] = chunk.choices
      got.content += choice?.delta.content ?? choice?.delta.refusal ?? ''
      got.reason = choice?.finish_reason ?? got.reason
      got.calls += choice?.delta.tool_calls?.filter(({ id }) => id !== undefined).length ?? 0
      if (choice?.delta.role !== undefined) got.roles++
    }
    return got
  },
  async helper(client: OpenAI, messages: Messages, more: object = {}): Promise<Got> {
    const options = { model: 'a', messages, stream_options: { include_usage: true }, ...more }
    return toGot(await client.chat.completions.stream(options).finalChatCompletion())
  },
  async json(client: OpenAI, messages: Messages, more: object = {}): Promise<Got> {
    return toGot(await client.chat.completions.create({ model: 'a', messages, ...more }))
  },
}

function toGot(completion: OpenAI.ChatCompletion): Got {
  const { message, finish_reason: reason } = completion.choices[0]!
  const aside = (completion as { millrace?: Aside }).millrace
  const content = message.content ?? message.refusal ?? ''
  return { content, reason, aside, usage: completion.usage, calls: message.tool_calls?.length ?? 0, roles: 1 }
}

const names = Object.keys(ways) as (keyof typeof ways)[]

describe('OpenAI: approvals', () => {
  test.each(names)('%s: told, approved over the API; the conversation sent again gets the rest', async (way) => {
    const { server, client, paid, answer } = await start(payOnce)
    const first = await ways[way](client, asked)
    expect(first).toMatchObject({
      reason: 'stop',
      calls: 0,
      roles: 1,
      usage: { prompt_tokens: 10, completion_tokens: 2 },
    })
    const { runId, threadId, requests } = first.aside!
    const row = (await server.store.runs.get(runId))!
    expect([row.status, row.threadId]).toEqual(['suspended', threadId])
    expect(requests).toEqual([
      {
        requestId: expect.any(String),
        kind: 'approval',
        toolCallId: 'call_1',
        toolName: 'pay',
        input: { sum: 5 },
        deadline: expect.any(Number),
      },
    ])
    const { requestId } = requests![0]!
    expect(first.content).toMatch(/^I pay\. \n\nThis call waits for approval and has not run:\n- pay\(\{"sum":5\}\): /u)
    expect(first.content).toContain(`POST /api/runs/${runId}/requests/${requestId} with {"approved": true}`)
    expect(first.content).toContain(`millrace answer ${runId}`)
    expect(paid).toEqual([])

    const conversation: Messages = [...asked, { role: 'assistant', content: first.content }]
    // Not answered yet: told again, without the text that the client has.
    const again = await ways[way](client, conversation)
    expect(again).toMatchObject({ reason: 'stop', aside: { runId, requests }, roles: 1, usage: { prompt_tokens: 0 } })
    expect(again.content).toMatch(/^This call waits/u)
    await answer(first.aside!, true)
    const rest = await ways[way](client, conversation)
    expect(rest).toMatchObject({
      content: 'Done: call_1: "receipt 1"',
      reason: 'stop',
      aside: undefined,
      calls: 0,
      roles: 1,
      usage: { prompt_tokens: 20, completion_tokens: 3 },
    })
    expect(await ways[way](client, conversation)).toEqual(rest)
    expect(paid).toEqual([{ sum: 5 }])
    expect(await server.store.runs.list()).toHaveLength(1)
    expect(server.reported).toEqual([])
  })

  test('two approvals: each is told and answered by itself, and one denied is told to the model with its reason', async () => {
    const two = (prompt: Told['prompts'][number]): ScriptStep[] =>
      outcomesIn(prompt).length === 0
        ? [
            toolCall('call_1', 'pay', { sum: 5 }),
            toolCall('call_2', 'pay', { sum: 6, note: 'x'.repeat(5000) }),
            finish('tool-calls'),
          ]
        : [text(outcomesIn(prompt).join(', ')), finish()]
    const { client, paid, answer } = await start(two)
    const first = await ways.stream(client, asked)
    expect(first.content).toMatch(/^These calls wait for approval and have not run:\n/u)
    // People see shortened arguments, programs all of them.
    expect(first.content.length).toBeLessThan(1500)
    expect(first.aside!.requests!.map(({ toolCallId }) => toolCallId)).toEqual(['call_1', 'call_2'])
    await answer(first.aside!, true)
    const second = await ways.stream(client, [...asked, { role: 'assistant', content: first.content }])
    expect(second.aside!.requests!.map(({ toolCallId }) => toolCallId)).toEqual(['call_2'])
    await answer(second.aside!, false, 0, 'too much')
    const rest = await ways.stream(client, [
      ...asked,
      { role: 'assistant', content: first.content },
      { role: 'assistant', content: second.content },
    ])
    expect(rest.content).toMatch(/^call_1: "receipt 1", call_2: .*too much/u)
    expect(paid).toEqual([{ sum: 5 }])
  })

  test('a conversation that goes on: with what the run recorded once it was answered; else the call is closed and never runs', async () => {
    const { server, client, paid, answer, m } = await start((prompt) => {
      if (outcomesIn(prompt).length > 0) return [text(`I know: ${outcomesIn(prompt).join(', ')}`), finish()]
      return payOnce(prompt)
    })
    const first = await ways.json(client, asked)
    await answer(first.aside!, true)
    const next = await ways.json(client, [
      ...asked,
      { role: 'assistant', content: first.content },
      { role: 'user', content: 'And?' },
    ])
    expect(next.content).toBe('I know: call_1: "receipt 1"')
    expect(m.prompts.at(-1)!.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'assistant', 'user'])
    expect(JSON.stringify(m.prompts.at(-1))).not.toContain('waits for approval')

    const other = await ways.json(client, asked)
    const gone = await ways.json(client, [
      ...asked,
      { role: 'assistant', content: other.content },
      { role: 'user', content: 'Never mind.' },
    ])
    expect(gone.content).toContain('Do not assume that it ran')
    const path = `/api/runs/${other.aside!.runId}/requests/${other.aside!.requests![0]!.requestId}`
    expect((await server.post(path, { approved: true })).status).toBe(409)
    expect(paid).toHaveLength(1)
  })

  test('a request of the same thread that does not go on with it (a title) leaves the run waiting', async () => {
    const { server, client, paid, answer } = await start((prompt) =>
      JSON.stringify(prompt).includes('title') ? [text('A title'), finish()] : payOnce(prompt),
    )
    const headers = { headers: { 'X-Thread-Id': 't1' } }
    const first = await client.chat.completions.create({ model: 'a', messages: asked }, headers)
    const title = await client.chat.completions.create(
      { model: 'a', messages: [{ role: 'user', content: 'Write a title' }] },
      headers,
    )
    expect(title.choices[0]!.message.content).toBe('A title')
    const { aside, content } = toGot(first)
    expect((await server.store.runs.get(aside!.runId))!.status).toBe('suspended')
    await answer(aside!, true)
    const messages: Messages = [...asked, { role: 'assistant', content }]
    const rest = await client.chat.completions.create({ model: 'a', messages }, headers)
    expect(rest.choices[0]!.message.content).toBe('Done: call_1: "receipt 1"')
    expect(paid).toHaveLength(1)
  })

  test.each(names)(
    '%s: beside a tool of the client: both are told; its result and the outcome meet in the next turn',
    async (way) => {
      const { client, answer, paid } = await start((prompt) => {
        if (outcomesIn(prompt).length > 0) return [text(outcomesIn(prompt).join(', ')), finish()]
        return [toolCall('call_1', 'pay', { sum: 5 }), toolCall('own', 'confirm', {}), finish('tool-calls')]
      })
      const first = await ways[way](client, asked, { tools: clientTools })
      expect(first).toMatchObject({ reason: 'tool_calls', calls: 1, aside: { requests: [{ toolCallId: 'call_1' }] } })
      await answer(first.aside!, true)
      const second = await ways[way](
        client,
        [
          ...asked,
          {
            role: 'assistant',
            content: first.content,
            tool_calls: [{ id: 'own', type: 'function', function: { name: 'confirm', arguments: '{}' } }],
          },
          { role: 'tool', tool_call_id: 'own', content: 'yes' },
        ],
        { tools: clientTools },
      )
      expect(second).toMatchObject({ reason: 'stop', calls: 0 })
      expect(second.content.split(', ').toSorted()).toEqual(['call_1: "receipt 1"', 'own: "yes"'])
      expect(paid).toEqual([{ sum: 5 }])
    },
  )

  test('an answer that must be JSON: told as a refusal, so that no client parses the words', async () => {
    const script = (prompt: Told['prompts'][number]): ScriptStep[] =>
      outcomesIn(prompt).length === 0 ? payOnce(prompt) : [text('{"ok":true}'), finish()]
    const { client, answer } = await start(script)
    const response_format = zodResponseFormat(z.object({ ok: z.boolean() }), 'done')
    const body = { model: 'a', messages: asked, response_format }
    const first = await client.chat.completions.parse(body)
    const { message, finish_reason } = first.choices[0]!
    expect([message.parsed, message.content, finish_reason]).toEqual([null, null, 'stop'])
    expect(message.refusal).toMatch(/^This call waits for approval/u)
    const streamed = await client.chat.completions.stream(body).finalChatCompletion()
    expect(streamed.choices[0]!.message).toMatchObject({ parsed: null, refusal: expect.stringContaining('waits') })
    await answer((first as { millrace?: Aside }).millrace!, true)
    const rest = await client.chat.completions.parse({ ...body, messages: [...asked, message] })
    expect(rest.choices[0]!.message.parsed).toEqual({ ok: true })
  })

  test('the AI SDK and LangChain show the words, end without an error, and go on', async () => {
    const { server, answer, paid } = await start(payOnce)
    const model = createOpenAICompatible({ name: 'millrace', baseURL: `${server.url}/v1`, includeUsage: true })('a')
    const tools = { other: tool({ inputSchema: jsonSchema({ type: 'object' } as JSONSchema7) }) }
    const streamed = streamText({ model, prompt: 'Pay 5', tools, maxRetries: 0 })
    const words = await streamed.text
    expect([await streamed.finishReason, words]).toEqual(['stop', expect.stringContaining('waits for approval')])
    const [run] = await server.store.runs.list()
    const [request] = only(await entriesOf(server.store, run!.id), 'request')
    await answer(
      { runId: run!.id, threadId: '', requests: [{ ...request!, toolCallId: 'call_1', toolName: 'pay', input: {} }] },
      true,
    )
    const { messages } = await streamed.response
    const rest = await generateText({
      model,
      messages: [{ role: 'user', content: 'Pay 5' }, ...messages],
      maxRetries: 0,
    })
    expect(rest.text).toBe('Done: call_1: "receipt 1"')

    const chat = new ChatOpenAI({
      model: 'a',
      apiKey: 'none',
      maxRetries: 0,
      configuration: { baseURL: `${server.url}/v1` },
    })
    expect((await chat.invoke('Pay 5')).content).toContain('waits for approval')
    let all = ''
    for await (const { content } of await chat.stream('Pay 5')) all += content as string
    expect(all).toContain('waits for approval')
    expect(paid).toHaveLength(1)
  })

  test('without a durable store the call is denied, and the model, people and programs are told why', async () => {
    for (const way of names) {
      const { client, paid } = await start(payOnce, { wrapStore: () => memoryStore() })
      const got = await ways[way](client, asked)
      expect(got.content).toMatch(/^I pay\. \n\nDone: call_1: .*not durable/u)
      expect(got.content).toMatch(
        /\n\npay: The tool call was denied\. It did not run\. Reason: it needs an approval, .*not durable\.$/u,
      )
      expect(got.reason).toBe('stop')
      expect(got.aside).toMatchObject({
        denied: [{ toolCallId: 'call_1', toolName: 'pay', reason: expect.stringContaining('durable') }],
      })
      expect(paid).toEqual([])
    }
  })

  test('without the right to /api/runs a client is told the same and can answer nothing; another answers, and it gets the rest', async () => {
    const isOperator = ({ headers }: Request) => headers.get('x-role') === 'operator'
    const mayAsk = (request: Request) => isOperator(request) || new URL(request.url).pathname.startsWith('/v1/')
    const { server, client, paid } = await start(payOnce, {}, '', { authorize: mayAsk })
    const first = await ways.json(client, asked)
    const { runId, requests } = first.aside!
    const path = `/api/runs/${runId}/requests/${requests![0]!.requestId}`
    expect(first.content).toContain(path)
    expect((await server.post(path, { approved: true })).status).toBe(403)
    expect((await fetch(`${server.url}/api/runs/${runId}`)).status).toBe(403)
    const conversation: Messages = [...asked, { role: 'assistant', content: first.content }]
    expect((await ways.json(client, conversation)).aside).toEqual(first.aside)
    expect(paid).toEqual([])
    const headers = { 'x-role': 'operator' }
    expect((await server.post(path, { approved: true }, { headers })).status).toBe(200)
    expect((await ways.json(client, conversation)).content).toBe('Done: call_1: "receipt 1"')
  })

  test('words that name a run of another agent, protocol or thread, or none, are text', async () => {
    const { server, client } = await start((prompt) => {
      const said = JSON.stringify(prompt)
      return said.includes('waits for') ? [text('as text'), finish()] : payOnce(prompt)
    })
    const other = await server.runtime.start('a', { messages: [] })
    await other.result
    const named = (words: string): Messages => [...asked, { role: 'assistant', content: words }]
    for (const words of [`[run ${other.id} waits for ${other.id}.1.1]`, '[run nope waits for x]']) {
      expect((await ways.json(client, named(words))).content).toBe('as text')
    }
    const first = await ways.json(client, asked)
    const headers = { headers: { 'X-Thread-Id': 'another' } }
    const got = await client.chat.completions.create({ model: 'a', messages: named(first.content) }, headers)
    expect(got.choices[0]!.message.content).toBe('as text')
  })

  test('a text completion is told as well, and where the rest will be', async () => {
    const { server, client, answer } = await start(payOnce)
    const first = await client.completions.create({ model: 'a', prompt: 'Pay 5' })
    const [choice] = first.choices
    const aside = (first as { millrace?: Aside }).millrace!
    expect(choice!.finish_reason).toBe('stop')
    expect(choice!.text).toContain(`The rest of the answer is then at GET /api/runs/${aside.runId}`)
    let streamed = ''
    for await (const { choices } of await client.completions.create({ model: 'a', prompt: 'Pay 5', stream: true })) {
      streamed += choices[0]?.text ?? ''
    }
    expect(streamed).toContain('waits for approval')
    await answer(aside, true)
    await expect
      .poll(
        async () => ((await (await fetch(`${server.url}/api/runs/${aside.runId}`)).json()) as { text: string }).text,
      )
      .toBe('I pay. Done: call_1: "receipt 1"')
  })
})
