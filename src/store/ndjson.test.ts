import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { encodeEntries } from './encode.ts'
import { anyRun, exampleRun } from './example-run.contract.ts'
import { readNdjson, verify } from './ndjson.ts'

const file = (entries: ReturnType<typeof exampleRun>) => `${encodeEntries('r', entries)}\n`

describe('readNdjson', () => {
  test('gives back what was written, in whatever pieces', () => {
    fc.assert(
      fc.property(anyRun, fc.integer({ min: 1, max: 50 }), (make, size) => {
        const entries = make('r')
        const text = file(entries)
        const pieces = Array.from({ length: Math.ceil(text.length / size) }, (_, i) =>
          text.slice(i * size, (i + 1) * size),
        )
        expect(readNdjson(pieces)).toEqual({ entries, faults: [] })
      }),
    )
  })

  test('cut after any character, gives every whole line and names a torn one', () => {
    const entries = exampleRun('r', 1)
    const text = file(entries)
    for (let cut = 0; cut <= text.length; cut++) {
      const { entries: got, faults } = readNdjson(text.slice(0, cut))
      const whole = text.slice(0, cut).split('\n').length - 1
      expect(got.slice(0, whole)).toEqual(entries.slice(0, whole))
      // A line that lacks nothing but its line break is an entry.
      expect(got.length + faults.length).toBe(whole + (text[cut - 1] === '\n' || cut === 0 ? 0 : 1))
      if (faults.length > 0)
        expect(faults).toEqual([{ line: whole + 1, message: 'the line is incomplete', torn: true }])
    }
  })

  test('names lines that are no entries and reads on', () => {
    const [first, ...rest] = file(exampleRun('r')).split('\n')
    const text = [
      '\uFEFF' + first + '\r',
      '',
      '{"seq":2',
      '[]',
      '{"seq":0}',
      '{"seq":2,"timestamp":1,"step":""}',
      ...rest,
    ]
    const { entries, faults } = readNdjson(text.join('\n'))
    expect(entries).toEqual(exampleRun('r'))
    expect(faults.map(({ line, torn }) => [line, torn])).toEqual([
      [3, false],
      [4, false],
      [5, false],
      [6, false],
    ])
  })

  test('a line in very many pieces costs no more than its length', () => {
    const long = exampleRun('r', 0)
    long[0] = { ...long[0]!, pipeline: 'x'.repeat(2_000_000) } as (typeof long)[0]
    expect(readNdjson(file(long).match(/.{1,10}|\n/gs)!).entries).toEqual(long)
  })
})

describe('verify', () => {
  test('finds nothing in a sound run', () => expect(verify(exampleRun('r'))).toEqual([]))

  test('finds what is missing, doubled and out of place', () => {
    const entries = exampleRun('r')
    expect(verify([])).toEqual(['no entries'])
    expect(verify(entries.slice(0, -1))).toEqual(['the run has no run-end'])
    expect(verify(entries.slice(0, -1), { open: true })).toEqual([])
    expect(verify(entries.toSpliced(3, 1))).toEqual([expect.stringContaining('expected 4')])
    expect(verify(entries.slice(1))[0]).toContain('expected 1')
    expect(verify([...entries, { ...entries.at(-1)!, seq: 11 }])).toHaveLength(1)
  })
})
