import { expect, test } from 'vitest'
import { foreignFault } from './foreign.ts'

test.each([
  ['localhost:3000', undefined],
  ['127.0.0.1:3000', 'http://localhost:5173'],
  ['[::1]:3000', 'http://127.0.0.1:8080'],
  [undefined, undefined],
])('host %s, origin %s: somebody at this machine', (host, origin) => {
  expect(foreignFault({ host, origin })).toBeUndefined()
})

test.each([
  ['evil.example:3000', undefined],
  ['127.0.0.1.evil.example', 'http://127.0.0.1.evil.example'],
  ['localhost:3000', 'https://evil.example'],
  ['localhost:3000', 'null'],
  ['localhost:3000', 'https://localhost.evil.example'],
])('host %s, origin %s: a page of another site', (host, origin) => {
  expect(foreignFault({ host, origin })).toContain('MILLRACE_API_KEY')
})

test.each([
  ['cross-site', undefined, true],
  ['cross-site', 'http://localhost:5173', false],
  ['same-site', undefined, false],
  ['same-origin', undefined, false],
  ['none', undefined, false],
])('Sec-Fetch-Site %s with origin %s is of another site: %s', (site, origin, foreign) => {
  expect(foreignFault({ host: '127.0.0.1:3000', origin, site }) !== undefined).toBe(foreign)
})
