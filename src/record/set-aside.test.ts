/** Runs at which upkeep fails, and those behind them. */
import { describe, expect, test } from 'vitest'
import type { Paced, Upkeep } from '../part/upkeep.ts'
import { createSetAside } from './set-aside.ts'
import { archiveRuns, compactRuns } from './upkeep.ts'

/** An archive that refuses some runs. */
function archiving(runs: string[], refuses: (run: string) => boolean) {
  const tries: string[] = []
  const upkeep = {
    unarchived: async (_, limit) => runs.slice(0, limit),
    archive: async (run) => {
      tries.push(run)
      if (refuses(run)) throw new Error(`${run} is damaged`)
      runs.splice(runs.indexOf(run), 1)
      return true
    },
  } satisfies Pick<Upkeep, 'unarchived' | 'archive'> as unknown as Upkeep
  return { upkeep, tries }
}

const names = (name: string, count: number) => Array.from({ length: count }, (_, i) => `${name}${i}`)

describe('createSetAside', () => {
  test('many that fail are told once each, and tried after one pass, two, four', async () => {
    const bad = names('bad', 250)
    const good = names('good', 150)
    const { upkeep, tries } = archiving([...bad, ...good], (run) => run.startsWith('bad'))
    const aside = createSetAside()
    const told: string[] = []
    const passes = new Map<string, number[]>()
    for (let pass = 1; pass <= 40; pass++) {
      aside.begin()
      // Ten in a row are a fault of the archive: the pass ends.
      await archiveRuns(upkeep, { endedBefore: 0, aside }).catch(() => undefined)
      told.push(...aside.failures().map(({ run }) => run))
      for (const run of tries.splice(0)) passes.set(run, [...(passes.get(run) ?? []), pass])
    }
    expect(told).toEqual(bad)
    expect(good.map((run) => passes.get(run)!.length)).toEqual(good.map(() => 1))
    expect(passes.get('bad0')!.slice(0, 2)).toEqual([1, 26])
    const { upkeep: one, tries: again } = archiving(['bad', 'good'], (run) => run === 'bad')
    const alone = createSetAside()
    const tried: number[] = []
    for (let pass = 1; pass <= 20; pass++) {
      alone.begin()
      await archiveRuns(one, { endedBefore: 0, aside: alone })
      if (again.splice(0).includes('bad')) tried.push(pass)
    }
    expect(tried).toEqual([1, 2, 4, 8, 16])
  })

  test('one that succeeds is forgotten; without a memory the first failure is thrown when the others are done', async () => {
    let isBroken = true
    const { upkeep, tries } = archiving(['a', 'b', 'c'], (run) => run === 'b' && isBroken)
    await expect(archiveRuns(upkeep, { endedBefore: 0 })).rejects.toThrow('b is damaged')
    expect(tries).toEqual(['a', 'b', 'c'])
    const aside = createSetAside()
    aside.begin()
    await archiveRuns(upkeep, { endedBefore: 0, aside })
    expect(aside.size).toBe(1)
    isBroken = false
    aside.begin()
    expect(await archiveRuns(upkeep, { endedBefore: 0, aside })).toBe(1)
    expect(aside.size).toBe(0)
  })

  test('what ends the work is no failure of a run', async () => {
    const upkeep = {
      uncompacted: async () => ['a', 'b'],
      compact: async (_: string, { rest }: Paced) => rest?.(),
    } as unknown as Upkeep
    const aside = createSetAside()
    const rest = async () => {
      throw new Error('closing')
    }
    await expect(compactRuns(upkeep, { endedBefore: 0, aside, rest })).rejects.toThrow('closing')
    expect(aside.failures()).toEqual([])
  })
})
