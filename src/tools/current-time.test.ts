import { describe, expect, test } from 'vitest'
import type { ToolContext } from './tool.ts'
import { builtinTools, createCurrentTime } from './builtin-tools.ts'

const at = new Date('2026-01-01T23:30:05.007Z')
const now = (input: { timeZone?: string }) => createCurrentTime(() => at).execute!(input, {} as ToolContext)

describe('current-time tool', () => {
  test.each([
    [undefined, '2026-01-01T23:30:05.007Z'],
    ['', '2026-01-01T23:30:05.007Z'],
    ['UTC', '2026-01-01T23:30:05.007+00:00'],
    ['Europe/Berlin', '2026-01-02T00:30:05.007+01:00'],
    ['America/New_York', '2026-01-01T18:30:05.007-05:00'],
    ['Asia/Kolkata', '2026-01-02T05:00:05.007+05:30'],
  ])('%s', (timeZone, time) => {
    const result = now(timeZone === undefined ? {} : { timeZone })
    expect(result).toEqual({ time })
    expect(new Date((result as { time: string }).time)).toEqual(at)
  })

  test('an unknown zone is a clear error', () => {
    expect(() => now({ timeZone: 'Mars/Base' })).toThrow(/unknown time zone "Mars\/Base"; use an IANA name/)
  })

  test('the shipped tool tells the present time', () => {
    const before = Date.now()
    const { time } = builtinTools.get('getCurrentTime')!.execute!({}, {} as ToolContext) as { time: string }
    expect(new Date(time).getTime()).toBeGreaterThanOrEqual(before)
    expect(new Date(time).getTime()).toBeLessThanOrEqual(Date.now())
  })
})
