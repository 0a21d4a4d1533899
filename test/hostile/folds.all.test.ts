/** 10,000 mutated recordings through the check and all folds. */
import { describe, expect, test } from 'vitest'
import { tryStored, tryRecordings } from './try-recordings.ts'

const slices = Array.from({ length: 10 }, (_, i) => 100_000 + i * 1000)

describe('hostile recordings: folds', () => {
  test.each(slices)('a thousand mutated recordings from seed %i on', { timeout: 300_000 }, async (from) => {
    expect(await tryRecordings(from, 1000)).toBeGreaterThan(50)
    expect(await tryStored(from, 200)).toBeGreaterThan(50)
  })
})
