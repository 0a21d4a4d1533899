import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createByteMeter } from './byte-meter.ts'

const lineBytes = 20
const limits = { lineBytes, bodyBytes: 1000 }
const meterOf = () => createByteMeter({ who: 'x', limits, shape: 'messages' })

/** The most bytes of `text` that a parser holds: the last byte of an empty line releases an event. */
function longestEvent(text: string): number {
  return Math.max(...text.split(/(?<=\n\n|\n\r\n)/u).map((event) => event.replace(/\n(\r?)\n$/u, '\n$1').length))
}

describe('createByteMeter', () => {
  test('an event is refused as soon as it is too long, whatever its lines end in and however it is cut', () => {
    const lines = fc.array(fc.constantFrom('data: x\n', '\n', '\r\n', 'x\r\n', 'yyyy'), { maxLength: 30 })
    fc.assert(
      fc.property(lines, fc.boolean(), (pieces, isWhole) => {
        const text = `x\n${pieces.join('')}`
        const meter = meterOf()
        const feed = () => {
          // Byte by byte it is exact; in one piece only what is behind the last empty line is still to come.
          const cut = isWhole ? [text] : [...text]
          for (const piece of cut) meter(new TextEncoder().encode(piece))
        }
        const open =
          text.split(/\n\n|\n\r\n/u).length > 1 ? text.replace(/^[^]*(?:\n\n|\n\r\n)/u, '').length : text.length
        if (isWhole ? open > lineBytes : longestEvent(text) > lineBytes) expect(feed).toThrow('more than 20 bytes')
        else expect(feed).not.toThrow()
      }),
      { numRuns: 2000 },
    )
  })

  test('lines that end in CR alone', () => {
    const meter = meterOf()
    for (let i = 0; i < 20; i++) meter(new TextEncoder().encode('data: x\r\r'))
    expect(() => meter(new Uint8Array(30).fill(65))).toThrow('more than 20 bytes')
  })

  test('events that come one a piece are measured one by one', () => {
    const meter = meterOf()
    const feed = (text: string) => meter(new TextEncoder().encode(text))
    for (let i = 0; i < 20; i++) feed('data: xxxxxxx\n\n')
    // What comes in two pieces after that, too.
    feed('data: xxxxx')
    feed('xx\n\n')
    feed('data: xxxxx')
    expect(() => feed('xxxxxxxxxxxxxxx')).toThrow('more than 20 bytes')
  })

  test.each([
    ['document', 1000],
    ['lines', 4000],
  ] as const)('the error names how much a %s may hold', (shape, allowed) => {
    const meter = createByteMeter({ who: 'x', limits, shape })
    const event = new TextEncoder().encode('data: xx\n\n')
    for (let sent = 0; sent < allowed; sent += event.length) meter(event)
    expect(() => meter(event)).toThrow(`more than ${allowed} bytes. Raise limits.bodyBytes`)
  })
})
