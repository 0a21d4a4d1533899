import { describe, expect, test } from 'vitest'
import { checkSameOrigin } from './same-origin.ts'

const allowed = new Set(['https://app.example'])
const isAllowed = (method: string, headers: Record<string, string>): boolean => {
  try {
    checkSameOrigin({ method, headers: new Headers({ host: 'agents.example', ...headers }) }, allowed)
    return true
  } catch (error) {
    expect(error).toMatchObject({ code: 'forbidden', status: 403 })
    return false
  }
}

describe('checkSameOrigin', () => {
  test.for<[string, Record<string, string>, boolean]>([
    ['of its own page', { origin: 'https://agents.example' }, true],
    ['of its own page by the word of the browser', { 'sec-fetch-site': 'same-origin' }, true],
    ['behind a proxy that changes Host', { origin: 'https://a.example', 'sec-fetch-site': 'same-origin' }, true],
    ['of a page that the config allows', { origin: 'https://app.example', 'sec-fetch-site': 'cross-site' }, true],
    ['of another site', { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' }, false],
    ['of another site in an old browser', { origin: 'https://evil.example' }, false],
    ['of a subdomain', { origin: 'https://x.agents.example', 'sec-fetch-site': 'same-site' }, false],
    ['of another port', { origin: 'https://agents.example:8443' }, false],
    ['of a sandboxed page', { origin: 'null' }, false],
    [
      'of an own page by its name, but not by the browser',
      { origin: 'https://agents.example', 'sec-fetch-site': 'cross-site' },
      false,
    ],
    ['that a person typed', { 'sec-fetch-site': 'none' }, false],
    ['of nobody knows whom', {}, false],
  ])('a POST %s', ([, headers, expected]) => {
    expect(isAllowed('POST', headers)).toBe(expected)
    expect(isAllowed('DELETE', headers)).toBe(expected)
    expect(isAllowed('GET', headers)).toBe(true)
    expect(isAllowed('HEAD', headers)).toBe(true)
  })
})
