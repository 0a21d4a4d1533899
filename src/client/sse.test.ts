import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createSseReader } from './follow.ts'

const body =
  ': hello\r\nid: 1\r\ndata: {"a":1}\r\n\r\n\ndata:b\ndata: c\n\ndata: d\r\rid: 4\nevent: x\ndata: \u{1F600}\n\n'

describe('SSE client', () => {
  test('events, with any line ends, cut anywhere; comments and other fields are passed over', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(body.length), { maxLength: 20 }), (cuts) => {
        const at = [0, ...cuts.toSorted((a, b) => a - b), body.length]
        const read = createSseReader()
        const events = at.flatMap((from, i) => (i === 0 ? [] : read(body.slice(at[i - 1], from))))
        expect(events).toEqual(['{"a":1}', 'b\nc', 'd', '\u{1F600}'])
      }),
    )
  })

  test('an event without its end is none', () => {
    expect(createSseReader()('data: half\n')).toEqual([])
  })

  test('a line of 50 MB in small chunks takes time in proportion to its length', () => {
    const read = createSseReader()
    const chunk = 'x'.repeat(16_384)
    const chunks = 3200
    read('data: ')
    for (let i = 0; i < chunks; i++) read(chunk)
    const [event] = read('\n\n')
    expect(event).toHaveLength(chunks * chunk.length)
    // About 0.1 s. Searching the whole line again with each chunk takes more than a minute.
  })
})
