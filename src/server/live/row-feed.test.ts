/** At most four rows a second of one run, and the last one counts. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { RunIndex, RunRow } from '../../part/log.ts'
import type { TapListener } from './live-source.ts'
import { createRowFeed } from './row-feed.ts'

describe('createRowFeed', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())

  test('the first change at once, then at most four a second; the last one is never lost', async () => {
    let seq = 0
    let joined: TapListener | undefined
    const tap = {
      join(listener: TapListener) {
        joined = listener
        return () => (joined = undefined)
      },
    }
    const runs = { get: async (id: string) => ({ id, lastSeq: seq }) as RunRow } as RunIndex
    const feed = createRowFeed(tap, runs, () => undefined)
    const frames: string[] = []
    const leave = feed.join({ onRow: (_, frame) => void frames.push(frame), onEnd: () => undefined })
    const change = (run: string) => {
      seq++
      joined!.onChanges([{ n: seq, run, entries: [] }])
    }
    change('r')
    await vi.advanceTimersByTimeAsync(0)
    expect(frames).toEqual(['event: row\ndata: {"id":"r","lastSeq":1}\n\n'])
    for (let ms = 0; ms < 2000; ms += 5) {
      change('r')
      await vi.advanceTimersByTimeAsync(5)
    }
    expect(frames.length).toBeGreaterThan(4)
    expect(frames.length).toBeLessThanOrEqual(9)
    await vi.advanceTimersByTimeAsync(500)
    expect(frames.at(-1)).toContain(`"lastSeq":${seq}`)
    // Another run is not kept waiting.
    change('other')
    await vi.advanceTimersByTimeAsync(0)
    expect(frames.at(-1)).toContain('"id":"other"')
    leave()
    expect([joined, vi.getTimerCount()]).toEqual([undefined, 0])
  })
})
