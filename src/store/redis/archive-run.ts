/** Moves a run that has ended to the archive. A crash before the last step leaves it in Redis, and the work is done again. */
import { hasEnded } from '../../part/log.ts'
import type { Archive } from '../archive/archive.ts'
import { decodeEntries } from '../encode.ts'
import type { EndedRuns } from './ended-runs.ts'
import type { Pages } from './pages.ts'
import type { Rows } from './rows.ts'

interface Context {
  ended: EndedRuns
  pages: Pages
  rows: Rows
  archive: Archive
}

export async function archiveRun({ ended, pages, rows, archive }: Context, run: string): Promise<boolean> {
  const what = `archive run ${run}`
  const known = await rows.load(run)
  if (known === undefined || !hasEnded(known.row.status)) return false
  const lease = await ended.lease(what, run)
  if (lease === undefined) return false
  try {
    let items = 0
    async function* entries() {
      for await (const page of pages.items(run)) {
        items += page.length
        yield decodeEntries(page.map(([, [, text]]) => text!))
        await lease!.renew()
      }
    }
    const batches = entries()
    const first = await batches.next()
    // It was archived before, or deleted.
    if (first.done === true) return false
    async function* whole() {
      yield first.value!
      yield* batches
    }
    await archive.put(known.row, whole())
    const place = archive.placeOf(known.row)
    const done = await ended.change(what, run, 'archived', [items, place])
    // It was deleted meanwhile.
    if (done === 0 && (await rows.load(run)) === undefined) await archive.remove(run, place)
    return done === 1
  } finally {
    await lease.release()
  }
}
