import { describe, expect, test } from 'vitest'
import { sameText, textIn } from './earlier.ts'

describe('earlier runs of a thread', () => {
  test.each([
    ['  My  Boat\nis Ada! ', 'my boat is ada'],
    ['...well?!', 'well'],
    ['a. b', 'a. b'],
    ['…', ''],
    ['', ''],
    ['ＡＤＡ', 'ada'],
  ])('%j is the same as %j', (text, same) => expect(sameText(text)).toBe(same))

  test.each(['.', '?', ' ', '. ', '!\n'])('a message of %j without end costs no time', (sign) => {
    const content = `a${sign.repeat(500_000)}a`
    expect(sameText(content).length).toBeGreaterThan(2)
    expect(textIn({ role: 'user', content }).length).toBeLessThanOrEqual(4000)
  })
})
