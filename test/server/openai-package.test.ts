/** OpenAI's own package against the routes, over a real socket: raw stream, `.stream()` helper, one JSON, models. */
import OpenAI from 'openai'
import { describe, expect, test } from 'vitest'
import { entriesOf, only } from '../support/engine.ts'
import { clientTools, failures, messages, startCutting, startScenes, threeCalls } from '../support/openai.ts'

type Messages = OpenAI.ChatCompletionMessageParam[]
const clientOf = (url: string) => new OpenAI({ baseURL: `${url}/v1`, apiKey: 'none', maxRetries: 0 })
const usage = { prompt_tokens: 12, completion_tokens: 5, total_tokens: 17 }

/** The three ways in which the package is asked: each gives the message, why it ended and the usage, or throws. */
const ways = {
  'raw stream': async (client: OpenAI, body: Asked) => {
    const stream = await client.chat.completions.create({
      ...body,
      stream: true,
      stream_options: { include_usage: true },
    })
    const calls: { id?: string; name?: string; arguments: string }[] = []
    const answer = { content: '', calls, reason: undefined as string | undefined, usage: undefined as unknown }
    for await (const { choices, usage: counted } of stream) {
      answer.usage = counted ?? answer.usage
      const [choice] = choices
      if (choice === undefined) continue
      answer.content += choice.delta.content ?? ''
      answer.reason = choice.finish_reason ?? answer.reason
      for (const { index, id, function: made } of choice.delta.tool_calls ?? []) {
        const call = (calls[index] ??= { arguments: '' })
        if (id !== undefined) Object.assign(call, { id, name: made!.name })
        call.arguments += made?.arguments ?? ''
      }
    }
    return answer
  },
  '.stream()': async (client: OpenAI, body: Asked) =>
    toAnswer(
      await client.chat.completions.stream({ ...body, stream_options: { include_usage: true } }).finalChatCompletion(),
    ),
  'one JSON': async (client: OpenAI, body: Asked) => toAnswer(await client.chat.completions.create(body)),
}
type Asked = { model: string; messages: Messages; tools?: typeof clientTools }

function toAnswer({ choices, usage: counted }: OpenAI.ChatCompletion) {
  const { message, finish_reason } = choices[0]!
  const calls = (message.tool_calls ?? []).map((call) => {
    if (call.type !== 'function') throw new Error(`a call of type ${call.type}`)
    return { id: call.id, name: call.function.name, arguments: call.function.arguments }
  })
  return { content: message.content ?? '', calls, reason: finish_reason, usage: counted }
}

describe('OpenAI: openai package', () => {
  test.each(Object.keys(ways) as (keyof typeof ways)[])('%s: a chat, with its usage', async (way) => {
    const { url } = await startScenes()
    const answer = await ways[way](clientOf(url), { model: 'chat', messages })
    expect(answer).toEqual({ content: 'Hello', calls: [], reason: 'stop', usage })
  })

  test.each(Object.keys(ways) as (keyof typeof ways)[])(
    '%s: three calls that were written at once are the client’s; what it answers goes into a new run',
    async (way) => {
      const { url, store, models } = await startScenes()
      const client = clientOf(url)
      const first = await ways[way](client, { model: 'calls', messages, tools: clientTools })
      expect(first).toMatchObject({ content: 'I ask you.', reason: 'tool_calls' })
      expect(first.calls).toEqual(
        threeCalls.map(({ id, name, input }) => ({ id, name, arguments: JSON.stringify(input) })),
      )
      const history: Messages = [
        ...messages,
        {
          role: 'assistant',
          content: first.content,
          tool_calls: first.calls.map(({ id, name, arguments: json }) => {
            return { id: id!, type: 'function' as const, function: { name: name!, arguments: json } }
          }),
        },
        ...first.calls.map(({ id }, i) => ({ role: 'tool' as const, tool_call_id: id!, content: `r${i}` })),
      ]
      const second = await ways[way](client, { model: 'calls', messages: history, tools: clientTools })
      expect(second).toMatchObject({
        content: 'You said call_a=r0, call_b=r1, call_c=r2.',
        reason: 'stop',
        calls: [],
      })
      const runs = await store.runs.list()
      expect(runs.map(({ status }) => status)).toEqual(['completed', 'completed'])
      const outcomes = only(await entriesOf(store, runs[1]!.id), 'tool-result').map(({ outcome }) => outcome)
      expect(outcomes).toEqual(['handed-over', 'handed-over', 'handed-over'])
      expect(models['calls']!.prompts.map((prompt) => prompt.map(({ role }) => role))).toEqual([
        ['user'],
        ['user', 'assistant', 'tool'],
      ])
    },
  )

  test.each(failures)('%s: an error, whichever way it was asked', async (model, code) => {
    const { url } = await startScenes()
    for (const way of Object.values(ways)) {
      const error = await way(clientOf(url), { model, messages }).then(
        () => expect.fail(`${model} looks like an answer`),
        (thrown: unknown) => thrown,
      )
      expect(error).toBeInstanceOf(OpenAI.OpenAIError)
      expect((error as Error).message).not.toContain('finish_reason')
      // The helper wraps the error that it was given.
      const { cause, ...told } = error as { cause?: unknown }
      expect(cause ?? told).toMatchObject({ code })
    }
  })

  test('length: the answer says that it is not whole; the helper gives it all the same', async () => {
    const { url } = await startScenes()
    for (const way of Object.values(ways)) {
      const answer = await way(clientOf(url), { model: 'length', messages })
      expect(answer).toMatchObject({ content: 'Half ', reason: 'length' })
    }
  })

  test('a body that a proxy cuts off: the helper sees it, the raw stream takes it for an answer without an end', async () => {
    const { url } = await startScenes()
    const cut = clientOf(await startCutting(url, '"Hel"'))
    await expect(ways['.stream()'](cut, { model: 'chat', messages })).rejects.toThrow('finish_reason')
    expect(await ways['raw stream'](cut, { model: 'chat', messages })).toMatchObject({
      content: 'Hel',
      reason: undefined,
    })
  })

  test('models: a list that stays the same, one by its name, 404 for no model', async () => {
    const { url } = await startScenes()
    const client = clientOf(url)
    const { data } = await client.models.list()
    expect(data.map(({ id }) => id).toSorted()).toEqual(['budget', 'calls', 'chat', 'cut', 'error', 'length'])
    expect((await client.models.list()).data).toEqual(data)
    expect(await client.models.retrieve('chat')).toEqual(data.find(({ id }) => id === 'chat'))
    await expect(client.models.retrieve('chta')).rejects.toMatchObject({
      status: 404,
      code: 'model_not_found',
      param: 'model',
      message: expect.stringContaining('did you mean "chat"?'),
    })
  })

  test('Completions, both ways', async () => {
    const { url } = await startScenes()
    const client = clientOf(url)
    const asked = { model: 'chat', prompt: 'Hi' }
    const whole = await client.completions.create(asked)
    expect(whole).toMatchObject({
      object: 'text_completion',
      model: 'chat',
      choices: [{ text: 'Hello', index: 0, finish_reason: 'stop', logprobs: null }],
      usage,
    })
    const stream = await client.completions.create({ ...asked, stream: true, stream_options: { include_usage: true } })
    const chunks = []
    for await (const chunk of stream) chunks.push(chunk)
    expect(chunks.map(({ choices }) => choices[0]?.text)).toEqual(['Hel', 'lo', '', undefined])
    expect(chunks.map(({ choices }) => choices[0]?.finish_reason)).toEqual([null, null, 'stop', undefined])
    expect(chunks.at(-1)!.usage).toEqual(usage)
    expect(
      new Set(chunks.map(({ id, created, model, object }) => JSON.stringify([id, created, model, object]))).size,
    ).toBe(1)
    await expect(client.completions.create({ model: 'error', prompt: 'Hi' })).rejects.toMatchObject({
      code: 'model-failed',
    })
  })

  test('in a page of an allowed origin: its preflight asks for the headers that the package sends, and it may read the answer', async () => {
    const origin = 'https://app.example'
    const { url, post } = await startScenes({ allowedOrigins: [origin], localOnly: true })
    const seen: Response[] = []
    const client = new OpenAI({
      baseURL: `${url}/v1`,
      apiKey: 'none',
      maxRetries: 0,
      dangerouslyAllowBrowser: true,
      // What a browser does around each request.
      async fetch(input, init) {
        const simple = ['accept', 'accept-language', 'content-language']
        const names = [...new Headers(init?.headers).keys()].filter((name) => !simple.includes(name))
        const asked = {
          origin,
          'access-control-request-method': 'POST',
          'access-control-request-headers': names.join(','),
        }
        const preflight = await fetch(input, { method: 'OPTIONS', headers: asked })
        const allowed = preflight.headers.get('access-control-allow-headers')!.split(',')
        if (preflight.status !== 204 || !names.every((name) => allowed.includes(name)))
          throw new TypeError('Failed to fetch')
        expect(names).toContain('x-stainless-lang')
        const headers = new Headers(init?.headers)
        headers.set('origin', origin)
        const response = await fetch(input, { ...init, headers })
        if (response.headers.get('access-control-allow-origin') !== origin) throw new TypeError('Failed to fetch')
        seen.push(response)
        return response
      },
    })
    expect(await ways['raw stream'](client, { model: 'chat', messages })).toMatchObject({
      content: 'Hello',
      reason: 'stop',
    })
    await expect(ways['one JSON'](client, { model: 'nobody', messages })).rejects.toMatchObject({
      code: 'model_not_found',
    })
    expect(seen.map(({ status }) => status)).toEqual([200, 404])
    for (const { headers } of seen) expect(headers.get('access-control-expose-headers')).toContain('x-should-retry')
    const foreign = await post(
      '/v1/chat/completions',
      { model: 'chat', messages },
      { headers: { origin: 'https://evil.example' } },
    )
    expect(foreign.status).toBe(403)
  })
})
