/** Stops a run, wherever it is. */
import { hasEnded, type Store } from '../part/log.ts'
import { awaitEntry } from './await-entry.ts'
import { unknownRun } from './runtime-errors.ts'
import type { Supervisor } from './supervisor.ts'

export interface StopContext {
  store: Store
  supervisor: Pick<Supervisor, 'owns' | 'look'>
  shutdown: AbortSignal
  redact<T>(value: T): T
  /** ms that the owner in another process has to end the run. After that nobody seems to own it. */
  patience: number
}

/** Tells the other processes that a run has a message, instead of looking at it here. */
export async function announce({ fleet }: Pick<Store, 'fleet'>, run: string): Promise<undefined> {
  await fleet.want(run)
}

/**
 * Posts the stop. The run's owner reads it, here or elsewhere, and a run without owner is claimed and ended. Resolves when the
 * stop is posted, or the run without owner is ended. Rejects with `unknown-run` (404).
 */
export async function stopRun(context: StopContext, run: string, reason = 'Stopped.'): Promise<void> {
  const { store, supervisor, redact } = context
  const { log, runs, fleet } = store
  const row = await runs.get(run)
  if (row === undefined && !supervisor.owns(run)) throw unknownRun(run)
  if (row !== undefined && hasEnded(row.status)) return
  await log.post(run, 'stop', { reason: redact(reason) })
  // An owner, even one that is about to start, reads it from its inbox.
  if (supervisor.owns(run)) return
  await supervisor.look(run, 'hint')
  if (supervisor.owns(run) || (await runs.get(run))?.status !== 'running') return
  // A fleet of several processes finds the runs that nobody owns by itself.
  if (fleet.shared) return
  await fleet.want(run)
  void endOrphan(context, run, row?.lastSeq ?? 0).catch(() => undefined)
}

/** Ends a run whose owner does not obey, because there is none: its process has died. */
async function endOrphan({ store, supervisor, shutdown, patience }: StopContext, run: string, after: number) {
  const ended = ({ type }: { type: string }) => type === 'run-end' || type === 'suspend'
  await awaitEntry(store.log, run, ended, { after, ms: patience, signal: shutdown })
  const row = await store.runs.get(run)
  if (shutdown.aborted || row === undefined || hasEnded(row.status) || supervisor.owns(run)) return
  await supervisor.look(run, 'orphan')
}
