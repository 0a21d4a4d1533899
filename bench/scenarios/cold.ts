/**
 * A server rests for a while, and the system drops its file cache, as in a container with little memory. Until the first delta of a
 * request before that and afterwards: does the event loop read from the disk?
 */
import { setTimeout } from 'node:timers/promises'
import { dropFileCache } from '../file-cache.ts'
import { inRoundsAfresh, setMode, type Bench, type Result } from '../scenario.ts'
import { median } from '../schedule.ts'
import { askOnce } from './first-delta.ts'

/** Longer than a server waits until it empties the WAL. */
const usualRest = 65_000
/** Requests of a measurement. Half as many come before the second one: code that has rested is slow. */
const usual = 300

export async function cold(bench: Bench, rest = bench.options.quick ? 10 : usualRest): Promise<Result> {
  // After that many the WAL has restarted, so that what comes next overwrites it.
  const { rounds = 1, quick, requests = 2500 } = bench.options
  const measured = quick ? 20 : usual
  const rows = await inRoundsAfresh(bench, bench.rows, { rounds, warmUp: false }, async (server, target) => {
    await setMode(bench, { kind: 'first' })
    const ask = async (times: number) => {
      const all: number[] = []
      while (all.length < times) all.push((await askOnce(bench, target)).both)
      return median(all)
    }
    await ask(requests)
    const before = await ask(measured)
    await setTimeout(rest)
    const files = dropFileCache(server).length
    await ask(measured / 2)
    const after = await ask(measured)
    return { before, after, ratio: after / before, files }
  })
  return {
    scenario: 'cold',
    title: 'One stream at a time: ms until the first delta, before and after the system has dropped the file cache',
    reference: '',
    columns: [
      { key: 'before', title: 'before', digits: 2 },
      { key: 'after', title: 'after', digits: 2 },
      { key: 'ratio', title: 'after / before', digits: 2 },
      { key: 'files', title: 'files dropped', digits: 0 },
    ],
    rows,
    notes: [
      `${requests} requests to a new server, ${measured} measured, ${rest / 1000} s without any, all its files dropped from the cache, ${measured} measured.`,
      'The machine’s speed may have changed in between: the floor, which has no files, shows that.',
    ],
  }
}
