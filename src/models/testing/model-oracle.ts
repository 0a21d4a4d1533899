/**
 * `streamText` is the oracle: the same bytes must give the same result through the AI SDK and through Millrace. One suite, for a selection of cuts
 * or for all.
 */
import { jsonSchema, streamText, tool, type TextStreamPart, type ToolSet } from 'ai'
import { afterEach, expect } from 'vitest'
import { MillraceError } from '../../part/error.ts'
import type { ModelPart } from '../../part/model-part.ts'
import { streamModel } from '../model.ts'
import type { LanguageModel } from '../language-model.ts'
import { loadModel } from '../providers.ts'
import { createProviderModel, protocolOf, type ProviderFixture } from './provider-fixtures.ts'
import { startRecordedProvider, type RecordedProvider, type Reply } from './recorded-provider.ts'
import { ours, theirs } from './said.ts'

// Otherwise the SDK prints its warnings.
globalThis.AI_SDK_LOG_WARNINGS = false

let server: RecordedProvider | undefined
afterEach(() => server?.close())

const inputSchema = { type: 'object' as const, properties: {} }
const messages = [{ role: 'user' as const, content: 'What now?' }]

/** Millrace's models, whose streams it reads itself, and models of the packages alone. */
const readers = {
  millrace: (fixture: ProviderFixture): Promise<LanguageModel> =>
    loadModel({
      provider: 'local',
      modelId: 'm',
      protocol: protocolOf(fixture),
      apiKey: 'test',
      baseURL: server!.baseURL,
    }),
  package: (fixture: ProviderFixture): LanguageModel => createProviderModel(fixture, server!.baseURL),
}
export type Reader = keyof typeof readers

interface Heard {
  parts: ModelPart[]
  error: unknown
}

export async function hearOver(replies: readonly Reply[], fixture: ProviderFixture, read: Reader): Promise<Heard> {
  server = await startRecordedProvider(replies)
  return hear(fixture, read)
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

/** Google gives calls without an id a random one: those are numbered; recorded ids are compared unchanged. */
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

/** `cuts`: bytes per piece. */
export async function expectOracle(fixture: ProviderFixture, read: Reader, cuts: number[]): Promise<void> {
  const protocol = protocolOf(fixture)
  const { lines } = fixture
  const replies: Reply[] = [undefined, undefined, ...cuts].map((cut) => ({ protocol, lines, cut }))
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
  for (const _cut of cuts) {
    const cut = await hear(fixture, read)
    expect(settled(ours(cut.parts), fixture)).toEqual(settled(ours(whole.parts), fixture))
    expect(cut.error).toEqual(whole.error)
  }
}

/** `places`: the lines after which the connection breaks. */
export async function expectNoBrokenAnswer(fixture: ProviderFixture, read: Reader, places: number[]): Promise<void> {
  const protocol = protocolOf(fixture)
  const { lines } = fixture
  server = await startRecordedProvider(places.map((dropAfter) => ({ protocol, lines, dropAfter })))
  for (const place of places) {
    const { parts, error } = await hear(fixture, read)
    const isComplete = parts.some(({ type }) => type === 'finish')
    expect([place, error instanceof MillraceError || isComplete]).toEqual([place, true])
    if (!isComplete) expect(['connection-lost', 'rate-limited']).toContain((error as MillraceError).code)
  }
}

/** `places`: the lines after which the body ends. */
export async function expectNoQuietAnswer(fixture: ProviderFixture, read: Reader, places: number[]): Promise<void> {
  const protocol = protocolOf(fixture)
  const { lines } = fixture
  server = await startRecordedProvider(places.map((endAfter) => ({ protocol, lines, endAfter })))
  for (const place of places) {
    const { parts, error } = await hear(fixture, read)
    const end = parts.findLast((part) => part.type === 'finish')
    const isComplete = end !== undefined && end.finishReason.raw !== undefined
    expect([place, error instanceof MillraceError || isComplete]).toEqual([place, true])
  }
}
