import { DatabaseSync } from 'node:sqlite'
import { setImmediate as turn } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createCommitQueue, type Gathering, type Write } from './commit-queue.ts'
import { delta, live } from './contract/tools.contract.ts'
import { startEntry } from './example-run.contract.ts'
import { sqliteStore } from './sqlite-store.ts'

/** How many writes each commit had. */
let commits: number[]
let clock: number
let open: number
let queue: ReturnType<typeof createCommitQueue>

// Only this test makes timers fire: what is committed without that needs none.
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout'] })
  commits = []
  clock = 0
  open = 0
  const gathering: Gathering = {
    begin: () => void (open = 0),
    flush: () => 0,
    committed: () => void commits.push(open),
    rolledBack: () => expect.unreachable(),
  }
  queue = createCommitQueue(new DatabaseSync(':memory:'), 'db', 0, gathering, undefined, () => clock)
})
afterEach(() => vi.useRealTimers())

/** A write of each of so many runs. */
function add(when: Write['when'], runs = 1): void {
  const write: Write = { when, apply: () => void open++, done: () => undefined, fail: () => expect.unreachable() }
  for (let i = 0; i < runs; i++) queue.add({ ...write, run: `run-${i}` })
}

/** Turns of 0.2 ms, in each of which so many runs say something. */
async function busyTurns(turns: number, runs = 2): Promise<void> {
  for (let i = 0; i < turns; i++) {
    add('patient', runs)
    await turn()
    clock += 0.2
  }
}

test('what comes alone is committed at the end of its turn', async () => {
  for (let i = 1; i <= 5; i++) {
    add('patient')
    await turn()
    expect(commits).toEqual(Array.from({ length: i }, () => 1))
    clock += 1
  }
})

test('one run that says something in every turn does not wait either', async () => {
  for (let i = 0; i < 50; i++) {
    add('patient')
    await turn()
    clock += 0.3
  }
  expect(commits).toHaveLength(50)
})

test('while many come in, they wait a moment for more and are committed together', async () => {
  await busyTurns(20)
  const before = commits.length
  expect(before).toBeLessThan(10)
  await busyTurns(5)
  expect(commits).toHaveLength(before)
  vi.advanceTimersByTime(1)
  expect(commits).toHaveLength(before + 1)
  expect(commits.reduce((sum, count) => sum + count)).toBe(50)
  expect(commits.at(-1)).toBeGreaterThanOrEqual(30)
})

test.each([
  ['in its turn', 'now', 1],
  ['a turn later', 'next-turn', 2],
] as const)('a write that must not wait takes the waiting ones along, %s', async (_, when, turns) => {
  await busyTurns(30)
  const before = commits.length
  add(when)
  for (let i = 0; i < turns; i++) await turn()
  expect(commits).toHaveLength(before + 1)
  expect(commits.reduce((sum, count) => sum + count)).toBe(61)
})

test('when the crowd has gone, what comes is committed in its turn again', async () => {
  await busyTurns(30)
  vi.advanceTimersByTime(1)
  const before = commits.length
  clock += 2
  add('patient')
  await turn()
  expect(commits).toHaveLength(before + 1)
})

test('a crowd that comes at once from nothing does not wait', async () => {
  clock = 1000
  add('patient', 1000)
  await turn()
  expect(commits).toEqual([1000])
})

test('an entry that comes alone is at its reader without a timer', async () => {
  const store = sqliteStore(':memory:')
  await store.log.append('r', 1, [startEntry('r')])
  const reader = store.log.read('r', { after: 1, signal: live() })[Symbol.asyncIterator]()
  for (let seq = 2; seq < 20; seq++) {
    const next = reader.next()
    void store.log.append('r', 1, [delta(seq)])
    expect((await next).value).toEqual([delta(seq)])
  }
})
