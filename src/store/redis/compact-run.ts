/** Compacts a run: reads its log, collects the merged entries beside it, and puts them in its place in one go. */
import { createCompaction } from '../../fold/compaction.ts'
import { hasEnded } from '../../part/log.ts'
import type { Compacted, Paced } from '../../part/upkeep.ts'
import { createLineMerge, pieceLength, type MergedLines } from '../merge-lines.ts'
import type { EndedRuns, Lease } from './ended-runs.ts'
import type { Pages } from './pages.ts'
import type { Rows } from './rows.ts'
import type { StoreClock } from './store-clock.ts'

/** Characters of merged entries that are sent together. */
const sentLength = 256 * 1024

interface Context {
  ended: EndedRuns
  pages: Pages
  rows: Rows
  clock: StoreClock
}

interface Piece extends MergedLines {
  /** `seq` of its last entry. */
  last: string
  items: number
  bytes: number
}

export async function compactRun(
  { ended, pages, rows, clock }: Context,
  run: string,
  { rest = async () => undefined, dryRun = false }: Paced & { dryRun?: boolean },
): Promise<Compacted | undefined> {
  const what = `compact run ${run}`
  const known = await rows.load(run)
  if (known === undefined || !hasEnded(known.row.status)) return undefined
  const lease = dryRun ? undefined : await ended.lease(what, run)
  if (!dryRun && lease === undefined) return undefined
  const total = { entriesBefore: 0, entriesAfter: 0, bytesBefore: 0, bytesAfter: 0 }
  try {
    let [items, count] = [0, 0]
    let unsent: Piece[] = []
    for await (const piece of piecesOf(run, pages)) {
      total.entriesBefore += piece.before
      total.entriesAfter += piece.after
      total.bytesBefore += piece.bytes
      total.bytesAfter += Buffer.byteLength(piece.text)
      items += piece.items
      count++
      unsent.push(piece)
      if (lease !== undefined && lengthOf(unsent) > sentLength) unsent = await send(lease, unsent)
      await rest()
      await lease?.renew()
    }
    // Archived.
    if (lease === undefined || items === 0) return total
    const isSmaller = total.entriesAfter < total.entriesBefore
    const isWorthIt = isSmaller || count < items
    if (isWorthIt) await send(lease, unsent)
    const { row } = known
    const kept = JSON.stringify(isSmaller ? { ...row, compactedAt: clock.now() } : row)
    const done = await ended.change(what, run, 'compacted', [lease.token, items, isWorthIt ? count : 0, kept])
    return done === 1 ? total : undefined
  } finally {
    await lease?.release()
  }

  async function send({ token }: Lease, pieces: Piece[]): Promise<Piece[]> {
    const texts = pieces.flatMap(({ last, text }) => [last, text])
    await ended.change(what, run, 'merge', [token, pieces.length, ...texts])
    return []
  }
}

function lengthOf(pieces: readonly Piece[]): number {
  return pieces.reduce((sum, { text }) => sum + text.length, 0)
}

async function* piecesOf(run: string, pages: Pages): AsyncGenerator<Piece, void, void> {
  const lines = createLineMerge(run, createCompaction())
  let last = ''
  let [items, bytes, length] = [0, 0, 0]
  for await (const page of pages.items(run)) {
    for (const [id, [, text]] of page) {
      lines.add(text!)
      last = id.slice(0, id.indexOf('-'))
      bytes += Buffer.byteLength(text!) + (items === 0 ? 0 : 1)
      items++
      length += text!.length
      if (length < pieceLength) continue
      yield { ...lines.finish(), last, items, bytes }
      items = bytes = length = 0
    }
  }
  if (items > 0) yield { ...lines.finish(), last, items, bytes }
}
