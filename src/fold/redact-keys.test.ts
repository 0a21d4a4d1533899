/** Values of named keys in inputs and outputs of tools: hidden wherever the text is cut, and nothing else. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { RecordedPart } from '../part/entry.ts'
import { createCleaner, createRedactor } from './redact.ts'

const step = 'main/x/1'
const keys = ['password', 'api_key']

function written(pieces: string[], { values = [] as string[], named = keys } = {}): string {
  const { redact } = createRedactor(values, named)
  const parts: RecordedPart[] = [
    { type: 'tool-input-start', id: 'c', toolName: 't' },
    ...pieces.map((delta): RecordedPart => ({ type: 'tool-input-delta', id: 'c', delta })),
    { type: 'tool-input-end', id: 'c' },
  ]
  return parts
    .flatMap((part) => redact(step, part))
    .map((part) => (part.type === 'tool-input-delta' ? part.delta : ''))
    .join('')
}

function called(input: string): string {
  const [part] = createRedactor([], keys).redact(step, { type: 'tool-call', toolCallId: 'c', toolName: 't', input })
  return (part as { input: string }).input
}

function returned(result: unknown): unknown {
  const given = { type: 'tool-result', toolCallId: 'c', toolName: 't', result } as RecordedPart
  return (createRedactor([], keys).redact(step, given)[0] as { result: unknown }).result
}

/** What should become of a value. */
function hidden(value: unknown, isSecret = false): unknown {
  if (typeof value === 'string' || typeof value === 'number') return isSecret ? '[redacted]' : value
  if (Array.isArray(value)) return value.map((each) => hidden(each, isSecret))
  if (typeof value !== 'object' || value === null) return value
  const isNamed = (key: string) =>
    keys.some((each) => each.replace('_', '') === key.toLowerCase().replace(/[-_]/gu, ''))
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, hidden(each, isSecret || isNamed(key))]))
}

const { value: json } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.string({ unit: fc.constantFrom('a', '"', '\\', '{', '}', ':', ',', '\n', 'é') }),
    fc.integer(),
    fc.double({ noNaN: true, noDefaultInfinity: true }).map((n) => (Object.is(n, -0) ? 0 : n)),
    fc.constantFrom(true, false, null),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(
      fc.constantFrom('password', 'Pass-Word', 'API_KEY', 'apikey', 'user', 'pass"word', 'x:y'),
      tie('value'),
    ),
  ),
}))

describe('an input that is being written', () => {
  test('any cut of the input gives the same result as the whole, and the same JSON as the call', () => {
    fc.assert(
      fc.property(json, fc.constantFrom(0, 2), fc.array(fc.nat(80)), (value, indent, cuts) => {
        const whole = JSON.stringify(value, null, indent)
        const places = [0, ...cuts.filter((cut) => cut < whole.length).toSorted((a, b) => a - b), whole.length]
        const out = written(places.slice(1).map((to, i) => whole.slice(places[i], to)))
        expect(out).toBe(called(whole))
        expect(JSON.parse(out)).toEqual(hidden(value))
        expect(written([...whole])).toBe(out)
        expect(returned(JSON.parse(whole))).toEqual(typeof value === 'string' ? value : hidden(value))
      }),
    )
  })

  test('reports the limit once and at once, and drops the rest', () => {
    const { redact } = createRedactor([], keys)
    const say = (delta: string) => redact(step, { type: 'tool-input-delta', id: 'c', delta })
    expect(say('{"password":"hun')).toEqual([{ type: 'tool-input-delta', id: 'c', delta: '{"password":"[redacted]' }])
    expect(say('ter')).toEqual([])
    expect(say('2","b":1}')).toEqual([{ type: 'tool-input-delta', id: 'c', delta: '","b":1}' }])
  })

  test.each([
    ['{"pass\\u0077ord":"canary"}', '{"pass\\u0077ord":"[redacted]"}'],
    ['{"api-key" : -12.5e3, "n":1}', '{"api-key" : "[redacted]", "n":1}'],
    [
      '{"password":{"a":["canary",7,true],"b":null},"c":"d"}',
      '{"password":{"a":["[redacted]","[redacted]",true],"b":null},"c":"d"}',
    ],
    ['{"q":"password","list":["password","x"]}', '{"q":"password","list":["password","x"]}'],
    ['{"password":"canary', '{"password":"[redacted]'],
    ['{password: canary, b: 1}', '{password: "[redacted]", b: 1}'],
  ])('%s', (whole, expected) => {
    expect(called(whole)).toBe(expected)
    expect(written([...whole])).toBe(expected)
  })

  test('inputs that are written at once do not mix', () => {
    const { redact } = createRedactor([], keys)
    const say = (id: string, delta: string) => redact(step, { type: 'tool-input-delta', id, delta })
    say('a', '{"password":')
    expect(say('b', '"shown"')).toMatchObject([{ delta: '"shown"' }])
    expect(say('a', '"canary"')).toMatchObject([{ delta: '"[redacted]"' }])
  })

  test('secret values are found beside keys', () => {
    expect(written(['{"password":"a","b":"sk-12', '345678"}'], { values: ['sk-12345678'] })).toBe(
      '{"password":"[redacted]","b":"[redacted]"}',
    )
  })
})

test('an output is searched as a value and as JSON in a text', () => {
  expect(returned({ api_key: 'canary', rows: [{ ApiKey: 5, n: 5 }] })).toEqual({
    api_key: '[redacted]',
    rows: [{ ApiKey: '[redacted]', n: 5 }],
  })
  expect(returned('{"api_key": "canary", "n": 1}')).toBe('{"api_key": "[redacted]", "n": 1}')
  expect(returned({ content: [{ type: 'text', text: '[{"api_key":"canary"}]' }] })).toEqual({
    content: [{ type: 'text', text: '[{"api_key":"[redacted]"}]' }],
  })
  expect(returned('{no json: "api_key"}')).toBe('{no json: "api_key"}')
})

test('so are requests, answers, and calls in the messages of a request; nothing else is touched', () => {
  const { redact } = createRedactor([], keys)
  const request = {
    type: 'request',
    requestId: 'r',
    kind: 'tool',
    toolCallId: 'c',
    toolName: 't',
    deadline: 1,
  } as const
  expect(redact(step, { ...request, input: { password: 'canary' } })).toEqual([
    { ...request, input: { password: '[redacted]' } },
  ])
  const output = { kind: 'tool', output: { api_key: 'canary' } } as const
  const edited = { kind: 'approval', approved: true, input: { password: 1 } } as const
  const cleanOutput = { kind: 'tool', output: { api_key: '[redacted]' } }
  const cleanEdited = { kind: 'approval', approved: true, input: { password: '[redacted]' } }
  const messages = [
    { role: 'user' as const, content: '{"password":"said"}' },
    {
      role: 'assistant' as const,
      content: [{ type: 'tool-call' as const, toolCallId: 'c', toolName: 't', input: { password: 'canary' } }],
    },
  ]
  const clean = createCleaner([], keys)
  for (const [answer, cleaned] of [
    [output, cleanOutput],
    [edited, cleanEdited],
  ] as const) {
    const response = { type: 'response', requestId: 'r', outcome: 'answered', answer } as const
    expect(redact(step, response)).toEqual([{ ...response, answer: cleaned }])
    expect(clean(answer)).toEqual(cleaned)
    expect(clean({ answer, protocol: 'ui', input: { messages } })).toMatchObject({ answer: cleaned })
  }
  expect(JSON.stringify(clean({ answer: output, input: { messages } }))).not.toContain('canary')
  const start = redact('', { type: 'resume', protocol: 'ui', input: { messages, password: 'input' } })
  expect(JSON.stringify(start)).not.toContain('canary')
  expect(JSON.stringify(start)).toContain('said')
  const data: RecordedPart = { type: 'data', name: 'x', data: { password: 'data' } }
  const text: RecordedPart = { type: 'text-delta', id: 'c', delta: '{"password":"x"}' }
  for (const part of [data, text]) expect(redact(step, part)[0]).toBe(part)
  expect(clean({ password: 'report' })).toEqual({ password: 'report' })
})

test('without keys nothing is done', () => {
  const part: RecordedPart = { type: 'tool-input-delta', id: 'c', delta: '{"password":"x"}' }
  expect(createRedactor([], []).redact(step, part)[0]).toBe(part)
  const value = { kind: 'tool', output: { password: 'x' } }
  expect(createCleaner([])(value)).toBe(value)
})
