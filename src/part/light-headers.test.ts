import { inspect } from 'node:util'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { lightHeaders, realHeaders } from './light-headers.ts'

const raw = [
  'Host',
  'here',
  'X-A',
  'b',
  'COOKIE',
  'c=1',
  'x-a',
  'c',
  'cookie',
  'd=2',
  'Set-Cookie',
  'e',
  'set-cookie',
  'f',
]

function real(given: readonly string[]): Headers {
  const headers = new Headers()
  for (let i = 0; i < given.length; i += 2) headers.append(given[i]!, given[i + 1]!)
  return headers
}

test('what is looked up is what Headers would say: any case, repeated names joined', () => {
  const name = fc.constantFrom('a', 'A', 'x-b', 'X-B', 'cookie', 'Cookie', 'set-cookie', 'content-type')
  const value = fc.stringMatching(/^(?:[!-~](?:[ -~]{0,5}[!-~])?)?$/u)
  const pairs = fc.array(fc.tuple(name, value), { maxLength: 8 })
  fc.assert(
    fc.property(pairs, name, (given, asked) => {
      const list = given.flat()
      const [light, whole] = [lightHeaders(list), real(list)]
      expect([light.get(asked), light.has(asked)]).toEqual([whole.get(asked), whole.has(asked)])
      expect([...light]).toEqual([...whole])
      expect([light.get(asked), light.has(asked)]).toEqual([whole.get(asked), whole.has(asked)])
    }),
  )
})

describe('to whoever needs more it is Headers', () => {
  test('with all their methods', () => {
    const headers = lightHeaders(raw)
    expect(headers).toBeInstanceOf(Headers)
    expect([...headers]).toEqual([...real(raw)])
    expect([...lightHeaders(raw).keys()]).toEqual([...real(raw).keys()])
    expect(lightHeaders(raw).getSetCookie()).toEqual(['e', 'f'])
    expect(Object.fromEntries(lightHeaders(raw))).toEqual(Object.fromEntries(real(raw)))
    const seen: string[] = []
    for (const [name] of lightHeaders(raw).entries()) seen.push(name)
    expect(seen).toEqual([...real(raw).keys()])
  })

  test('that can be shown', () => {
    expect(inspect(lightHeaders(raw))).toBe(inspect(real(raw)))
    expect(Object.prototype.toString.call(lightHeaders(raw))).toBe('[object Headers]')
  })

  test('that may be copied into others, of a Request and a Response too', () => {
    expect([...new Headers(lightHeaders(raw))]).toEqual([...real(raw)])
    expect(new Response(null, { headers: lightHeaders(raw) }).headers.get('x-a')).toBe('b, c')
    expect(new Request('http://here', { headers: lightHeaders(raw) }).headers.get('x-a')).toBe('b, c')
  })

  test('what is changed is seen, and the real ones are made once', () => {
    const headers = lightHeaders(raw)
    headers.set('X-A', 'other')
    headers.delete('host')
    expect([headers.get('x-a'), headers.has('host')]).toEqual(['other', false])
    expect(realHeaders(headers)).toBe(realHeaders(headers))
    const others = new Headers()
    expect(realHeaders(others)).toBe(others)
  })
})
