/** Plays a mutated stream and checks: nothing throws, there is one end, and no earlier text is lost, for any cut. */
import { expect } from 'vitest'
import type { Protocol } from '../../testing/recorded-provider.ts'
import { framed, inPiecesOf, inTwoAt } from './cuts.ts'
import { mutateStream } from './mutations.ts'
import { callOf, hear, textIn } from './play.ts'
import { below, pick, seeded } from './random.ts'
import { streamsOf } from './streams.ts'

export function checkMutated(protocol: Protocol, seed: number): void {
  const random = seeded(seed)
  const { lines, tools } = pick(streamsOf(protocol), random)
  const part = lines.slice(0, 60)
  const at = below(part.length, random)
  const mutated = [...part.slice(0, at), ...mutateStream(part.slice(at), () => pick(lines, random), random)]
  const body = framed(mutated, { isNamed: random() < 0.5, isDone: random() < 0.5 })
  const whole = hear(protocol, [body], callOf(tools))
  const ends = whole.filter(({ type }) => type === 'finish')
  expect([seed, ends.length, whole.at(-1)]).toEqual([seed, 1, ends[0]])
  const before = textIn(hear(protocol, [framed(part.slice(0, at))], callOf(tools)))
  expect([seed, textIn(whole).startsWith(before)]).toEqual([seed, true])
  for (const cut of [inPiecesOf(7), inPiecesOf(200), inTwoAt(body.length >> 1)]) {
    expect([seed, hear(protocol, cut(body), callOf(tools))]).toEqual([seed, whole])
  }
}
