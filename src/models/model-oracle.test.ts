/** What `streamText` makes of the same bytes: a choice of places and pieces. `model-oracle.all.test.ts` has all of them. */
import { describe, expect, test } from 'vitest'
import { below, seeded } from './decode/testing/random.ts'
import {
  expectNoBrokenAnswer,
  expectNoQuietAnswer,
  expectOracle,
  hearOver,
  type Reader,
} from './testing/model-oracle.ts'
import { composedFixtures, protocolOf, recordedFixtures, type ProviderFixture } from './testing/provider-fixtures.ts'

const recorded = recordedFixtures()
test.skipIf(recorded.length === 0)('the real recordings in ../shared/fixtures are read too', () => {
  expect(recorded.map(({ name }) => name)).toContain('anthropic-loop.step2')
})

const fixtures = [...composedFixtures, ...recorded]
/** The packages' own reading is tried with the first of each protocol. */
const firsts = fixtures.filter(
  (fixture, i) => fixtures.findIndex((other) => protocolOf(other) === protocolOf(fixture)) === i,
)
const tried: [Reader, ProviderFixture[]][] = [
  ['millrace', fixtures],
  ['package', firsts],
]
describe.each(tried.flatMap(([read, list]) => list.map((fixture) => [fixture.name, read, fixture] as const)))(
  '%s, read by %s',
  (_, read, fixture) => {
    const { length } = fixture.lines
    const random = seeded(length)
    const places = [...new Set([length - 1, below(length, random)])]
    test('comes to what streamText makes of it, however it is cut', () => expectOracle(fixture, read, [7]))
    test('never takes a broken connection for an answer', () => expectNoBrokenAnswer(fixture, read, places))
    test('never takes a quiet end in the middle for an answer', () => expectNoQuietAnswer(fixture, read, places))
  },
)

test.each(['millrace', 'package'] as const)("Google's own waiting time is understood, read by %s", async (read) => {
  const details = [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '34.4s' }]
  const body = JSON.stringify({ error: { code: 429, message: 'Quota', status: 'RESOURCE_EXHAUSTED', details } })
  const fixture: ProviderFixture = { name: '', provider: 'google', lines: [], tools: [] }
  const { parts, error } = await hearOver([{ status: 429, body }], fixture, read)
  expect(parts).toEqual([])
  expect(error).toMatchObject({ code: 'rate-limited', status: 429, retryAfter: 34.4 })
})
