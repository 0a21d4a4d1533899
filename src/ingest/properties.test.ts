/** Whatever CLI agents print, and wherever it breaks off. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { addUsage, type Usage } from '../part/usage.ts'
import type { CliName } from './cli-names.ts'
import type { Transcript } from './testing/arbitrary.ts'
import { arbitraryClaude } from './testing/arbitrary-claude.ts'
import { arbitraryCodex, arbitraryGemini } from './testing/arbitrary-others.ts'
import { faultsOf, play, textIn } from './testing/play.ts'

const formats: [CliName, fc.Arbitrary<Transcript>][] = [
  ['claude', arbitraryClaude],
  ['codex', arbitraryCodex],
  ['gemini', arbitraryGemini],
]
const utf8 = new TextEncoder()

function bytesOf({ lines }: Transcript, end = '\n'): Uint8Array {
  return utf8.encode(lines.map((line) => (typeof line === 'string' ? line : JSON.stringify(line)) + end).join(''))
}

describe.each(formats)('%s', (cli, transcripts) => {
  test('everything that was said is in the parts, once', () => {
    fc.assert(
      fc.property(transcripts, (transcript) => {
        const { parts, outcome } = play(cli, bytesOf(transcript))
        expect(faultsOf(parts)).toEqual([])
        expect(outcome.outcome).toBe('completed')
        // Claude's result is said if there is nothing else.
        expect(textIn(parts)).toBe(transcript.text === '' && cli === 'claude' ? 'Hi!' : transcript.text)
        const isOwn = (part: object) => !JSON.stringify(part).includes('parentToolUseId')
        const reasoning = parts
          .map((part) => (part.type === 'reasoning-delta' && isOwn(part) ? part.delta : ''))
          .join('')
        // Codex and Gemini CLI do not say which reasoning is whose.
        expect(reasoning).toBe(transcript.reasoning)
        const raw = parts.flatMap((part) => (part.type === 'cli-output' ? [part.raw] : []))
        expect(raw.toSorted()).toEqual(transcript.output.toSorted())
        expect(callsIn(parts)).toEqual(new Map(transcript.calls.map(({ id, ...call }) => [id, call])))
        const spent = parts.flatMap((part) => (part.type === 'usage' ? [part.usage] : []))
        expect(spent.reduce<Usage | undefined>(addUsage, undefined)).toEqual(outcome.usage)
      }),
      { numRuns: 150 },
    )
  })

  test('the bytes may be cut anywhere, have any line ends, and end without one', () => {
    fc.assert(
      fc.property(
        transcripts,
        fc.array(fc.nat({ max: 40 }), { minLength: 1 }),
        fc.boolean(),
        (transcript, cuts, crlf) => {
          const whole = play(cli, bytesOf(transcript))
          const bytes = bytesOf(transcript, crlf ? '\r\n\r\n' : '\n').slice(0, -1)
          const chunks: Uint8Array[] = []
          for (let at = 0, n = 0; at < bytes.length; n++) {
            const size = 1 + cuts[n % cuts.length]!
            chunks.push(bytes.slice(at, (at += size)))
          }
          expect(play(cli, chunks)).toEqual(whole)
        },
      ),
      { numRuns: 100 },
    )
  })

  test('wherever it is killed, what has started ends, and each call has an outcome', () => {
    fc.assert(
      fc.property(
        transcripts,
        fc.double({ min: 0, max: 1, noNaN: true }),
        fc.boolean(),
        (transcript, where, killed) => {
          const bytes = bytesOf(transcript)
          const exit = killed ? { code: null, signal: 'SIGKILL' } : { code: 0, signal: null }
          const { parts, outcome } = play(cli, bytes.slice(0, Math.floor(bytes.length * where)), { exit })
          expect(faultsOf(parts)).toEqual([])
          const isCut = Math.floor(bytes.length * where) < bytes.length - 1
          if (isCut) expect(outcome.outcome).toBe('interrupted')
        },
      ),
      { numRuns: 150 },
    )
  })

  test('lines in any order, some twice, are legal', () => {
    fc.assert(
      fc.property(transcripts, fc.array(fc.nat(), { maxLength: 60 }), (transcript, picks) => {
        const lines = picks.map((pick) => transcript.lines[pick % transcript.lines.length]!)
        expect(faultsOf(play(cli, bytesOf({ ...transcript, lines })).parts)).toEqual([])
      }),
      { numRuns: 150 },
    )
  })
})

test('events with any values in any place are legal', () => {
  const words = [
    'type',
    'subtype',
    'message',
    'content',
    'event',
    'item',
    'id',
    'text',
    'index',
    'delta',
    'usage',
    'tool_use_id',
    'tool_id',
  ]
  const values = [
    'stream_event',
    'assistant',
    'user',
    'result',
    'content_block_start',
    'content_block_delta',
    'tool_use',
    'item.completed',
    'tool_result',
    'x',
  ]
  const { value } = fc.letrec((tie) => ({
    value: fc.oneof({ maxDepth: 4 }, fc.constantFrom(...values, null, 0, -1, true), tie('list'), tie('object')),
    list: fc.array(tie('value'), { maxLength: 2 }),
    object: fc.dictionary(fc.constantFrom(...words), tie('value'), { maxKeys: 5, noNullPrototype: true }),
  }))
  fc.assert(
    fc.property(fc.constantFrom(...formats), fc.array(value, { maxLength: 20 }), ([cli], given) => {
      const lines = given.map((each) => `${JSON.stringify(each)}\n`).join('')
      expect(faultsOf(play(cli, lines).parts)).toEqual([])
    }),
    { numRuns: 500 },
  )
})

function callsIn(parts: ReturnType<typeof play>['parts']) {
  const calls = new Map<string, { name: string; input: unknown; output?: unknown; isError?: boolean }>()
  for (const part of parts) {
    if (part.type === 'tool-call') {
      expect(calls.has(part.toolCallId)).toBe(false)
      calls.set(part.toolCallId, { name: part.toolName, input: JSON.parse(part.input) as unknown })
    } else if (part.type === 'tool-result') {
      const call = calls.get(part.toolCallId)!
      expect(call).not.toHaveProperty('output')
      expect(part.toolName).toBe(call.name)
      Object.assign(call, { output: part.result, isError: part.isError })
    }
  }
  return calls
}
