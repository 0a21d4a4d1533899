/** Each form of a secret, wherever a text is cut. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createRedactor } from './redact.ts'
import { formsOf } from './secret-forms.ts'

const secret = 'sk-Ünï/+?~ab"12>'
const step = 'main/answer/1'
const bytes = (text: string) => new TextEncoder().encode(text)
const hex = Buffer.from(secret).toString('hex')
const base64 = (text: string) => Buffer.from(text).toString('base64')

/** What comes out of a text that comes in these pieces. */
function through(secrets: string[], pieces: string[]): string {
  const { redact } = createRedactor(secrets)
  const deltas = pieces.map((delta) => ({ type: 'text-delta' as const, id: 'a', delta }))
  return [...deltas, { type: 'text-end' as const, id: 'a' }]
    .flatMap((part) => redact(step, part))
    .map((part) => ('delta' in part ? part.delta : ''))
    .join('')
}

const whole: [string, string][] = [
  ['as it is', secret],
  ['JSON', JSON.stringify(secret).slice(1, -1)],
  ['JSON in JSON', JSON.stringify(JSON.stringify(secret).slice(1, -1)).slice(1, -1)],
  ['JSON in ASCII', 'sk-\\u00dcn\\u00ef/+?~ab\\"12>'],
  ['encodeURIComponent', encodeURIComponent(secret)],
  ['percent-encoding in lower case', encodeURIComponent(secret).replaceAll(/%../gu, (code) => code.toLowerCase())],
  ['a form', new URLSearchParams({ s: secret }).toString().slice(2)],
  ['every byte percent-encoded', hex.toUpperCase().replaceAll(/../gu, '%$&')],
  ['every byte percent-encoded, in lower case', hex.replaceAll(/../gu, '%$&')],
  ['hex', hex],
  ['hex in upper case', hex.toUpperCase()],
  ['base64', base64(secret)],
  ['base64 without padding', base64(secret).replaceAll('=', '')],
  ['base64url', Buffer.from(secret).toString('base64url')],
]

test.each(whole)('%s: gone, wherever it is cut', (_, form) => {
  const text = `before ${form} after`
  for (let cut = 0; cut <= text.length; cut++) {
    // A first character that is cut off from the rest was sent before anything could be known.
    const first = cut === 'before '.length + 1 ? form[0]! : ''
    expect(through([secret], [text.slice(0, cut), text.slice(cut)])).toBe(`before ${first}[redacted] after`)
  }
  expect(through([secret], [...text])).toBe(`before ${form[0]!}[redacted] after`)
})

describe('base64 of a longer text', () => {
  const around = fc.string({ maxLength: 9 })
  const pieces = (text: string, cuts: number[]) => {
    const places = [0, ...cuts.map((at) => at % (text.length + 1)).toSorted((a, b) => a - b), text.length]
    return places.slice(1).map((end, i) => text.slice(places[i], end))
  }

  test('at most one character and a cut are left of the secret on either side, at any offset, in either alphabet', () => {
    const cuts = fc.array(fc.nat(200), { maxLength: 8 })
    fc.assert(
      fc.property(around, around, fc.boolean(), cuts, (before, after, isUrl, at) => {
        const text = Buffer.from(before + secret + after).toString(isUrl ? 'base64url' : 'base64')
        const out = through([secret], pieces(text, at))
        expect(out).toContain('[redacted]')
        const [left = '', right = ''] = out.split('[redacted]')
        // One character may hold bits of the secret and of its neighbour, and one may have been sent before a cut.
        const end = bytes(before + secret).length
        expect(left.length).toBeLessThanOrEqual(Math.ceil((bytes(before).length * 8) / 6) + 1)
        expect(right.length).toBeLessThanOrEqual(text.length - Math.floor((end * 8) / 6))
      }),
    )
  })

  test.each(['u', 'us', 'use'])('Basic base64(%s:secret)', (user) => {
    const out = through(['p4ss-w0rd-9'], [`Authorization: Basic ${base64(`${user}:p4ss-w0rd-9`)}`])
    expect(out).toMatch(/^Authorization: Basic [\w+/]{2,6}\[redacted\][\w+/]?=*$/u)
  })
})

test('a key of several lines is found line by line', () => {
  const lines = ['MIIEvQIBADANBgkqhkiG9w0B', 'AQEFAASCBKcwggSjAgEAAoIB']
  const key = `-----BEGIN PRIVATE KEY-----\n${lines.join('\n')}\n-----END PRIVATE KEY-----`
  expect(through([key], [key])).toBe('[redacted]')
  expect(through([key], [`1: ${lines[0]}`, `2: ${lines[1]}`])).toBe('1: [redacted]2: [redacted]')
  expect(through([key], ['-----BEGIN PRIVATE KEY-----'])).toBe('-----BEGIN PRIVATE KEY-----')
})

test('a very long secret has its forms as well', () => {
  const long = 'x1'.repeat(300_000)
  expect(formsOf([long])).toContain(btoa(long))
})

test('random texts and secrets: no form of any secret is left', () => {
  const few = fc.string({ unit: fc.constantFrom('a', 'b', '/', '"', 'é'), minLength: 6, maxLength: 9 })
  fc.assert(
    fc.property(fc.array(few, { minLength: 1, maxLength: 3 }), fc.nat(40), fc.nat(40), (secrets, which, cut) => {
      const forms = formsOf(secrets)
      const text = `${forms[which % forms.length]}.${forms[cut % forms.length]}`
      const out = through(secrets, [text.slice(0, cut), text.slice(cut)])
      for (const form of forms) expect(out).not.toContain(form)
    }),
  )
})
