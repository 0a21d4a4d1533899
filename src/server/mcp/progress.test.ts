/** Progress of a call: how often it is told, and what. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createProgress } from './progress.ts'
import { createTestClock } from './testing/test-clock.ts'

describe('progress', () => {
  test('tells the first word at once, and later ones together, at most four times a second', () => {
    const clock = createTestClock()
    const progress = createProgress(clock)
    progress.add('one ', 'desk')
    expect(progress.take()).toEqual({ progress: 1, message: 'one ', _meta: { 'millrace/delta': 'one ' } })
    progress.add('two ', 'desk')
    progress.add('three', 'desk')
    expect(progress.take()).toBeUndefined()
    clock.advance(249)
    expect(progress.take()).toBeUndefined()
    clock.advance(1)
    expect(progress.take()).toEqual({
      progress: 2,
      message: 'one two three',
      _meta: { 'millrace/delta': 'two three' },
    })
    clock.advance(1000)
    expect(progress.take()).toBeUndefined()
  })

  test('calls back when the next one is due, and not if nothing is new', () => {
    const clock = createTestClock()
    const progress = createProgress(clock)
    let due = 0
    progress.whenDue(() => due++)
    clock.advance(1000)
    expect(due).toBe(0)
    progress.add('a', '')
    progress.take()
    progress.add('b', '')
    progress.whenDue(() => due++)
    clock.advance(249)
    expect(due).toBe(0)
    clock.advance(1)
    expect(due).toBe(1)
    progress.whenDue(() => due++)
    progress.close()
    clock.advance(1000)
    expect(due).toBe(1)
  })

  test('says what the run does while there is no text', () => {
    const clock = createTestClock()
    const progress = createProgress(clock)
    progress.add('', 'desk: search')
    expect(progress.take()).toEqual({ progress: 1, message: 'desk: search' })
    progress.add('', 'desk: search')
    clock.advance(250)
    expect(progress.take()).toBeUndefined()
    progress.add('', 'desk: write')
    expect(progress.take()).toEqual({ progress: 2, message: 'desk: write' })
  })

  test('tells the first word at once even right behind what the run does, and then waits the longer', () => {
    const clock = createTestClock()
    const progress = createProgress(clock)
    const times: number[] = []
    progress.add('', 'desk')
    expect(progress.take()).toEqual({ progress: 1, message: 'desk' })
    progress.add('one', 'desk')
    expect(progress.take()).toMatchObject({ progress: 2, message: 'one' })
    for (let ms = 0; ms < 2000; ms += 10) {
      clock.advance(10)
      progress.add('x', 'desk')
      if (progress.take() !== undefined) times.push(clock.now())
    }
    // With the two at the beginning: four in the first second.
    expect(times).toEqual([500, 750, 1000, 1250, 1500, 1750, 2000])
  })

  test('loses no character of the text, counts up and keeps its messages short', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.string({ unit: 'binary' }), fc.nat(400)), { maxLength: 40 }), (steps) => {
        const clock = createTestClock()
        const progress = createProgress(clock)
        let told = ''
        let count = 0
        const times: number[] = []
        const take = () => {
          const params = progress.take()
          if (params === undefined) return
          times.push(clock.now())
          expect(params.progress).toBe(++count)
          expect(params.message!.length).toBeLessThanOrEqual(120)
          expect(params.message!.isWellFormed()).toBe(true)
          told += params._meta?.['millrace/delta'] ?? ''
        }
        for (const [text, ms] of steps) {
          progress.add(text, '')
          take()
          clock.advance(ms)
        }
        clock.advance(250)
        take()
        expect(told).toBe(steps.map(([text]) => text).join(''))
        for (const [i, time] of times.entries()) if (i > 0) expect(time - times[i - 1]!).toBeGreaterThanOrEqual(250)
      }),
    )
  })
})
