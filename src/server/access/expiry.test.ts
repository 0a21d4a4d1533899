import { describe, expect, test } from 'vitest'
import { createExpiry, type Schedule } from './expiry.ts'

/** A clock whose timers run when the test moves it. */
function createClock() {
  let time = 1000
  let timer: { run: () => void; at: number } | undefined
  const delays: number[] = []
  const schedule: Schedule = (run, ms) => {
    delays.push(ms)
    const own = (timer = { run, at: time + ms })
    return () => {
      if (timer === own) timer = undefined
    }
  }
  function moveTo(until: number): void {
    for (let i = 0; i < 100 && timer !== undefined && timer.at <= until; i++) {
      const { run, at } = timer
      ;[time, timer] = [Math.max(time, at), undefined]
      run()
    }
    time = until
  }
  return { now: () => time, schedule, moveTo, delays, isSet: () => timer !== undefined }
}

describe('createExpiry', () => {
  test('each end is called once, at its time, with one timer for all', () => {
    const clock = createClock()
    const expiry = createExpiry(clock.now, clock.schedule)
    const ended: string[] = []
    expiry.at(3000, () => ended.push('late'))
    expiry.at(2000, () => ended.push('early'))
    expiry.at(2000, () => ended.push('early too'))
    clock.moveTo(1999)
    expect(ended).toEqual([])
    clock.moveTo(2000)
    expect(ended).toEqual(['early', 'early too'])
    clock.moveTo(9000)
    expect(ended).toEqual(['early', 'early too', 'late'])
    expect(clock.isSet()).toBe(false)
  })

  test('a time that has passed is called soon, never before `at` has returned', () => {
    const clock = createClock()
    const expiry = createExpiry(clock.now, clock.schedule)
    const ended: string[] = []
    expiry.at(1, () => ended.push('end'))
    expect(ended).toEqual([])
    clock.moveTo(1000)
    expect(ended).toEqual(['end'])
  })

  test('one that has left is not called, even when another end of the same moment makes it leave', () => {
    const clock = createClock()
    const expiry = createExpiry(clock.now, clock.schedule)
    const ended: string[] = []
    const leave = expiry.at(2000, () => ended.push('left before'))
    leave()
    leave()
    let leaveOther: (() => void) | undefined
    expiry.at(2000, () => leaveOther?.())
    leaveOther = expiry.at(2000, () => ended.push('left meanwhile'))
    clock.moveTo(5000)
    expect(ended).toEqual([])
  })

  test('a time beyond the longest timer is waited for in pieces', () => {
    const clock = createClock()
    const expiry = createExpiry(clock.now, clock.schedule)
    let isEnded = false
    const far = clock.now() + 100 * 86_400_000
    expiry.at(far, () => (isEnded = true))
    clock.moveTo(far - 1)
    expect(isEnded).toBe(false)
    expect(Math.max(...clock.delays)).toBeLessThan(2 ** 31)
    clock.moveTo(far)
    expect(isEnded).toBe(true)
  })

  test('nothing is called after it was closed', () => {
    const clock = createClock()
    const expiry = createExpiry(clock.now, clock.schedule)
    let isEnded = false
    expiry.at(2000, () => (isEnded = true))
    expiry.close()
    clock.moveTo(5000)
    expect([isEnded, clock.isSet()]).toEqual([false, false])
  })
})
