import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isBareDelta, type RecordedPart } from '../part/entry.ts'
import { createRedactor } from './redact.ts'
import { often } from '../../test/support/thorough.ts'

const secret = 'sk-12345678'
const step = 'main/answer/1'
const text = (delta: string, id = 'a'): RecordedPart => ({ type: 'text-delta', id, delta })

/**
 * Feeds deltas and the end of one block, as a writer does: what the redactor keeps is not given to it. Gives what comes out of each, which
 * is the same as if all were given to it.
 */
function feed(secrets: string[], deltas: string[], kind: 'text' | 'reasoning' | 'tool-input' = 'text'): string[] {
  const { redact, keeps } = createRedactor(secrets)
  const asked = createRedactor(secrets)
  const parts: RecordedPart[] = [
    ...deltas.map((delta) => ({ type: `${kind}-delta` as const, id: 'a', delta })),
    { type: `${kind}-end`, id: 'a' },
  ]
  return parts.map((part) => {
    const out = isBareDelta(part) && keeps(part) ? [part] : redact(step, part)
    expect(out).toEqual(asked.redact(step, part))
    expect(out.length).toBeLessThanOrEqual(2)
    if (part.type === `${kind}-end`) expect(out.at(-1)).toBe(part)
    return out.map((p) => ('delta' in p ? p.delta : '')).join('')
  })
}

describe('over deltas', () => {
  test('a secret cut anywhere is taken out, in every kind of block', () => {
    for (const kind of ['text', 'reasoning', 'tool-input'] as const) {
      for (let cut = 0; cut <= secret.length; cut++) {
        const out = feed([secret], [`key ${secret.slice(0, cut)}`, `${secret.slice(cut)} end`], kind)
        expect(out.join('')).toBe(cut === 1 ? 'key s[redacted] end' : 'key [redacted] end')
      }
      expect(feed([secret], [...`${secret}.`], kind).join('')).toBe('s[redacted].')
    }
  })

  test('two characters that begin a secret are held, one is not, and only until it is decided', () => {
    expect(feed([secret], ['task', ' s', 'ee', ' sk-', '9', ' sk-1'])).toEqual([
      'ta',
      'sk s',
      'ee',
      ' ',
      'sk-9',
      ' ',
      'sk-1',
    ])
    expect(feed([secret], ['plants', '', ' s', 'k', 'y', 's'])).toEqual(['plants', '', ' s', '', 'ky', 's', ''])
  })

  test('of two secrets that begin alike the longer is taken, else the shorter', () => {
    const secrets = ['abcdef', 'abcdefghij']
    expect(feed(secrets, ['abcdef', 'ghi', 'j!']).join('')).toBe('[redacted]!')
    expect(feed(secrets, ['abcdef', 'ghi', '!']).join('')).toBe('[redacted]ghi!')
    expect(feed(secrets, ['abcdef']).join('')).toBe('[redacted]')
  })

  test('blocks that run side by side are kept apart', () => {
    const { redact } = createRedactor([secret])
    expect(redact(step, text('sk-1234', 'a'))).toEqual([])
    expect(redact(step, text('5678', 'b'))).toEqual([text('5678', 'b')])
    expect(redact('main/x/1', { type: 'tool-input-delta', id: 'c', delta: 'sk-1234' })).toEqual([])
    expect(redact('main/y/1', { type: 'tool-input-delta', id: 'c', delta: '5678' })).toHaveLength(1)
    expect(redact(step, text('5678', 'a'))).toEqual([text('[redacted]', 'a')])
    expect(redact('main/x/1', { type: 'tool-input-end', id: 'c' })).toEqual([
      { type: 'tool-input-delta', id: 'c', delta: 'sk-1234' },
      { type: 'tool-input-end', id: 'c' },
    ])
  })

  test('a signature on a delta whose text is held, or empty, is not lost', () => {
    const { redact } = createRedactor([secret])
    const signed = {
      type: 'reasoning-delta',
      id: 'a',
      delta: 'sk-',
      providerMetadata: { x: { signature: 's' } },
    } as const
    expect(redact(step, signed)).toEqual([{ ...signed, delta: '' }])
    const empty = { ...signed, id: 'b', delta: '' }
    expect(redact(step, empty)[0]).toBe(empty)
    const bare = text('', 'c')
    expect(redact(step, bare)[0]).toBe(bare)
  })

  // Few letters, so that random secrets overlap each other, themselves and the text all the time.
  const letters = fc.string({ unit: fc.constantFrom('a', 'b', '"'), maxLength: 60 })
  const secrets = fc.array(fc.string({ unit: fc.constantFrom('a', 'b', '"'), minLength: 6, maxLength: 9 }), {
    minLength: 1,
    maxLength: 4,
  })
  const cutInto = (whole: string, cuts: number[]) => {
    const places = [0, ...cuts.map((c) => c % (whole.length + 1)).sort((a, b) => a - b), whole.length]
    return places.slice(1).map((end, i) => whole.slice(places[i], end))
  }

  test('any cut gives the same result as the whole except for a first character, and no output holds a secret', () => {
    fc.assert(
      fc.property(secrets, letters, fc.array(fc.nat(60), { maxLength: 20 }), letters, (known, a, cuts, b) => {
        const whole = a + known[0] + b
        const out = feed(known, cutInto(whole, cuts)).join('')
        // A cut behind a secret's first character leaves that one.
        const pieces = wholeText(known, whole).split('[redacted]')
        expect(out).toMatch(new RegExp(`^${pieces.join('.?\\[redacted\\]')}$`, 'u'))
        for (const one of known) expect(out).not.toContain(one)
      }),
      { numRuns: often(2000) },
    )
  })

  test('most deltas are kept without a look at the rest', () => {
    const { redact, keeps } = createRedactor([secret])
    const delta = (delta: string) => ({ type: 'text-delta' as const, id: 'a', delta })
    expect(keeps(delta('a word'))).toBe(true)
    expect(keeps(delta('a look at keys '))).toBe(true)
    for (const text of [secret, `x ${secret} y`, 'a desk', 'plants']) expect(keeps(delta(text)), text).toBe(false)
    redact(step, delta('task'))
    expect(keeps(delta('a word')), 'after a text that was held back').toBe(false)
  })

  test('the text held back is shorter than the longest secret', () => {
    fc.assert(
      fc.property(secrets, letters, fc.array(fc.nat(60), { maxLength: 20 }), (known, whole, cuts) => {
        const deltas = cutInto(whole, cuts)
        // The quote is two characters in JSON and three in a URL.
        const longest = Math.max(...known.flatMap((s) => [encodeURIComponent(s).length, JSON.stringify(s).length]))
        expect(feed(known, deltas).at(-1)!.length).toBeLessThan(longest + '[redacted]'.length)
      }),
    )
  })
})

function wholeText(secrets: string[], delta: string): string {
  const [part] = createRedactor(secrets).redact(step, { type: 'warning', code: 'c', message: delta })
  return part?.type === 'warning' ? part.message : ''
}

describe('in whole parts', () => {
  const { redact } = createRedactor([secret, 'two"lines\nhere', 'a b/c d?'])

  test('every string, however deep, and object keys', () => {
    const part: RecordedPart = {
      type: 'step-finish',
      duration: 1,
      result: { list: [1, null, `x ${secret}`, { [secret]: { ok: true } }], url: new URL(`http://a/?key=${secret}`) },
      error: { code: 'e', message: `401 for ${secret}, really ${secret}` },
    }
    expect(redact(step, part)).toEqual([
      {
        type: 'step-finish',
        duration: 1,
        result: { list: [1, null, 'x [redacted]', { '[redacted]': { ok: true } }], url: 'http://a/?key=[redacted]' },
        error: { code: 'e', message: '401 for [redacted], really [redacted]' },
      },
    ])
    expect(JSON.stringify(part)).toContain(secret)
  })

  test('as it is written in JSON and in a URL', () => {
    const input = JSON.stringify({ password: 'two"lines\nhere' })
    const call: RecordedPart = { type: 'tool-call', toolCallId: 'c', toolName: 't', input }
    expect(redact(step, call)).toEqual([{ ...call, input: '{"password":"[redacted]"}' }])
    const raw: RecordedPart = { type: 'cli-output', stream: 'stderr', raw: `GET /?p=${encodeURIComponent('a b/c d?')}` }
    expect(redact(step, raw)).toEqual([{ ...raw, raw: 'GET /?p=[redacted]' }])
  })

  test('nothing to take out gives the same part', () => {
    const parts: RecordedPart[] = [
      { type: 'data', name: 'x', data: { list: ['a', { b: new Date(0) }], bytes: new Uint8Array(3) } },
      text('hello'),
      { type: 'text-end', id: 'a' },
      { type: 'run-end', outcome: 'completed', usage: { source: 'reported' } },
    ]
    for (const part of parts) {
      const out = redact(step, part)
      expect(out).toHaveLength(1)
      expect(out[0]).toBe(part)
    }
  })

  test('ids that connect parts stay, even when a secret has the same text', () => {
    const careless = createRedactor(['text-start', 'call-1'])
    const result = { type: 'tool-result', toolCallId: 'call-1', toolName: 't', result: 'call-1' } as const
    expect(careless.redact(step, result)).toEqual([{ ...result, result: '[redacted]' }])
    const start = { type: 'text-start', id: 'call-1' } as const
    expect(careless.redact(step, start)).toEqual([start])
  })

  test('a cycle does not hang it', () => {
    const data: Record<string, unknown> = { secret }
    data.self = data
    const [part] = redact(step, { type: 'data', name: 'x', data })
    expect(part).toEqual({ type: 'data', name: 'x', data: { secret: '[redacted]', self: '[circular]' } })
  })
})

test('short values and no values leave everything alone', () => {
  for (const secrets of [[], ['', 'abc', '12345']]) {
    const { redact } = createRedactor(secrets)
    const part = text('abc 12345')
    expect(redact(step, part)[0]).toBe(part)
  }
})
