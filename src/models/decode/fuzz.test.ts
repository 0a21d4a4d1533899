/** Mutated streams through the packages and through the decoders. CONTRIBUTING.md has the command for a long run. */
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import type { Protocol } from '../testing/recorded-provider.ts'
import { answerOf } from './testing/answers.ts'
import { atRandom, framed, inPiecesOf, whole } from './testing/cuts.ts'
import { mutateStream } from './testing/mutations.ts'
import { isSame, playBoth, type Heard, type Setting } from './testing/play-both.ts'
import { below, pick, seeded, type Random } from './testing/random.ts'
import { otherSettings, plainSettings } from './testing/settings.ts'
import { protocols, streamsOf } from './testing/streams.ts'
import { often } from '../../../test/support/thorough.ts'

/** A protocol. */
const chunks = Number(process.env['MILLRACE_FUZZ'] ?? often(2000))
const firstSeed = Number(process.env['MILLRACE_FUZZ_SEED'] ?? 1)

// A package waits for 50 ms for an error that would refuse the request. A busy machine must not make that shorter.
beforeAll(() => void vi.useFakeTimers({ toFake: ['setTimeout'] }))
afterAll(() => void vi.useRealTimers())

const settings = Object.fromEntries(
  protocols.map((protocol) => [protocol, [...plainSettings(protocol, ['lookup', 'add']), ...otherSettings[protocol]]]),
) as Record<Protocol, Setting[]>

test.each(protocols)(
  '%s: mutated chunks come to the same parts',
  { timeout: 60_000 + chunks * 20 },
  async (protocol) => {
    let count = 0
    for (let seed = firstSeed; count < chunks; seed++) {
      const random = seeded(seed)
      const lines = mutatedLines(protocol, random)
      count += lines.length
      const setting = pick(settings[protocol], random)
      const more = protocol === 'google' && random() < 0.3 ? lines.splice(below(lines.length, random)) : []
      const answer = {
        bodies: (more.length > 0 ? [lines, more] : [lines]).map((body) => framedAtRandom(body, random)),
        isBroken: random() < 0.1,
      }
      const cut = pick([inPiecesOf(4096), inPiecesOf(500), inPiecesOf(64), atRandom(seed)], random)
      const [theirs, ours] = await playBoth(setting, answer, [whole, cut])
      for (const heard of ours) {
        if (isSame(heard, theirs)) continue
        const at = heard.parts.findIndex((part, i) => part !== theirs.parts[i])
        const shown = ({ parts, error }: Heard) => ({ seed, at, parts: parts.slice(at, at + 3), error, lines })
        expect(shown(heard), setting.name).toEqual(shown(theirs))
        expect.unreachable(`seed ${seed}: the request was refused by only one of them`)
      }
    }
  },
)

/** Some are of a recording, some are made up. */
function mutatedLines(protocol: Protocol, random: Random): string[] {
  const made = () => answerOf(protocol, random, 1 + below(20, random))
  const streams = streamsOf(protocol)
  const stream = () => pick(streams, random).lines
  let lines = made()
  if (random() < 0.4) {
    const recorded = stream()
    const from = random() < 0.3 ? 0 : below(recorded.length, random)
    lines = [...recorded.slice(from, from + 20 + below(20, random)), ...(random() < 0.5 ? lines.slice(0, 4) : [])]
  }
  const other = () => (random() < 0.5 ? pick(stream(), random) : (answerOf(protocol, random, 1)[0] ?? '{}'))
  return mutateStream(lines, other, random)
}

function framedAtRandom(lines: readonly string[], random: Random): Uint8Array {
  const end = random() < 0.8 ? '\n' : pick(['\r\n', '\r'], random)
  return framed(lines, { end, isNamed: random() < 0.5, isDone: random() < 0.5, hasComments: random() < 0.1 })
}
