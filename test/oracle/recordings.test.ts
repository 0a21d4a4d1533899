/** Recorded provider streams through the real provider packages and a whole run: what `streamText` makes of them is right. */
import { afterEach, describe, expect, test } from 'vitest'
import type { Usage } from '../../src/part/usage.ts'
import { composedFixtures, recordedFixtures } from '../../src/models/testing/provider-fixtures.ts'
import { startRecordedProvider, type RecordedProvider } from '../../src/models/testing/recorded-provider.ts'
import { ours, theirs } from '../../src/models/testing/said.ts'
import { only } from '../support/engine.ts'
import { comparable, contentOf, createRecordedEngine, hearOracle, modelParts, settingOf } from './through-engine.ts'

const open: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const each of open.splice(0)) await each.close()
})
function keep<T extends { close(): Promise<void> }>(each: T): T {
  open.unshift(each)
  return each
}

/** One recording of a loop may begin with the result of a call in the one before it: alone it belongs to no call. */
function withoutStrangers(said: object[]): object[] {
  const parts = said as { type: string; toolCallId?: string }[]
  const calls = new Set(parts.flatMap(({ type, toolCallId }) => (type === 'tool-call' ? [toolCallId] : [])))
  return parts.filter(({ type, toolCallId }) => type !== 'tool-result' || calls.has(toolCallId))
}

const recorded = recordedFixtures()
test.skipIf(recorded.length === 0)('recordings of real providers are there', () => {
  expect(recorded.length).toBeGreaterThan(15)
})

describe.each([...composedFixtures, ...recorded].map((fixture) => [fixture.name, fixture] as const))(
  '%s',
  (_, fixture) => {
    const setting = settingOf(fixture)
    const { lines } = fixture
    const { protocol } = setting

    test('a run says what streamText says: text, reasoning, calls, sources, usage, finish', async () => {
      const provider: RecordedProvider = keep(await startRecordedProvider([{ protocol, lines }]))
      const oracle = await hearOracle(setting, provider)
      const { result, entries, finished, errors } = await keep(createRecordedEngine(setting, provider)).hear()
      expect(provider.requests[1]?.body).toEqual(provider.requests[0]?.body)
      if (oracle.parts.some(({ type }) => type === 'error')) {
        expect(result.outcome).toBe('failed')
        expect(errors).toHaveLength(1)
        expect(finished).toBeUndefined()
        return
      }
      expect(result).toMatchObject({ outcome: 'completed', text: oracle.text })
      const said = ours(modelParts(entries).filter((part) => part.type !== 'tool-result' || part.outcome === undefined))
      expect(comparable(said)).toEqual(comparable(withoutStrangers(theirs(oracle.parts))))
      const finish = said.find((part) => (part as { type: string }).type === 'finish') as { usage: Usage }
      expect(result.usage).toEqual(finish.usage)
      expect(only(entries, 'answer-end')).toHaveLength(1)
      expect(errors).toEqual([])
      expect(finished?.text).toBe(oracle.text)
    })

    // Every line of a short one; of a long one the first, the last and some between.
    const places = [...lines.keys()].filter((n) => lines.length < 40 || n % 40 === 1 || lines.length - n < 4)

    test('broken off after a line: one error, one failed end, no tool run; or all had been said', async () => {
      const replies = places.map((dropAfter) => ({ protocol, lines, dropAfter }))
      const provider = keep(await startRecordedProvider([{ protocol, lines }, ...replies]))
      const engine = keep(createRecordedEngine(setting, provider))
      const whole = await engine.hear()
      for (const place of places) {
        const { result, entries, errors, finished, ran } = await engine.hear()
        const ends = only(entries, 'run-end')
        expect([place, ends.length, entries.at(-1)?.type]).toEqual([place, 1, 'run-end'])
        expect(ends[0]?.outcome).toBe(result.outcome)
        if (result.outcome === 'completed') {
          expect(contentOf(ours(modelParts(entries)))).toEqual(contentOf(ours(modelParts(whole.entries))))
          expect(ran).toEqual(whole.ran)
        } else {
          expect([place, result.outcome]).toEqual([place, 'failed'])
          expect([place, only(entries, 'error').length, errors.length]).toEqual([place, 1, 1])
          expect(ran).toEqual([])
          expect(finished).toBeUndefined()
        }
      }
    })
  },
)
