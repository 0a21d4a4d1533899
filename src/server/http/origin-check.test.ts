import { expect, test } from 'vitest'
import { originFault, isOtherPage } from './origin-check.ts'

test.each([
  ['localhost:3000', undefined],
  ['127.0.0.1:3000', 'http://localhost:5173'],
  ['[::1]:3000', 'http://127.0.0.1:8080'],
  [undefined, undefined],
])('host %s, origin %s: somebody at this machine', (host, origin) => {
  expect(originFault({ host, origin })).toBeUndefined()
})

test.each([
  ['evil.example:3000', undefined],
  ['127.0.0.1.evil.example', 'http://127.0.0.1.evil.example'],
  ['localhost:3000', 'https://evil.example'],
  ['localhost:3000', 'null'],
  ['localhost:3000', 'https://localhost.evil.example'],
])('host %s, origin %s: a page of another site', (host, origin) => {
  expect(originFault({ host, origin })).toContain('MILLRACE_API_KEY')
})

test.each([
  ['cross-site', undefined, true],
  ['cross-site', 'http://localhost:5173', false],
  ['same-site', undefined, false],
  ['same-origin', undefined, false],
  ['none', undefined, false],
])('Sec-Fetch-Site %s with origin %s is of another site: %s', (site, origin, foreign) => {
  expect(originFault({ host: '127.0.0.1:3000', origin, site }) !== undefined).toBe(foreign)
})

test.each(['Forwarded', 'X-Forwarded-For', 'x-forwarded-proto', 'X-FORWARDED-ANYTHING', 'Via', 'X-Real-Ip'])(
  'what a proxy has forwarded (%s) is refused, also if it comes to localhost from an allowed origin',
  (name) => {
    const origin = 'https://app.example'
    const sender = { host: 'localhost:3000', origin, names: ['Host', 'Accept', name] }
    expect(originFault(sender, new Set([origin]))).toMatch(/forwarded by a proxy.*MILLRACE_API_KEY/u)
  },
)

test('headers that only look like those of a proxy are nobody’s business', () => {
  const names = ['X-Forwarder', 'Viable', 'X-Real-Ip-2', 'X-Forward', 'Not-X-Forwarded-For']
  expect(originFault({ host: 'localhost:3000', names })).toBeUndefined()
})

test.each([
  [{ host: 'localhost:3000' }, false],
  [{ host: 'localhost:3000', origin: 'http://localhost:3000', site: 'same-origin' }, false],
  [{ host: 'LOCALHOST:3000', origin: 'http://localhost:3000' }, false],
  [{ host: 'app.example', origin: 'https://app.example' }, false],
  [{ host: 'localhost:3000', origin: 'http://localhost:5173' }, true],
  [{ host: 'localhost:3000', origin: 'http://127.0.0.1:3000' }, true],
  [{ host: 'localhost:3000', origin: 'null' }, true],
  [{ host: 'localhost:3000', site: 'same-site' }, true],
  [{ origin: 'http://localhost:3000' }, true],
])('%j is of another page: %s', (sender, other) => expect(isOtherPage(sender)).toBe(other))
