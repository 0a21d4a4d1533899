import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { fromOpenAiCallId, toOpenAiCallId } from './openai-call-id.ts'

const form = /^call_[0-9A-Za-z]{1,35}$/u

describe('call ids of OpenAI', () => {
  test.each([
    ['OpenAI’s', 'call_kwQGU1mXGY3vwKPZZaSgVcDn', true],
    ['Anthropic’s', 'toolu_01T1x1fJ34qAmk2tNTrN7Up6', true],
    ['Bedrock’s', 'tooluse_-_ZpFwGCQ-GmTvMtvYn-Lw', true],
    ['Kimi’s', 'functions.Execute:0', true],
    ['Mistral’s', 'Xk3mPq9Ra', true],
    ['vLLM’s', 'chatcmpl-tool-9f1b2c3d4e5f60718293a4b5c6d7e8f9', false],
    ['a UUID', '0b5c2f2e-7f3a-4c1e-9d55-4a7d1c0e9b11', false],
    ['a composed one', 'call_kwQGU1mX|fc_68a1', false],
    ['of another alphabet', 'ключ 1', false],
    ['none', '', false],
  ])('an id has the form of OpenAI’s, and the usual ones are read back: %s', (_, id, isReadBack) => {
    const name = toOpenAiCallId(id)
    expect(name).toMatch(form)
    expect(fromOpenAiCallId(name)).toBe(isReadBack ? id : name)
  })

  test('known forms stay as they are: conversations that clients keep have them', () => {
    expect(['call_1', 'c1', 'toolu_01T1x1fJ34qAmk2tNTrN7Up6', 'a'.repeat(100)].map(toOpenAiCallId)).toEqual([
      'call_1',
      'call_mrxeX',
      'call_mrx4b2Hq5a7xhWB3j1CbpKjHA57h3zRdpo',
      'call_mrh1poHVH0uvirBEFLJcToZgE',
    ])
  })

  const letters = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
  const usual = fc.string({ unit: fc.constantFrom(...letters, ...'_-.:'), minLength: 1, maxLength: 50 })
  const formed = fc
    .string({ unit: fc.constantFrom(...letters), minLength: 1, maxLength: 40 })
    .map((rest) => `call_${rest}`)
  const marked = fc
    .tuple(
      fc.constantFrom('call_mrx', 'call_mrh', 'call_mr'),
      fc.string({ unit: fc.constantFrom(...letters), maxLength: 40 }),
    )
    .map((parts) => parts.join(''))
  const any = fc.oneof(usual, formed, marked, fc.string({ unit: 'binary', maxLength: 300 }))

  test('any id: one form, which is the form of itself and of what is read back', () => {
    fc.assert(
      fc.property(any, (id) => {
        const name = toOpenAiCallId(id)
        expect(name).toMatch(form)
        expect(toOpenAiCallId(name)).toBe(name)
        expect(toOpenAiCallId(fromOpenAiCallId(name))).toBe(name)
        expect(toOpenAiCallId(fromOpenAiCallId(id))).toBe(name)
      }),
    )
  })

  test('two ids never have one form, unless one is the form of the other; up to 31 usual characters are read back', () => {
    fc.assert(
      fc.property(any, any, (one, two) => {
        const [a, b] = [toOpenAiCallId(one), toOpenAiCallId(two)]
        if (a === b) expect([one, two, a]).toSatisfy(([x, y, name]: string[]) => x === y || x === name || y === name)
        if (!form.test(one) && /^[\w.:-]{1,31}$/u.test(one)) expect(fromOpenAiCallId(a)).toBe(one)
      }),
    )
  })

  test('ids that differ little have different hashes', () => {
    const like = Array.from({ length: 2000 }, (_, i) => `${'a'.repeat(i % 7)}-${i}-${'b'.repeat(60)}-${i % 10}`)
    expect(new Set(like.map(toOpenAiCallId)).size).toBe(like.length)
  })
})
