import { describe, expect, test, vi } from 'vitest'
import { lazily } from './lazily.ts'

describe('lazy loading', () => {
  test('a value is made when it is first asked for, and kept even if it is undefined', () => {
    const make = vi.fn<() => number | undefined>().mockReturnValueOnce(undefined).mockReturnValue(1)
    const value = lazily(make)
    expect(make).not.toHaveBeenCalled()
    expect([value(), value()]).toEqual([undefined, undefined])
    expect(make).toHaveBeenCalledTimes(1)
  })
})
