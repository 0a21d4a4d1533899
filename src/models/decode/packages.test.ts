/** The AI SDK's packages are the oracle for complete answers: each recording comes to the same parts, however it is cut. */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { cutsOf, framed, inPiecesOf, whole } from './testing/cuts.ts'
import { callOf, comparable, hear, hearPackage, protocols } from './testing/play.ts'
import { streamsOf } from './testing/streams.ts'

// A package waits for 50 ms for an error that would refuse the request.
beforeAll(() => void vi.useFakeTimers({ toFake: ['setTimeout'] }))
afterAll(() => void vi.useRealTimers())

describe.each(protocols)('%s', (protocol) => {
  const isNamed = protocol === 'anthropic' || protocol === 'openai-responses'

  test.each(streamsOf(protocol).map((stream) => [stream.name, stream] as const))('%s', async (_, { lines, tools }) => {
    const call = callOf(tools)
    for (const isDone of [false, protocol === 'openai-chat']) {
      const body = framed(lines, { isNamed, isDone })
      const sent = new TextDecoder().decode(body)
      const ours = comparable(hear(protocol, [body], call), sent)
      const theirs = await hearPackage(protocol, body, call)
      if (theirs !== undefined) expect(ours).toEqual(comparable(theirs, sent))
      // Short ones at every byte; of a long one a few places.
      const cuts = body.length < 3000 ? cutsOf(body) : [whole, inPiecesOf(1), inPiecesOf(64), inPiecesOf(1000)]
      for (const cut of cuts) {
        const cutUp = comparable(hear(protocol, cut(body), call), sent)
        if (JSON.stringify(cutUp) !== JSON.stringify(ours)) expect(cutUp).toEqual(ours)
      }
    }
  })

  test('the packages take most of them for complete', async () => {
    const heard = await Promise.all(
      streamsOf(protocol).map(({ lines }) => hearPackage(protocol, framed(lines, { isNamed }))),
    )
    expect(heard.filter((parts) => parts !== undefined).length).toBeGreaterThan(heard.length / 2)
  })
})
