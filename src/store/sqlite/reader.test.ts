import { describe, expect, test } from 'vitest'
import { entry } from '../example-run.contract.ts'
import { createRowCache } from '../row-cache.ts'
import type { StoredRow } from '../run-row.ts'
import { createTickReader } from './reader.ts'

describe('createTickReader', () => {
  test('entries that the only reader has got are not kept in memory', () => {
    const rowCache = createRowCache()
    const none = { get: () => undefined, read: () => [], has: () => false }
    const sources = { rowCache, runs: none, pages: none, dropped: none } as unknown as Parameters<
      typeof createTickReader
    >[0]
    const reader = createTickReader(sources, { run: 'r', after: 0, follows: true })
    for (const seq of [1, 2, 3]) {
      const delta = entry(seq, { type: 'text-delta', id: 'a', delta: 'x' })
      const { recent } = rowCache.add('r', { status: 'running', lastSeq: seq } as StoredRow, [delta], 100)
      expect(recent.length).toBe(100)
      expect(reader.pull()).toMatchObject({ value: [delta] })
      expect(recent.length).toBe(0)
      expect(reader.pull()).toBe('wait')
    }
  })
})
