import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { createCommitTurn } from './commit-queue.ts'
import { entry, startEntry } from '../example-run.contract.ts'
import { sqliteStore } from './store.ts'

let now = 0

function start(isAlone: boolean) {
  now = 1000
  vi.spyOn(performance, 'now').mockImplementation(() => now)
  let commits = 0
  const turns = createCommitTurn(
    () => void commits++,
    () => isAlone,
  )
  return { ...turns, commits: () => commits }
}

/** Lets turns of the event loop pass, each of which takes `ms`. */
async function pass(ms: number, count = 1): Promise<void> {
  for (let i = 0; i < count; i++) {
    now += ms
    await turn()
  }
}

describe('commit turns', () => {
  afterEach(() => void vi.restoreAllMocks())

  test('the commit of a single run comes at the end of its turn', async () => {
    const { soon, commits } = start(true)
    soon()
    await pass(1)
    expect(commits()).toBe(1)
  })

  test('while several runs are under way it comes once a turn does nothing else', async () => {
    const { soon, commits } = start(false)
    soon()
    await pass(0.5, 3)
    expect(commits()).toBe(0)
    await pass(0.01)
    expect(commits()).toBe(1)
  })

  test('however busy the turns are, it comes after 2 ms', async () => {
    const { soon, commits } = start(false)
    soon()
    await pass(0.5, 3)
    expect(commits()).toBe(0)
    await pass(0.5)
    expect(commits()).toBe(1)
    await pass(0.5, 10)
    expect(commits()).toBe(1)
  })

  test('a write that comes meanwhile neither hastens nor postpones it', async () => {
    const { soon, commits } = start(false)
    soon()
    for (let i = 0; i < 3; i++) {
      await pass(0.5)
      soon()
    }
    expect(commits()).toBe(0)
    await pass(0.5)
    expect(commits()).toBe(1)
  })

  test('a deferrable commit leaves the turn to the work that began in it', async () => {
    const { later, commits } = start(true)
    later()
    await pass(1)
    expect(commits()).toBe(0)
    await pass(1)
    expect(commits()).toBe(1)
  })

  test('writes of several runs in busy turns are stored together, a single run’s writes at once', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'millrace-commit-'))
    const store = sqliteStore(join(folder, 'runs.db'))
    try {
      const { log } = store
      const told: string[] = []
      const note = (run: string, seq: number) => {
        told.push(`${run} appends`)
        const delta = entry(seq, { type: 'warning', code: 'w', message: 'w' })
        return log.append(run, 1, [delta]).then(() => void told.push(`${run} stored`))
      }
      await log.append('a', 1, [startEntry('a')])
      now = 1000
      vi.spyOn(performance, 'now').mockImplementation(() => now)
      const alone = note('a', 2)
      await pass(0.5)
      await pass(0.5)
      told.push('turned')
      await alone
      expect(told.splice(0)).toEqual(['a appends', 'a stored', 'turned'])

      const started = log.append('b', 1, [startEntry('b')])
      await pass(0.01, 5)
      await started
      const first = note('a', 3)
      await pass(0.5)
      const second = note('b', 2)
      await pass(0.5)
      told.push('turned')
      await pass(0.01, 2)
      await Promise.all([first, second])
      expect(told).toEqual(['a appends', 'b appends', 'turned', 'a stored', 'b stored'])
    } finally {
      await store.close()
      rmSync(folder, { recursive: true, force: true })
    }
  })
})
