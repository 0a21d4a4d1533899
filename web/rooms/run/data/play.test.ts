import { expect, test } from 'vitest'
import type { Entry } from '../../../../src/part/entry.ts'
import { play } from './play.ts'
import type { Window } from './windows.ts'

/** When the entries were stored: a pause of a minute in the middle, and two windows in all. */
const stored = [0, 100, 300, 1000, 61_000, 61_100, ...Array.from({ length: 3000 }, () => 61_200)]

/** A clock that goes on by 10 ms with each frame, and what was shown by when. */
async function played(speed: number | ((now: number) => number), from?: number) {
  let now = 5000
  const begin = now
  let seq = from
  const shown = new Map<number, number>()
  const asked: Window[] = []
  const leave = new AbortController()
  await play(
    {
      read(window) {
        asked.push(window)
        const all = stored.map((timestamp, i) => ({ seq: i + 1, timestamp }) as Entry)
        return Promise.resolve(all.filter((entry) => entry.seq > window.after && entry.seq < window.before))
      },
    },
    () => ({
      seq,
      lastSeq: stored.length,
      speed: typeof speed === 'number' ? speed : speed(now - begin),
      goTo(next) {
        seq = next
        shown.set(next, now - begin)
      },
    }),
    leave.signal,
    () => Promise.resolve((now += 10)),
  )
  return { shown, asked, took: now - begin }
}

test.each([1, 10])(
  'at %i× an entry is shown when its time has come; a pause takes 0.8 s of the reader’s',
  async (speed) => {
    const { shown, took } = await played(speed)
    // What came in one frame is shown together.
    const whenSeen = (seq: number) => [...shown].find(([last]) => last >= seq)![1]
    for (const [seq, at] of [
      [2, 100],
      [3, 300],
      [4, 1000],
    ] as const) {
      expect(Math.abs(whenSeen(seq) - at / speed), String(seq)).toBeLessThanOrEqual(30)
    }
    expect(Math.abs(whenSeen(5) - (1000 / speed + 800))).toBeLessThanOrEqual(50)
    expect(Math.abs(whenSeen(6) - whenSeen(5) - 100 / speed)).toBeLessThanOrEqual(20)
    expect([...shown.keys()].at(-1)).toBe(stored.length)
    expect(took).toBeLessThan(1200 / speed + 900)
  },
)

test('another speed counts at once; from its end it begins again; times are read by windows, their texts cut', async () => {
  const { shown } = await played((now) => (now < 200 ? 1 : 10))
  expect([...shown].find(([last]) => last >= 4)![1]).toBeLessThan(320)
  const { shown: again, asked } = await played(100, stored.length)
  expect(again.keys().next().value).toBeLessThan(10)
  expect(asked).toEqual([
    { after: 0, before: 2001, cut: 2 },
    { after: 2000, before: stored.length + 1, cut: 2 },
  ])
})
