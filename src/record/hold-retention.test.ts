import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { exampleRun, noon } from '../store/example-run.contract.ts'
import { sqliteStore } from '../store/sqlite/store.ts'
import { createHold, keepHouse } from './hold-retention.ts'
import { keepSmall } from './housekeeping.ts'
import type { Policy } from './policy.ts'
import { pruneRuns } from './upkeep.ts'

const root = mkdtempSync(join(tmpdir(), 'millrace-hold-'))
afterAll(() => rmSync(root, { recursive: true, force: true }))

const day = 86_400_000
let count = 0

/** A data folder with 20 runs, one for each of the last days. */
async function folder() {
  const at = join(root, String(count++))
  const store = sqliteStore(join(at, 'millrace.db'))
  for (let n = 0; n < 20; n++) {
    const entries = exampleRun(`run${n}`).map((each) => ({ ...each, timestamp: each.timestamp - n * day }))
    const [start, ...rest] = entries
    await store.log.append(`run${n}`, 1, [{ ...start!, threadId: `t${n}` } as typeof start & object, ...rest])
  }
  await store.records!.settle()
  let now = noon + 60_000
  const lines: string[] = []
  const file = join(at, 'retention.json')
  return {
    store,
    lines,
    file,
    pass: (ms: number) => void (now += ms),
    /** What a server does each hour. */
    async hour(policy: Policy) {
      const allowed = await createHold(store, policy, {
        file,
        log: (line) => lines.push(line),
        now: () => now,
      }).allows()
      if (allowed) await keepSmall(store, policy, { now })
      return (await store.runs.list({ limit: 100 })).length
    },
  }
}

describe('retention on hold', () => {
  test('the first start over old runs deletes nothing for a day, and says so once', async () => {
    const { store, lines, pass, hour } = await folder()
    const policy = { maxAge: 10.5 * day }
    expect(await hour(policy)).toBe(20)
    expect(lines).toEqual([
      expect.stringMatching(
        /^9 of 20 runs .*first start over these runs, so they stay until \d{4}-.* use millrace prune\.$/u,
      ),
    ])
    pass(day - 1)
    expect(await hour(policy)).toBe(20)
    pass(1)
    expect(await hour(policy)).toBe(10)
    pass(2 * day)
    expect(await hour(policy)).toBe(8)
    expect(lines).toHaveLength(1)
    await store.close()
  })

  test('more than a tenth waits', async () => {
    const { store, hour } = await folder()
    expect(await hour({ maxAge: 16.5 * day })).toBe(20)
    await store.close()
  })

  test('a server asks before it deletes', async () => {
    const { store, lines, file } = await folder()
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date', 'performance'], now: noon + 60_000 })
    onTestFinished(() => void vi.useRealTimers())
    const count = async () => (await store.runs.list({ limit: 100 })).length
    const config = { retention: { maxAge: '252h' } }
    const house = keepHouse(store, config, (line) => lines.push(line), dirname(file))
    await vi.advanceTimersByTimeAsync(61_000)
    await vi.waitFor(() => expect(lines).toEqual([expect.stringMatching(/^9 of 20 runs /u)]))
    expect(await count()).toBe(20)
    // What happens in an hour takes turns of the event loop, which are real.
    await vi.waitFor(
      async () => {
        await vi.advanceTimersByTimeAsync(3_600_000)
        expect(await count()).toBeLessThan(12)
      },
      { interval: 1 },
    )
    await house.close()
    await store.close()
  })

  test('a tenth of the runs may go at once; a shorter retention waits again, a longer one does not', async () => {
    const { store, lines, hour, file } = await folder()
    expect(await hour({ maxAge: 17.5 * day })).toBe(18)
    expect(await hour({ maxAge: 30 * day, maxBytes: 1e9 })).toBe(18)
    expect(await hour({ maxAge: 5.5 * day, maxBytes: 1e9 })).toBe(18)
    expect(lines).toEqual([expect.stringContaining('They were kept for longer before')])
    // Back to what was meant.
    expect(await hour({ maxAge: 30 * day })).toBe(18)
    expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual({ maxAge: 30 * day })
    expect(await hour({ maxAge: 30 * day, maxBytes: 1 })).toBe(18)
    expect(lines).toHaveLength(2)
    await store.close()
  })

  test('it does not wait for what was deleted by hand', async () => {
    const { store, hour, pass, lines } = await folder()
    const policy = { maxAge: 10.5 * day }
    expect(await hour(policy)).toBe(20)
    await pruneRuns(store.upkeep!, { idleBefore: noon - 9.5 * day })
    expect(await hour(policy)).toBe(10)
    pass(1.5 * day)
    expect(await hour(policy)).toBe(9)
    expect(lines).toHaveLength(1)
    await store.close()
  })
})
