/** The package is the oracle: the same bytes through `doStream` and through the decoder come to the same parts. */
import { describe, expect, test } from 'vitest'
import { composedFixtures, recordedFixtures } from '../testing/provider-fixtures.ts'
import { anthropicFactsOf } from './anthropic-facts.ts'
import { anthropic, anthropicOptions } from './testing/anthropic-readers.ts'
import { anthropicKeys, anthropicStreams } from './testing/anthropic-streams.ts'
import { compareCuts, compareStream, fuzz } from './testing/compare.ts'
import { frames, prompt } from './testing/oracle.ts'

const fixtures = [...composedFixtures, ...recordedFixtures()].filter(({ provider }) => provider === 'anthropic')
const streams: [string, string[]][] = [
  ...fixtures.map(({ name, lines }): [string, string[]] => [name, lines]),
  ...Object.entries(anthropicStreams),
]
const events = true

describe.each(streams)('%s', (_, lines) => {
  test('the same parts, however it is cut', () => compareCuts(anthropic, frames(lines, { events })))

  test('the same parts, wherever it ends', async () => {
    for (const place of lines.keys()) {
      const text = frames(lines.slice(0, place), { events })
      await compareStream(anthropic, text, 1e9)
      await compareStream(anthropic, `${text}data: ${lines[place]!.slice(0, 30)}\n\n`, 64)
    }
  })

  test.each(Object.entries(anthropicOptions))('the same parts after %s', async (_name, options) => {
    for (const end of [lines.length, lines.length - 1, lines.length >> 1]) {
      await compareStream(anthropic, frames(lines.slice(0, end), { events }), 1e9, options)
    }
  })
})

test('requests with provider tools are left to the package', () => {
  const tool = { type: 'provider' as const, id: 'anthropic.bash_20250124' as const, name: 'sh', args: {} }
  expect(anthropicFactsOf({ prompt, tools: [tool] }, {})).toBeUndefined()
  const providerOptions = { anthropic: { toolChanges: [] } }
  expect(anthropicFactsOf({ prompt: [{ role: 'system', content: '', providerOptions }] }, {})).toBeUndefined()
})

const chunks = Number(process.env['MILLRACE_FUZZ'] ?? 10_000)
const seed = Number(process.env['MILLRACE_FUZZ_SEED'] ?? 1)
test(`${chunks} mutated chunks`, { timeout: 20_000 + chunks * 5 }, async () => {
  const lines = streams.map(([, each]) => each)
  const options = Object.values(anthropicOptions)
  const count = await fuzz({ readers: [anthropic], streams: lines, keys: anthropicKeys, chunks, seed, events, options })
  expect(count).toBeGreaterThan(0)
})
