/** The packages are the oracle: every stream, cut anywhere and broken off anywhere, comes to the same parts. */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { cutsOf, framed, inPiecesOf, whole, type Framing } from './testing/cuts.ts'
import { isSame, playBoth, type Answer, type Cut, type Setting } from './testing/play-both.ts'
import { otherSettings, plainSettings } from './testing/settings.ts'
import { protocols, sampledStreams, streamsOf } from './testing/streams.ts'
import { often, someOf } from '../../../test/support/thorough.ts'

// A package waits for 50 ms for an error that would refuse the request. A busy machine must not make that shorter.
beforeAll(() => void vi.useFakeTimers({ toFake: ['setTimeout'] }))
afterAll(() => void vi.useRealTimers())

async function expectSame(setting: Setting, answer: Answer, cuts: readonly Cut[], what: object): Promise<void> {
  const [theirs, ours] = await playBoth(setting, answer, cuts)
  for (const [i, heard] of ours.entries()) {
    // `toEqual` is slow and only says where they differ.
    if (!isSame(heard, theirs))
      expect({ ...what, cut: i, ...heard }, setting.name).toEqual({ ...what, cut: i, ...theirs })
  }
}

/** More of them if there is time. */
const samples = process.env['MILLRACE_FUZZ'] === undefined ? often(4) : 40

describe.each(protocols)('%s', (protocol) => {
  const framing: Framing = { isNamed: protocol === 'anthropic' || protocol === 'openai-responses' }
  const streams = [...streamsOf(protocol), ...sampledStreams(protocol, samples)].map(
    (stream) => [stream.name, stream] as const,
  )

  test('there are recordings or fixtures, and a request that changes how they are read', () => {
    expect(streamsOf(protocol).length).toBeGreaterThan(0)
    expect(otherSettings[protocol].length).toBeGreaterThan(0)
  })

  test('JSON that is too deep for the stack', async () => {
    const deep = `${'[{"a":'.repeat(1e5)}1${'}]'.repeat(1e5)}`
    const [, { lines }] = streams[0]!
    for (const place of [0, 3]) {
      const body = framed([...lines.slice(0, place), deep, ...lines.slice(place)], framing)
      for (const setting of plainSettings(protocol, [])) await expectSame(setting, { bodies: [body] }, [whole], {})
    }
  })

  describe.each(streams)('%s', (_, { lines, tools }) => {
    const settings = plainSettings(protocol, tools)

    test('cut anywhere', async () => {
      const body = framed(lines, { ...framing, isDone: true })
      for (const setting of settings) await expectSame(setting, { bodies: [body] }, cutsOf(body), {})
    })

    test('broken off after any line, inside it, and by the connection', async () => {
      for (const count of countsOf(lines.length)) {
        const body = framed(lines.slice(0, count), framing)
        // With its empty line, without it, and in the middle of the line.
        const ends = [body, body.subarray(0, -1), body.subarray(0, -20)] as const
        const [complete, , inside] = ends
        const answers: Answer[] = [
          ...ends.map((end) => ({ bodies: [end] })),
          ...[complete, inside].map((end) => ({ bodies: [end], isBroken: true })),
        ]
        for (const [i, answer] of answers.entries()) {
          for (const setting of settings) await expectSame(setting, answer, [whole, inPiecesOf(64)], { count, i })
        }
      }
    })

    test('with a line that is cut off or not JSON in the middle', async () => {
      const at = lines.length >> 1
      for (const odd of [lines[at]!.slice(0, 20), '{}', '[]', 'null', '1', '{"type":1}']) {
        const body = framed([...lines.slice(0, at), odd, ...lines.slice(at)], framing)
        for (const setting of settings) await expectSame(setting, { bodies: [body] }, [whole], { odd })
      }
    })

    test('after other requests', async () => {
      for (const setting of otherSettings[protocol]) {
        for (const count of [lines.length, lines.length - 1, lines.length >> 1]) {
          const body = framed(lines.slice(0, count), framing)
          await expectSame(setting, { bodies: [body] }, [whole, inPiecesOf(64)], { count })
        }
      }
    })
  })
})

/** All of a short stream; of a long one the first, the last and some between. */
function countsOf(lines: number): number[] {
  const all = Array.from({ length: lines + 1 }, (_, i) => i)
  return someOf(
    all.filter((i) => lines < 60 || i < 5 || i % 40 === 0 || lines - i < 4),
    lines,
  )
}
