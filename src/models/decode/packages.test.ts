/** The AI SDK's packages are the oracle for complete answers: each recording comes to the same parts. `packages.all.test.ts` cuts them at every byte. */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { framed, someCutsOf } from './testing/cuts.ts'
import { callOf, comparable, hear, hearPackage, otherCalls, playing, protocols } from './testing/play.ts'
import { streamsOf } from './testing/streams.ts'

// A package waits for 50 ms for an error that would refuse the request.
beforeAll(() => void vi.useFakeTimers({ toFake: ['setTimeout'] }))
afterAll(() => void vi.useRealTimers())

describe.each(protocols)('%s', (protocol) => {
  const isNamed = protocol === 'anthropic' || protocol === 'openai-responses'
  const complete: boolean[] = []

  test.each(streamsOf(protocol).map((stream) => [stream.name, stream] as const))('%s', async (_, { lines, tools }) => {
    const body = framed(lines, { isNamed, isDone: protocol === 'openai-chat' })
    const sent = new TextDecoder().decode(body)
    for (const call of [callOf(tools), callOf(tools, otherCalls[protocol])]) {
      const ours = comparable(hear(protocol, [body], call), sent)
      const theirs = await hearPackage(protocol, [body], call)
      complete.push(theirs !== undefined)
      if (theirs !== undefined) expect(ours).toEqual(comparable(theirs, sent))
    }
    const call = callOf(tools)
    const ours = comparable(hear(protocol, [body], call), sent)
    for (const cut of someCutsOf(body)) {
      const cutUp = comparable(hear(protocol, cut(body), call), sent)
      if (JSON.stringify(cutUp) !== JSON.stringify(ours)) expect(cutUp).toEqual(ours)
    }
  })

  test('the packages take most of them for complete', () => {
    expect(complete.filter(Boolean).length).toBeGreaterThanOrEqual(complete.length / 2)
  })
})

test('Google: an answer of several requests tells what each was grounded in, and its counts are sums', async () => {
  const counted = (tokenCount: number, rest: object) => ({
    promptTokenCount: 5,
    candidatesTokenCount: tokenCount,
    promptTokensDetails: [
      { modality: 'TEXT', tokenCount },
      { modality: 'IMAGE', tokenCount: 1 },
    ],
    ...rest,
  })
  const grounded = { groundingMetadata: { webSearchQueries: ['q'] } }
  const goesOn = { finishReason: 'CONTINUATION', continuationToken: 't1' }
  const body = (text: string, rest: object, usageMetadata: object) =>
    framed([JSON.stringify({ candidates: [{ content: { parts: [{ text }] }, ...rest }], usageMetadata })])
  const bodies = [
    body('one ', { ...goesOn, ...grounded }, counted(2, { thoughtsTokenCount: 1 })),
    body('two ', goesOn, counted(3, { cacheTokensDetails: [{ modality: 'TEXT', tokenCount: 1 }] })),
    body('three', { finishReason: 'STOP', ...grounded }, counted(4, {})),
  ]
  const { reader, parts } = playing('google')
  for (const [i, each] of bodies.entries()) {
    if (i > 0) reader.continued!()
    reader.push(each)
  }
  reader.end()
  expect(comparable(parts, '')).toEqual(comparable((await hearPackage('google', bodies))!, ''))
  expect(parts.at(-1)).toMatchObject({ providerMetadata: { google: { initialPromptTokenCount: 5 } } })
})
