import { describe, expect, test } from 'vitest'
import { checkKey } from './check-key.ts'
import { MillraceError } from './error.ts'

describe('checkKey', () => {
  test.each([
    ['secret\n', 'ends with a line break'],
    ['secret\r\n', 'ends with a line break'],
    ['sec\nret', 'must consist of'],
    ['sec ret', 'must consist of'],
    [' secret', 'must consist of'],
    ['sec\tret', 'must consist of'],
    ['sec\0ret', 'must consist of'],
    ['sëcret', 'must consist of'],
    ['\u{1f511}', 'must consist of'],
  ])('%j is refused before anybody is to send it, and is not repeated', (key, why) => {
    let error: unknown
    try {
      checkKey(key, 'MILLRACE_API_KEY')
    } catch (thrown) {
      error = thrown
    }
    expect(error).toBeInstanceOf(MillraceError)
    const { code, message } = error as MillraceError
    expect(code).toBe('bad-key')
    expect(message).toContain(`MILLRACE_API_KEY ${why}`)
    expect(message).not.toContain(key.trim())
  })

  test('a key of printable ASCII is fine', () => {
    expect(() => checkKey(`sk-Az09!#$%&'*+.^_\`|~-/=`, 'x')).not.toThrow()
  })
})
