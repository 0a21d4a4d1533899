import { describe, expect, test } from 'vitest'
import type { Pipeline } from '../pipeline/pipeline.ts'
import { createLimits } from '../store/limits.ts'
import { createActiveRuns } from './active-runs.ts'

const limited = (activeRuns: number) => ({ limits: { activeRuns } }) as Pipeline
const never = () => new Promise<void>(() => undefined)
const turn = () => new Promise<void>((resolve) => setImmediate(resolve))

describe('createActiveRuns', () => {
  test('a tenant that fills all places and sends a hundred times as much gives way to another at the next place', async () => {
    const active = createActiveRuns(createLimits(), { patience: never })
    const entered: string[] = []
    const start = (run: string, tenant: string) => {
      const starting = active.enter(run, 'a', limited(2), { id: `${tenant}-user`, tenant })
      return starting.then(
        () => void entered.push(run),
        (error: { code: string }) => void entered.push(`${run}: ${error.code}`),
      )
    }
    await Promise.all([start('loud1', 'loud'), start('loud2', 'loud')])
    const waiting = Array.from({ length: 100 }, (_, i) => start(`more${i}`, 'loud'))
    await turn()
    // Two wait: as many as there are places. The others are refused at once.
    expect(entered.filter((each) => each.endsWith('too-many-runs'))).toHaveLength(98)
    entered.length = 0
    const quiet = start('quiet', 'quiet')
    await turn()
    expect(entered).toEqual([])
    active.leave('loud1')
    await quiet
    expect(entered).toEqual(['quiet'])
    active.leave('loud2')
    active.leave('quiet')
    await Promise.all(waiting)
    expect(entered).toEqual(['quiet', 'more0', 'more1'])
  })

  test('within a tenant, owners take turns', async () => {
    const active = createActiveRuns(createLimits(), { patience: never })
    const entered: string[] = []
    const start = (run: string, id: string) =>
      active.enter(run, 'a', limited(3), { id, tenant: 't' }).then(() => void entered.push(run))
    await Promise.all([start('x1', 'x'), start('x2', 'x'), start('x3', 'x')])
    const all = [start('x4', 'x'), start('x5', 'x'), start('y1', 'y')]
    await turn()
    active.leave('x1')
    await all[2]
    expect(entered).toEqual(['x1', 'x2', 'x3', 'y1'])
    active.leave('x2')
    active.leave('x3')
    await Promise.all(all)
    expect(entered.slice(4)).toEqual(['x4', 'x5'])
  })

  test('who waits in vain is refused, and holds up nobody; a run of no one is refused at once', async () => {
    let expire = () => {}
    const patience = () => new Promise<void>((resolve) => (expire = resolve))
    const active = createActiveRuns(createLimits(), { patience })
    await active.enter('one', 'a', limited(1), { id: 'u' })
    const late = active.enter('late', 'a', limited(1), { id: 'v' })
    await turn()
    await expect(active.enter('nobody', 'a', limited(1))).rejects.toMatchObject({ code: 'too-many-runs' })
    expire()
    await expect(late).rejects.toMatchObject({ code: 'too-many-runs', status: 429, retryAfter: 5 })
    active.leave('one')
    await active.enter('next', 'a', limited(1), { id: 'v' })
    await expect(active.enter('nobody', 'a', limited(1))).rejects.toMatchObject({ code: 'too-many-runs' })
  })
})
