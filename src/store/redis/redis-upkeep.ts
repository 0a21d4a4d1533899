/** Keeps Redis small: see `Upkeep`. Whatever a crash cuts off is readable, and is done again by whoever comes next. */
import type { RunIndex } from '../../part/log.ts'
import type { Upkeep } from '../../part/upkeep.ts'
import type { Archive } from '../archive/archive.ts'
import { archiveRun } from './archive-run.ts'
import { compactRun } from './compact-run.ts'
import type { Connection } from './connection.ts'
import { createEndedRuns } from './ended-runs.ts'
import { createExpiry } from './expiry.ts'
import { readMarks } from './marks.ts'
import { measureRuns } from './memory.ts'
import type { Pages } from './pages.ts'
import type { Rows } from './rows.ts'
import type { StoreClock } from './store-clock.ts'

export interface RedisUpkeepContext {
  connection: Connection
  clock: StoreClock
  rows: Rows
  pages: Pages
  runs: Pick<RunIndex, 'list'>
  archive: Archive | undefined
  /** Called when what is stored of a run is no longer what was appended. */
  changed(run: string): void
}

/** How long it is known which entries were stored when, in ms: for who reads the changes of all runs. */
const changesFor = 3_600_000
/** How long a measured size is taken for the current one, in ms. */
const sizeFor = 60_000

export function createRedisUpkeep(context: RedisUpkeepContext): Upkeep {
  const { connection, clock, rows, pages, runs, archive, changed } = context
  const ended = createEndedRuns(connection)
  const expiry = createExpiry({ connection, ended, rows, runs, archive })
  const sizes = new Map<string, number>()
  let size = { bytes: 0, until: 0 }

  const upkeep: Upkeep = {
    async size() {
      if (performance.now() >= size.until) {
        size = { bytes: await measureRuns(connection), until: performance.now() + sizeFor }
      }
      return { used: Math.max(0, size.bytes), free: 0 }
    },
    async uncompacted(before, limit) {
      return (await ended.endedBefore('ended', before, limit)).map(([run]) => run)
    },
    async compact(run, options = {}) {
      const done = await compactRun({ ended, pages, rows, clock }, run, options)
      if (done !== undefined && options.dryRun !== true) {
        changed(run)
        size.until = 0
      }
      return done
    },
    async expired(idleBefore, after) {
      const page = await expiry.expired(idleBefore, after)
      sizes.clear()
      for (const { id, bytes } of page.runs) sizes.set(id, bytes)
      return page
    },
    async drop(run) {
      if (!(await expiry.drop(run))) return false
      changed(run)
      // Measuring again for each run of many would take longer than deleting them.
      size.bytes -= sizes.get(run) ?? 0
      return true
    },
    marks: (list) => readMarks(connection, list),
    async vacuum() {
      await expiry.completeAll()
      await ended.forgetChanges(clock.now() - changesFor)
      await archive?.tidy()
    },
  }
  if (archive === undefined) return upkeep
  return {
    ...upkeep,
    async unarchived(before, limit) {
      const found = await Promise.all(
        (['ended', 'compacted'] as const).map((set) => ended.endedBefore(set, before, limit)),
      )
      return found
        .flat()
        .toSorted((a, b) => a[1] - b[1])
        .slice(0, limit)
        .map(([run]) => run)
    },
    async archive(run) {
      const done = await archiveRun({ ended, pages, rows, archive }, run)
      if (done) size.until = 0
      return done
    },
  }
}
