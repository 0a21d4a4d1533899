/**
 * Mutated streams through the packages and through the decoders. `FUZZ_CHUNKS=1000000 npx vitest run src/models/decode/fuzz.test.ts`
 * for a long run; `FUZZ_SEED` begins elsewhere.
 */
import type { LanguageModelV4CallOptions } from '@ai-sdk/provider'
import { describe, expect, test } from 'vitest'
import { composedFixtures, recordedFixtures } from '../testing/provider-fixtures.ts'
import { answerOf } from './testing/answers.ts'
import { mutateStream } from './testing/mutations.ts'
import { compare, seeded, type Heard, type Setting } from './testing/play-both.ts'
import { pick, type Random } from './testing/samples.ts'
import { callOf, googleSetting, responsesSetting } from './testing/settings.ts'

const chunks = Number(process.env['FUZZ_CHUNKS'] ?? 20_000)
const firstSeed = Number(process.env['FUZZ_SEED'] ?? 1)

const tools = ['lookup', 'add']
const openai = (options: object) => ({ providerOptions: { openai: options } }) as Partial<LanguageModelV4CallOptions>
const jsonFormat = { responseFormat: { type: 'json' as const, schema: { type: 'object' as const } } }
const calls: Record<string, Setting[]> = {
  'openai-responses': [
    responsesSetting(callOf(tools)),
    responsesSetting(callOf([], { includeRawChunks: true })),
    responsesSetting(callOf(tools, openai({ store: true, logprobs: 2 }))),
    responsesSetting(
      callOf([], {
        tools: [
          { type: 'provider', id: 'openai.web_search', name: 'search', args: {} },
          { type: 'provider', id: 'openai.code_interpreter', name: 'python', args: {} },
          { type: 'provider', id: 'openai.shell', name: 'bash', args: { environment: { type: 'containerAuto' } } },
        ],
        prompt: [
          { role: 'user', content: [{ type: 'text', text: 'Hi' }] },
          {
            role: 'assistant',
            content: [
              {
                type: 'tool-call',
                toolCallId: 'approved',
                toolName: 'mcp.x',
                input: {},
                providerOptions: { openai: { approvalRequestId: 'a' } },
              },
            ],
          },
        ],
      }),
    ),
  ],
  google: [
    googleSetting(callOf(tools)),
    googleSetting(callOf([], { includeRawChunks: true })),
    googleSetting(callOf(tools, jsonFormat), 'gemini-2.5-flash'),
    googleSetting(
      callOf([], { tools: [{ type: 'provider', id: 'google.code_execution', name: 'python', args: {} }] }),
      'gemini-2.5-flash',
    ),
  ],
}

const fixtures = [...composedFixtures, ...recordedFixtures()]
describe.each(['openai-responses', 'google'])('%s', (provider) => {
  const recorded = fixtures.filter((fixture) => fixture.provider === provider).map(({ lines }) => lines)
  const other = (random: Random) => answerOf(provider, random, 1)[0] ?? '{}'

  function linesOf(random: Random): string[] {
    const made = answerOf(provider, random, 1 + Math.floor(random() * 20))
    if (random() < 0.6) return made
    const lines = pick(recorded, random)
    const at = Math.floor(random() * lines.length)
    const short = random() < 0.3 ? lines : lines.slice(at, at + 20)
    const begun = short.length > 40 ? short.slice(0, 40) : short
    return random() < 0.5 ? begun : [...begun, ...made.slice(0, 4)]
  }

  test(
    'mutated chunks come to the same parts',
    async () => {
      let count = 0
      for (let seed = firstSeed; count < chunks / 2; seed++) {
        const random = seeded(seed)
        const lines = mutateStream(linesOf(random), () => other(random), random)
        const setting = pick(calls[provider]!, random)
        const more = provider === 'google' && random() < 0.3 ? lines.splice(Math.floor(random() * lines.length)) : []
        const [bytes, ...others] = [lines, more].map((body) => new TextEncoder().encode(framed(body, random)))
        const [theirs, ours] = await compare(setting, bytes!, [0, -seed], others)
        for (const heard of ours) {
          if (isSame(heard, theirs)) continue
          const at = heard.parts.findIndex((part, i) => part !== theirs.parts[i])
          const shown = ({ parts, error }: Heard) => ({ seed, at, parts: parts.slice(at, at + 3), error, lines })
          expect(shown(heard)).toEqual(shown(theirs))
        }
        count += lines.length + more.length
      }
    },
    Math.max(60_000, chunks * 5),
  )
})

function framed(lines: readonly string[], random: Random): string {
  const end = random() < 0.8 ? '\n' : pick(['\r\n', '\r'], random)
  const all = lines.map((line) => {
    const event = random() < 0.5 ? `event: x${end}` : ''
    return `${event}data: ${line}${end}${end}`
  })
  return all.join('') + (random() < 0.5 ? 'data: [DONE]\n\n' : '')
}

/** Where a package's stream breaks off, the parts that nobody has read yet are lost: that depends on timing. */
function isSame(ours: Heard, theirs: Heard): boolean {
  if (ours.error !== theirs.error) return false
  const isBroken = theirs.error !== undefined && theirs.isRefused === false
  const parts = isBroken ? ours.parts.slice(0, theirs.parts.length) : ours.parts
  return (isBroken || ours.isRefused === theirs.isRefused) && parts.join('\n') === theirs.parts.join('\n')
}
