/**
 * Where a recording stands in a store: whom it belongs to, and which runs it names. Both are input from outside: it must not get into the threads or the
 * conversations of others.
 */
import type { Entry, EntryOf } from '../../part/entry.ts'
import type { RunIndex, RunRow } from '../../part/log.ts'
import { plainThread, scopedThread, type RunUser } from '../../part/principal.ts'
import { mostNested } from '../../part/readable-entry.ts'
import { asRecorded } from '../../part/recording.ts'
import { isShown, ownerOf } from '../../store/run-row.ts'
import { invalidRecording, type CheckedRecording, type RunReference } from './check-recording.ts'

export type RunStartEntry = EntryOf<'run-start'>

/** Whom an imported run belongs to. Null: no one. Undefined: whom the recording says. */
export type ImportUser = RunUser | null | undefined

const references: readonly RunReference[] = ['parentRunId', 'previousRunId', 'forkedFrom']
/** Characters: see `entry-shapes.ts`. */
const longestThread = 2048

function threadOfUser(threadId: string, user: RunUser | null): string {
  return scopedThread(plainThread(threadId), user ?? undefined)
}

/** The start of a run that belongs to a user, with the thread of the same name that is the user's. */
export function ofUser(start: RunStartEntry, user: ImportUser): RunStartEntry {
  if (user === undefined) return start
  const { user: _, ...rest } = start
  return { ...rest, threadId: threadOfUser(start.threadId, user), ...(user !== null && { user }) }
}

/** Throws `invalid-recording`. */
export function checkThread(name: string, { threadId }: CheckedRecording, user: ImportUser): void {
  if (user !== undefined && threadOfUser(threadId, user).length > longestThread)
    throw invalidRecording(name, 'line 1: threadId is too long for a thread of this owner')
}

export function withoutReferences(start: RunStartEntry, fields: readonly RunReference[] = []): RunStartEntry {
  const rest = { ...start }
  for (const field of fields) delete rest[field]
  return rest
}

/** Whether a stored entry is that of the recording. */
export function isSameEntry(stored: Entry | undefined, given: Entry, user: ImportUser): boolean {
  if (stored?.type !== 'run-start' || given.type !== 'run-start')
    return JSON.stringify(stored) === JSON.stringify(given)
  // What it named was removed if it belonged to somebody else.
  const removed = references.filter((field) => stored[field] === undefined)
  const [a, b] = [asRecorded(stored), withoutReferences(asRecorded(given), removed)]
  if (user === undefined) return JSON.stringify(a) === JSON.stringify(b)
  // The claims and the name of a user may have changed since.
  const identity = ({ user: by, ...others }: RunStartEntry) => JSON.stringify([others, ownerOf(by)])
  return identity(a) === identity(b)
}

/** Runs of a conversation that are checked. Readers of a longer one guard against cycles themselves. */
const mostTurns = 10_000
/** So many are looked at in one go. */
const slice = 100

/**
 * Where a run stands among those that are there already: it must not come before itself, nor be called by itself.
 *
 * Returns what it names that does not belong to its owner, and is removed: it must not get into others' conversations. For an importer, so is what is
 * not here: that it stays would tell it from a run of somebody else, and the run may come later. A copy of one's own data keeps its origin, because who
 * forked a run may not be whom it belongs to. Throws `invalid-recording`.
 */
export async function checkPlace(
  runs: Pick<RunIndex, 'get'>,
  name: string,
  { id, named, user: said }: CheckedRecording,
  user: ImportUser,
): Promise<RunReference[]> {
  const { owner = '', tenant = '' } = ownerOf(user === undefined ? said : (user ?? undefined))
  const others: RunReference[] = []
  for (const field of references) {
    if (named[field] === undefined || (field === 'forkedFrom' && user === undefined)) continue
    const row = await runs.get(named[field])
    const isOwn = row === undefined ? user === undefined : isShown(row, { owner, tenant })
    if (!isOwn) others.push(field)
  }
  if (!others.includes('parentRunId')) await follow('parentRunId', mostNested)
  if (!others.includes('previousRunId')) await follow('previousRunId', mostTurns)
  return others

  async function follow(field: 'parentRunId' | 'previousRunId', most: number): Promise<void> {
    const seen = new Set([id])
    for (let at = named[field]; at !== undefined;) {
      if (seen.has(at)) {
        const what = field === 'parentRunId' ? 'is called by' : 'continues'
        throw invalidRecording(name, `line 1: ${field}: run ${named[field]} ${what} run ${at} itself`)
      }
      if (seen.size > most) {
        if (field === 'previousRunId') return
        throw invalidRecording(name, `line 1: parentRunId: calls of runs are nested deeper than ${most}`)
      }
      seen.add(at)
      const row: RunRow | undefined = await runs.get(at)
      at = row?.[field]
      if (seen.size % slice === 0) await new Promise((resolve) => setTimeout(resolve))
    }
  }
}
