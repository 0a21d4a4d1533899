/** Every recording, cut into pieces of one byte and broken off behind every line, by both readers: `model-oracle.test.ts` has a choice. */
import { describe, test } from 'vitest'
import { expectNoBrokenAnswer, expectNoQuietAnswer, expectOracle } from './testing/model-oracle.ts'
import { composedFixtures, recordedFixtures } from './testing/provider-fixtures.ts'

const fixtures = [...composedFixtures, ...recordedFixtures()]
describe.each(
  (['millrace', 'package'] as const).flatMap((read) =>
    fixtures.map((fixture) => [fixture.name, read, fixture] as const),
  ),
)('%s, read by %s', (_, read, fixture) => {
  const { lines } = fixture
  // Every line of a short one; of a long one the first, the last and some between.
  const places = [...lines.keys()].filter((n) => lines.length < 60 || n % 40 === 1 || lines.length - n < 4)
  test('comes to what streamText makes of it, however it is cut', () => expectOracle(fixture, read, [1, 7, 64]))
  test('never takes a broken connection for an answer', () => expectNoBrokenAnswer(fixture, read, places))
  test('never takes a quiet end in the middle for an answer', () => expectNoQuietAnswer(fixture, read, places))
})
