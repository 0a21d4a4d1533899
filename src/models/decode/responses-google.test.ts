/** The packages are the oracle: every fixture of these protocols, cut anywhere and broken off anywhere, gives the same parts. */
import { describe, expect, test } from 'vitest'
import { composedFixtures, recordedFixtures, type ProviderFixture } from '../testing/provider-fixtures.ts'
import { compare, type Setting } from './testing/play-both.ts'
import { callOf, googleSetting, responsesSetting } from './testing/settings.ts'

const fixtures = [...composedFixtures, ...recordedFixtures()].filter(
  ({ provider }) => provider === 'openai-responses' || provider === 'google',
)

function settingOf({ provider, tools }: ProviderFixture): Setting {
  return (provider === 'google' ? googleSetting : responsesSetting)(callOf(tools))
}

function bytesOf({ provider }: ProviderFixture, lines: readonly string[]): Uint8Array {
  const frames = lines.map((line) => {
    const { type } = JSON.parse(line) as { type?: string }
    return `${provider === 'google' ? '' : `event: ${type}\n`}data: ${line}\n\n`
  })
  return new TextEncoder().encode(frames.join(''))
}

describe.each(fixtures.map((fixture) => [`${fixture.provider} ${fixture.name}`, fixture] as const))(
  '%s',
  (_, fixture) => {
    const setting = settingOf(fixture)

    test('comes to the same parts however it is cut', async () => {
      const bytes = bytesOf(fixture, fixture.lines)
      const places =
        bytes.length < 5000 ? Array.from({ length: bytes.length }, (_, i) => i + 1) : [1, 2, 3, 7, 64, 1000]
      const cuts = [0, 1, 7, 64, -1, -2, ...places]
      const [theirs, ours] = await compare(setting, bytes, cuts)
      expect(theirs.parts.length + (theirs.error === undefined ? 0 : 1)).toBeGreaterThan(0)
      for (const [i, heard] of ours.entries()) expect([cuts[i], heard]).toEqual([cuts[i], theirs])
    })

    test('comes to the same parts when it ends after any line', async () => {
      const { lines } = fixture
      for (let count = 0; count <= lines.length; count++) {
        if (lines.length > 200 && count % 20 !== 0 && lines.length - count > 20) continue
        const whole = bytesOf(fixture, lines.slice(0, count))
        // With its empty line, without it, and in the middle of the line.
        for (const bytes of [whole, whole.subarray(0, -1), whole.subarray(0, -20)]) {
          const [theirs, ours] = await compare(setting, bytes, [0, -3])
          for (const heard of ours) expect([count, heard]).toEqual([count, theirs])
        }
      }
    })
  },
)
