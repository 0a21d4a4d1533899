/** Prompt caching: what each protocol is told, when, and what it saves. */
import { describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import type { Config } from '../../src/project/config.ts'
import type { Endpoint } from '../../src/models/resolver.ts'
import { startRecordedProvider, type Protocol, type Reply } from '../../src/models/testing/recorded-provider.ts'
import { namedQueries } from '../../src/store/tables/named-queries.ts'
import { entriesOf, only, openEngine } from '../support/engine.ts'
import { says, thinksAndCalls } from '../support/protocol-lines.ts'
import { startCachingServer, type CachingServer } from '../support/anthropic-cache.ts'

const look = { description: 'Looks', parameters: z.looseObject({}), execute: () => 'seen' }
const question = { messages: [{ role: 'user', content: 'Hi' }] }
const withTool = 'tools: [look]'

const file = (config: string, model = 'box:m', type = 'llm', rest = '') => `
history: server
workflow:
  - id: answer
    type: ${type}
    config:
      model: "${model}"
      ${type === 'llm' ? 'stream: true' : ''}
      ${config}
${rest}`

interface Asked {
  protocol?: Protocol
  yaml?: string
  agent?: string
  threadId?: string
  input?: Record<string, unknown>
  config?: Config
  replies?: Reply[]
}

type Body = Record<string, unknown>

/** The bodies that one run sends. */
async function bodiesOf({
  protocol = 'anthropic',
  yaml = file(''),
  input = question,
  ...more
}: Asked): Promise<Body[]> {
  const { agent = 'a' } = more
  const provider = await startRecordedProvider(more.replies ?? [{ protocol, lines: says[protocol] }])
  onTestFinished(() => provider.close())
  const endpoints: Endpoint[] = [{ name: 'box', baseURL: provider.baseURL, protocol }]
  const engine = openEngine({
    ...more.config,
    agents: { [agent]: yaml },
    tools: { look },
    models: { endpoints, ...more.config?.models },
  })
  const { threadId } = more
  const run = await engine.runtime.start(agent, input, threadId === undefined ? {} : { threadId })
  expect(await run.result).toMatchObject({ outcome: 'completed' })
  return provider.requests.map(({ body }) => body as Body)
}
const markOf = async (asked: Asked) => (await bodiesOf(asked))[0]!['cache_control']
const keyOf = async (asked: Asked) =>
  (await bodiesOf({ protocol: 'openai-responses', ...asked }))[0]!['prompt_cache_key']

const mark = { type: 'ephemeral' }

describe('cache: auto, the default', () => {
  test('marks calls that offer tools', async () => {
    expect(await markOf({ yaml: file(withTool) })).toEqual(mark)
    expect(await markOf({ yaml: file(`${withTool}\n      cache: auto`) })).toEqual(mark)
  })

  test('marks calls in a thread, and those whose client has sent a conversation', async () => {
    expect(await markOf({ threadId: 't' })).toEqual(mark)
    const messages = [...question.messages, { role: 'assistant', content: 'Yes?' }, { role: 'user', content: 'More' }]
    const yaml = file('').replace('history: server', '')
    expect(await markOf({ yaml, input: { messages } })).toEqual(mark)
  })

  test('marks the calls of a router', async () => {
    const answer = `
  - id: say
    type: output-generator
    config: { template: "done" }`
    expect(await markOf({ yaml: file('', 'box:m', 'router', answer) })).toEqual(mark)
  })

  test('marks nothing where no other call is likely', async () => {
    expect(await markOf({})).toBeUndefined()
    expect(await markOf({ yaml: file(`${withTool}\n      maxSteps: 1`) })).toBeUndefined()
    // The messages of this step are others in the next turn.
    const own = file('messages: [{ role: user, content: "About $input.messages.0.content" }]')
    expect(await markOf({ yaml: own, threadId: 't' })).toBeUndefined()
  })

  test('all calls of a loop have the mark, so that each reads what the one before has written', async () => {
    const protocol = 'anthropic' as const
    const replies = [thinksAndCalls('look')[protocol], says[protocol]].map((lines) => ({ protocol, lines }))
    const bodies = await bodiesOf({ yaml: file(withTool), replies })
    expect(bodies.map((body) => body['cache_control'])).toEqual([mark, mark])
  })

  test('OpenAI’s Responses get a key that is the same in the thread, and another in another thread or agent', async () => {
    const key = await keyOf({ threadId: 't' })
    expect(key).toMatch(/^[\w-]{43}$/u)
    expect(await keyOf({ threadId: 't', yaml: file(withTool) })).toBe(key)
    expect(await keyOf({ threadId: 'u' })).not.toBe(key)
    expect(await keyOf({ threadId: 't', agent: 'b' })).not.toBe(key)
    expect(await keyOf({})).toBeUndefined()
  })

  test('other servers of the chat protocol, and Google, are told nothing', async () => {
    for (const protocol of ['openai-chat', 'google'] as const) {
      const [body] = await bodiesOf({ protocol, yaml: file(withTool), threadId: 't' })
      expect(JSON.stringify(body)).not.toMatch(/cache/iu)
    }
  })
})

describe('cache', () => {
  test('1h: Anthropic keeps the prompt for an hour', async () => {
    expect(await markOf({ yaml: file(`${withTool}\n      cache: 1h`) })).toEqual({ type: 'ephemeral', ttl: '1h' })
  })

  test('none: nothing is sent', async () => {
    const yaml = file(`${withTool}\n      cache: none`)
    expect(await markOf({ yaml, threadId: 't' })).toBeUndefined()
    expect(await keyOf({ yaml, threadId: 't' })).toBeUndefined()
  })

  test('the config sets it for steps that do not', async () => {
    const config = (cache: 'none' | '1h'): Config => ({ models: { cache } })
    expect(await markOf({ yaml: file(withTool), config: config('none') })).toBeUndefined()
    expect(await markOf({ yaml: file(withTool), config: config('1h') })).toEqual({ ...mark, ttl: '1h' })
    expect(await markOf({ yaml: file(`${withTool}\n      cache: auto`), config: config('none') })).toEqual(mark)
  })
})

describe('a mark or key of the user’s own', () => {
  const marked = (n: number) => ({
    role: 'user',
    content: Array.from({ length: n }, (_, i) => ({
      type: 'text',
      text: `${i}`,
      providerOptions: { anthropic: { cacheControl: { type: 'ephemeral' } } },
    })),
  })

  test('in providerOptions turns ours off', async () => {
    const own = 'providerOptions: { anthropic: { cacheControl: { type: ephemeral, ttl: 5m } } }'
    expect(await markOf({ yaml: file(`${withTool}\n      ${own}`) })).toEqual({ type: 'ephemeral', ttl: '5m' })
    const key = 'providerOptions: { openai: { promptCacheKey: mine } }'
    expect(await keyOf({ yaml: file(`${withTool}\n      ${key}`) })).toBe('mine')
  })

  test('on a message turns ours off: Anthropic refuses a fifth mark', async () => {
    const server = await cachingServer(() => [{ type: 'text', text: 'ok' }])
    const engine = openEngine({
      agents: { a: file(`${withTool}\n      retries: 0`) },
      tools: { look },
      models: { endpoints: [{ name: 'box', baseURL: server.baseURL, protocol: 'anthropic' }] },
    })
    const run = await engine.runtime.start('a', { messages: [marked(4)] })
    expect(await run.result).toMatchObject({ outcome: 'completed' })
    const [request] = server.requests
    expect(request).not.toHaveProperty('cache_control')
    expect(JSON.stringify(request).match(/cache_control/gu)).toHaveLength(4)
  })
})

describe('a server that refuses the mark', () => {
  test('is asked again without it, and gets none any more', async () => {
    const error = { type: 'error', error: { message: 'cache_control: Extra inputs are not permitted' } }
    const refusal = { status: 400, body: JSON.stringify(error) }
    const protocol = 'anthropic' as const
    const replies: Reply[] = [
      refusal,
      ...[thinksAndCalls('look')[protocol], says[protocol]].map((lines) => ({ protocol, lines })),
    ]
    const bodies = await bodiesOf({ yaml: file(withTool), replies })
    expect(bodies.map((body) => body['cache_control'])).toEqual([mark, undefined, undefined])
  })
})

async function cachingServer(answer: Parameters<typeof startCachingServer>[0]): Promise<CachingServer> {
  const server = await startCachingServer(answer)
  onTestFinished(() => server.close())
  return server
}

/** The share of a thread's prompt tokens that were read from the cache, as its log has it, and its cost. */
async function threadOn(server: CachingServer, turns: number, config: string) {
  const engine = openEngine({
    agents: { a: file(`system: "${'You are the desk. '.repeat(40)}"\n      maxSteps: 20\n      ${config}`) },
    tools: { look },
    models: { endpoints: [{ name: 'box', baseURL: server.baseURL, protocol: 'anthropic' }] },
    pricing: { 'box:m': { input: 3, output: 15, cachedInput: 0.3, cacheWriteInput: 3.75 } },
  })
  const sum = { input: 0, cached: 0, written: 0, cost: 0 }
  for (let n = 0; n < turns; n++) {
    const messages = [{ role: 'user', content: `Question ${n}: ${'what is it? '.repeat(20)}` }]
    const run = await engine.runtime.start('a', { messages }, { threadId: 't' })
    expect(await run.result).toMatchObject({ outcome: 'completed' })
    for (const { usage, cost } of only(await entriesOf(engine.store, run.id), 'usage')) {
      sum.input += usage.inputTokens!
      sum.cached += usage.cachedInputTokens ?? 0
      sum.written += usage.cacheWriteInputTokens ?? 0
      sum.cost += cost!
    }
  }
  await engine.store.records!.settle()
  const { columns, rows } = await engine.store.records!.query(namedQueries['cache-hits']!.sql, {
    parameters: { days: 30 },
  })
  const [row] = rows.map((values) => Object.fromEntries(columns.map((name, i) => [name, values[i]])))
  return { ...sum, share: sum.cached / sum.input, row }
}

describe('a thread of 50 turns on a server with Anthropic’s rule', () => {
  const answer = () => [{ type: 'text', text: 'An answer of some words. '.repeat(10) }]

  test('reads 85 % of its prompts from the cache, and nothing without it', async () => {
    const [server, bare] = [await cachingServer(answer), await cachingServer(answer)]
    const cached = await threadOn(server, 50, '')
    expect(cached.share).toBeGreaterThan(0.85)
    const without = await threadOn(bare, 50, 'cache: none')
    expect(without.share).toBe(0)
    expect(without.input).toBe(cached.input)
    // What the log says is what the server has counted.
    expect(cached.cached).toBe(server.usage.reduce((all, { read }) => all + read, 0))
    expect(cached.written).toBe(server.usage.reduce((all, { written }) => all + written, 0))
    expect(cached.row).toMatchObject({ model: 'box:m', agent: 'a', calls: 50, input_tokens: cached.input })
    expect(cached.row).toMatchObject({ cached_tokens: cached.cached, written_tokens: cached.written })
    expect(cached.row).toMatchObject({ cached_percent: Math.round(cached.share * 1000) / 10 })
    expect(without.row).toMatchObject({ cached_tokens: 0, cached_percent: 0 })
    expect(cached.cost).toBeLessThan(without.cost / 3)
  })

  test('reads them also behind a reply with more calls than a mark looks back', async () => {
    const calls = Array.from({ length: 30 }, (_, i) => ({ type: 'tool_use', id: `c${i}`, name: 'look', input: {} }))
    const server = await cachingServer((n) => (n === 2 ? calls : answer()))
    await threadOn(server, 4, withTool)
    const [before, behind] = [server.usage[2]!, server.usage[3]!]
    expect(behind.read).toBe(before.all)
    expect(server.usage.slice(1).every(({ read }, i) => read === server.usage[i]!.all)).toBe(true)
  })
})
