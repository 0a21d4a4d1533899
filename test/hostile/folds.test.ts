/** A recording is input: whatever it says, it is refused with its line and field, or everything reads it. `MILLRACE_FUZZ`: so many; `MILLRACE_FUZZ_SEED`: from there on. */
import { describe, expect, test } from 'vitest'
import { tryStored, tryRecordings } from './try-recordings.ts'

const count = Number(process.env['MILLRACE_FUZZ'] ?? 150)
const from = Number(process.env['MILLRACE_FUZZ_SEED'] ?? 1)

describe('hostile recordings: folds', () => {
  test('a mutated recording is imported and read by everything, or refused with its line', async () => {
    const imported = await tryRecordings(from, count)
    // Else nothing was read.
    expect(imported).toBeGreaterThan(count / 20)
  })

  test('entries that stand in a store, in any order and form, are read by everything', async () => {
    expect(await tryStored(from, Math.ceil(count / 3))).toBeGreaterThan(0)
  })
})
