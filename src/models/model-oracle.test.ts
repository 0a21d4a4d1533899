/** `streamText` is the oracle: the same bytes through the AI SDK and through us must come to the same. */
import { jsonSchema, streamText, tool, type TextStreamPart, type ToolSet } from 'ai'
import { afterEach, describe, expect, test } from 'vitest'
import { MillraceError } from '../part/error.ts'
import type { ModelPart } from '../part/model-part.ts'
import { streamModel } from './model.ts'
import type { LanguageModel } from './language-model.ts'
import { loadModel } from './providers.ts'
import {
  composedFixtures,
  createProviderModel,
  protocolOf,
  recordedFixtures,
  type ProviderFixture,
} from './testing/provider-fixtures.ts'
import { startRecordedProvider, type RecordedProvider, type Reply } from './testing/recorded-provider.ts'
import { ours, theirs } from './testing/said.ts'

// The SDK prints what it warns of otherwise.
globalThis.AI_SDK_LOG_WARNINGS = false

let server: RecordedProvider
afterEach(() => server.close())

const inputSchema = { type: 'object' as const, properties: {} }
const messages = [{ role: 'user' as const, content: 'What now?' }]

/** The models of Millrace, whose streams it reads itself, and models of the packages alone. */
const readers = {
  millrace: (fixture: ProviderFixture): Promise<LanguageModel> =>
    loadModel({
      provider: 'local',
      modelId: 'm',
      protocol: protocolOf(fixture),
      apiKey: 'test',
      baseURL: server.baseURL,
    }),
  package: (fixture: ProviderFixture): LanguageModel => createProviderModel(fixture, server.baseURL),
}
type Reader = keyof typeof readers

interface Heard {
  parts: ModelPart[]
  error: unknown
}

async function hear(fixture: ProviderFixture, read: Reader = 'package'): Promise<Heard> {
  const parts: ModelPart[] = []
  const call = {
    messages,
    system: 'Be brief.',
    temperature: 0,
    tools: fixture.tools.map((name) => ({ name, description: 'A tool', inputSchema })),
    signal: new AbortController().signal,
  }
  const model = await readers[read](fixture)
  const error: unknown = await streamModel(model, call, (part) => parts.push(part)).then(
    () => undefined,
    (reason: unknown) => reason,
  )
  return { parts, error }
}

async function hearOracle(fixture: ProviderFixture, read: Reader): Promise<TextStreamPart<ToolSet>[]> {
  const tools = fixture.tools.map((name) => [
    name,
    tool({ description: 'A tool', inputSchema: jsonSchema(inputSchema) }),
  ])
  const { stream } = streamText({
    model: await readers[read](fixture),
    messages,
    system: 'Be brief.',
    temperature: 0,
    tools: Object.fromEntries(tools) as ToolSet,
    maxRetries: 0,
    onError: () => {},
  })
  const parts: TextStreamPart<ToolSet>[] = []
  for await (const part of stream) parts.push(part)
  return parts
}

/** Google gives calls without an id a random one: those are numbered; what the recording holds is compared as it is. */
function settled(said: object[], { lines }: ProviderFixture): object[] {
  const given = lines.join('\n')
  const invented = new Map<string, string>()
  const rename = (id: string) => {
    if (given.includes(`"${id}"`) || id.length < 12) return id
    invented.set(id, invented.get(id) ?? `invented-${invented.size}`)
    return invented.get(id)!
  }
  return said.map((part) =>
    Object.fromEntries(
      Object.entries(part).map(([key, value]) => [
        key,
        /^(id|toolCallId)$/.test(key) ? rename(value as string) : value,
      ]),
    ),
  )
}

const recorded = recordedFixtures()
test.skipIf(recorded.length === 0)('the real recordings in ../shared/fixtures are read too', async () => {
  server = await startRecordedProvider([])
  expect(recorded.map(({ name }) => name)).toContain('anthropic-loop.step2')
})

const fixtures = [...composedFixtures, ...recorded]
describe.each(
  (['millrace', 'package'] as const).flatMap((read) =>
    fixtures.map((fixture) => [fixture.name, read, fixture] as const),
  ),
)('%s, read by %s', (_, read, fixture) => {
  const protocol = protocolOf(fixture)
  const { lines } = fixture

  test('comes to what streamText makes of it, however it is cut', async () => {
    const replies: Reply[] = [undefined, undefined, 1, 7, 64].map((cut) => ({ protocol, lines, cut }))
    server = await startRecordedProvider(replies)
    const oracle = await hearOracle(fixture, read)
    const whole = await hear(fixture, read)
    expect(server.requests[1]?.body).toEqual(server.requests[0]?.body)
    if (oracle.some(({ type }) => type === 'error')) {
      expect(whole.error).toBeInstanceOf(MillraceError)
    } else {
      expect(whole.error).toBeUndefined()
      expect(settled(ours(whole.parts), fixture)).toEqual(settled(theirs(oracle), fixture))
      expect(whole.parts.at(-1)?.type).toBe('finish')
    }
    for (const _cut of [1, 7, 64]) {
      const cut = await hear(fixture, read)
      expect(settled(ours(cut.parts), fixture)).toEqual(settled(ours(whole.parts), fixture))
      expect(cut.error).toEqual(whole.error)
    }
  })

  // Every line of a short one; of a long one the first, the last and some between.
  const places = [...lines.keys()].filter((n) => lines.length < 60 || n % 40 === 1 || lines.length - n < 4)

  test('never takes a broken connection for an answer', async () => {
    server = await startRecordedProvider(places.map((dropAfter) => ({ protocol, lines, dropAfter })))
    for (const place of places) {
      const { parts, error } = await hear(fixture, read)
      const isComplete = parts.some(({ type }) => type === 'finish')
      expect([place, error instanceof MillraceError || isComplete]).toEqual([place, true])
      if (!isComplete) expect(['connection-lost', 'rate-limited']).toContain((error as MillraceError).code)
    }
  })

  test('never takes a quiet end in the middle for an answer', async () => {
    server = await startRecordedProvider(places.map((endAfter) => ({ protocol, lines, endAfter })))
    for (const place of places) {
      const { parts, error } = await hear(fixture, read)
      const end = parts.findLast((part) => part.type === 'finish')
      const isComplete = end !== undefined && end.finishReason.raw !== undefined
      expect([place, error instanceof MillraceError || isComplete]).toEqual([place, true])
    }
  })
})

test.each(['millrace', 'package'] as const)("Google's own waiting time is understood, read by %s", async (read) => {
  const details = [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '34.4s' }]
  const body = JSON.stringify({ error: { code: 429, message: 'Quota', status: 'RESOURCE_EXHAUSTED', details } })
  server = await startRecordedProvider([{ status: 429, body }])
  const { parts, error } = await hear({ name: '', provider: 'google', lines: [], tools: [] }, read)
  expect(parts).toEqual([])
  expect(error).toMatchObject({ code: 'rate-limited', status: 429, retryAfter: 34.4 })
})

test.each(['millrace', 'package'] as const)('a server that is not there is not available to %s', async (read) => {
  server = await startRecordedProvider([])
  await server.close()
  const { error } = await hear({ name: '', provider: 'openai-chat', lines: [], tools: [] }, read)
  expect(error).toMatchObject({ code: 'model-unavailable', message: expect.stringContaining('cannot be reached') })
})
