import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { createStallWatch, type StallOptions } from './model-feed.ts'
import { limitUnsetRun } from './limits.ts'

const minute = 60_000
const run = new AbortController()
const releases: ((() => void) | undefined)[] = []
beforeEach(() => void vi.useFakeTimers())
afterEach(() => {
  for (const release of releases.splice(0)) release?.()
  vi.useRealTimers()
})

function watch(options: Partial<StallOptions> = {}) {
  const made = createStallWatch({ timeouts: {}, defaults: {}, reasons: false, signal: run.signal, ...options })!
  releases.push(() => made?.release())
  return made
}

describe('stall watch', () => {
  test('by default a model may be silent for two minutes, before its first token and between two', () => {
    const silent = watch()
    const stuck = watch()
    vi.advanceTimersByTime(2 * minute - 2000)
    stuck.restart = true
    vi.advanceTimersByTime(3000)
    expect(silent.signal.aborted).toBe(true)
    expect(silent.expired).toMatchObject({
      code: 'timed-out',
      message: 'The model said nothing for 2 min before its first token.',
      detail: expect.stringContaining('timeouts.firstToken'),
    })
    expect(stuck.signal.aborted).toBe(false)
    vi.advanceTimersByTime(2 * minute)
    expect(stuck.expired).toMatchObject({ message: 'The model said nothing for 2 min in the middle of its answer.' })
  })

  test('a model that was asked to think has ten minutes, unless the agent or the config says otherwise', () => {
    const thinking = watch({ reasons: true })
    const byAgent = watch({ reasons: true, timeouts: { firstToken: 3 * minute } })
    const byConfig = watch({ reasons: true, defaults: { firstToken: 3 * minute } })
    vi.advanceTimersByTime(4 * minute)
    expect([thinking, byAgent, byConfig].map(({ signal }) => signal.aborted)).toEqual([false, true, true])
    // What the agent itself has set needs no hint about defaults.
    expect([byAgent.expired, byConfig.expired]).toMatchObject([{ detail: undefined }, { detail: expect.any(String) }])
    vi.advanceTimersByTime(6 * minute)
    expect(thinking.signal.aborted).toBe(true)
  })

  test('none removes a limit, each for itself; with neither there is nothing to watch', () => {
    const idle = watch({ timeouts: { firstToken: 'none' } })
    vi.advanceTimersByTime(60 * minute)
    expect(idle.signal.aborted).toBe(false)
    idle.restart = true
    vi.advanceTimersByTime(3 * minute)
    expect(idle.signal.aborted).toBe(true)
    expect(watch({ timeouts: { firstToken: 'none' }, defaults: { idle: 'none' } })).toBeUndefined()
  })

  test('a stream that goes on is never ended, however long it takes', () => {
    const stream = watch()
    for (let i = 0; i < 60; i++) {
      stream.restart = true
      vi.advanceTimersByTime(minute)
    }
    expect(stream.signal.aborted).toBe(false)
  })

  test('the run’s own end is passed on with its reason, and is no silence', () => {
    const ended = new AbortController()
    const { signal, expired } = watch({ signal: ended.signal })
    ended.abort('stopped')
    expect([signal.aborted, signal.reason, expired]).toEqual([true, 'stopped', undefined])
  })

  test('any number of watches share one timer, and none is left behind them', () => {
    const all = Array.from({ length: 1000 }, () => watch())
    expect(vi.getTimerCount()).toBe(1)
    for (const each of all) each.release()
    expect(vi.getTimerCount()).toBe(0)
  })

  test('time in which the process was held up is not the model’s silence', () => {
    const { signal } = watch()
    vi.advanceTimersByTime(1000)
    const now = performance.now()
    const clock = vi.spyOn(performance, 'now').mockReturnValue(now + 10 * minute)
    vi.advanceTimersByTime(1000)
    expect(signal.aborted).toBe(false)
    clock.mockRestore()
  })

  test('a run has fifteen minutes, unless the agent or the config says otherwise', () => {
    const ended: unknown[] = []
    const limit = (name: string, options: Parameters<typeof limitUnsetRun>[0]) => {
      const release = limitUnsetRun(options, ({ code, message }) => void ended.push([name, code, message]))
      releases.push(release)
      return release
    }
    limit('default', { defaults: {} })
    limit('config', { defaults: { run: minute } })
    limit('none', { defaults: { run: 'none' } })
    limit('agent', { defaults: { run: minute }, timeouts: { run: 'none' } })
    limit('released', { defaults: { run: minute } })!()
    vi.advanceTimersByTime(60 * minute)
    expect(ended).toEqual([
      ['config', 'timed-out', 'The run took longer than 1 min.'],
      ['default', 'timed-out', 'The run took longer than 15 min.'],
    ])
  })

  test('a model that reads its prompt is alive: its time starts again, but only before its first token', () => {
    const reading = watch()
    const stuck = watch()
    vi.advanceTimersByTime(1000)
    stuck.restart = true
    vi.advanceTimersByTime(2000)
    for (let i = 0; i < 6; i++) {
      vi.advanceTimersByTime(minute)
      reading.alive()
      stuck.alive()
    }
    expect(reading.signal.aborted).toBe(false)
    expect(stuck.signal.aborted).toBe(true)
    vi.advanceTimersByTime(2 * minute + 1000)
    expect(reading.expired).toMatchObject({ message: 'The model said nothing for 2 min before its first token.' })
  })

  test('a server of the user has ten minutes for its first token, unless somebody says otherwise', () => {
    const local = watch({ isLocal: true })
    const bounded = watch({ isLocal: true, defaults: { firstToken: 3 * minute } })
    vi.advanceTimersByTime(4 * minute)
    expect([local, bounded].map(({ signal }) => signal.aborted)).toEqual([false, true])
    local.restart = true
    vi.advanceTimersByTime(4 * minute)
    expect(local.expired).toMatchObject({ message: 'The model said nothing for 2 min in the middle of its answer.' })
  })
})
