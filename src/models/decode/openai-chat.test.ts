/** The packages are the oracle: the same bytes through `doStream` and through the decoder come to the same parts. */
import { describe, expect, test } from 'vitest'
import { composedFixtures, protocolOf, recordedFixtures } from '../testing/provider-fixtures.ts'
import { compatible, openAIChat } from './testing/chat-readers.ts'
import { chatKeys, chatStreams } from './testing/chat-streams.ts'
import { compareCuts, compareStream, fuzz } from './testing/compare.ts'
import { frames } from './testing/oracle.ts'

const fixtures = [...composedFixtures, ...recordedFixtures()].filter((each) => protocolOf(each) === 'openai-chat')
const streams: [string, string[]][] = [
  ...fixtures.map(({ name, lines }): [string, string[]] => [name, lines]),
  ...Object.entries(chatStreams),
]
const readers = [openAIChat, compatible]

describe.each(readers)('$name', (reader) => {
  test.each(streams)('%s: the same parts, however it is cut', async (_, lines) => {
    await compareCuts(reader, frames(lines, { done: true }))
  })

  test.each(streams)('%s: the same parts, wherever it ends', async (_, lines) => {
    const places = [...lines.keys()].filter((n) => lines.length < 60 || n % 40 === 1 || lines.length - n < 4)
    for (const place of places) {
      const text = frames(lines.slice(0, place))
      await compareStream(reader, text, 1e9)
      await compareStream(reader, `${text}data: ${lines[place]!.slice(0, 20)}\n\n`, 64)
      await compareStream(reader, `${text}data: ${lines[place]}\n`, 1e9)
    }
  })

  test('raw chunks are passed on', async () => {
    for (const [, lines] of streams.slice(0, 4)) {
      const text = frames([...lines, '{', '{"choices":1}'])
      await compareStream(reader, text, 1e9, { includeRawChunks: true })
    }
  })
})

test('provider options choose the key of the metadata', async () => {
  for (const key of ['myServer', 'my-server']) {
    await compareStream(compatible, frames(streams[0]![1]), 1e9, { providerOptions: { [key]: {} } })
  }
})

const chunks = Number(process.env['MILLRACE_FUZZ'] ?? 10_000)
const seed = Number(process.env['MILLRACE_FUZZ_SEED'] ?? 1)
test(`${chunks} mutated chunks`, { timeout: 20_000 + chunks * 5 }, async () => {
  const lines = streams.map(([, each]) => each)
  const count = await fuzz({
    readers,
    streams: lines,
    keys: chatKeys,
    chunks,
    seed,
    options: [{}, {}, {}, { includeRawChunks: true }],
  })
  expect(count).toBeGreaterThan(0)
})
