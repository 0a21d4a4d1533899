import { secureJsonParse } from '@ai-sdk/provider-utils'
import { expect, test } from 'vitest'
import { readJson } from './read-json.ts'

const texts = [
  '{"a":1}',
  '{"__proto__":{"a":1}}',
  '{"b":[{"__proto__" : null}]}',
  String.raw`{"\u005f_proto__":1}`,
  String.raw`{"b":{"_\u005F\u0070roto__":1}}`,
  '{"constructor":{"prototype":1}}',
  '{"constructor":{"other":1}}',
  String.raw`{"\u0063onstructor":{"prototype":{}}}`,
  String.raw`{"constructor":{"\u0070rototype":{}}}`,
  '"__proto__"',
  '{"text":"its constructor is \\"__proto__\\":"}',
  '{"a":',
  '__proto__',
]

test('a text is read as the packages read it: members that would change a prototype are refused, however they are escaped', () => {
  const outcomes = texts.map((text) => {
    const { value, error } = readJson(text, (data) => ({ success: true, data }))
    let expected: unknown
    try {
      expected = secureJsonParse(text)
    } catch (cause) {
      expect(error?.cause, text).toEqual(cause)
      return 'refused'
    }
    expect(JSON.stringify(value), text).toBe(JSON.stringify(expected))
    return 'read'
  })
  expect(outcomes.filter((outcome) => outcome === 'refused')).toHaveLength(9)
})
