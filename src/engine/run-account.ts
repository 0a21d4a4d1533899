/**
 * Quotas of whoever started a run: what its model calls come to is counted together with that of other runs, also of other processes. The runner
 * calls an account; `access/quotas.ts` implements it. A run without a user has none.
 */
import type { EntryOf } from '../part/entry.ts'
import type { RunUser } from '../part/principal.ts'
import type { Limit, Speaking } from './limits.ts'
import { missingUsages, type RunState } from './state.ts'
import type { Writer } from './writer.ts'

export interface AccountedRun {
  id: string
  user: RunUser
  /** With the entries so far. */
  state: Pick<RunState, 'start' | 'calls'>
  /** Model calls in progress, whose usage is estimated. */
  speaking: ReadonlyMap<string, Speaking>
}

export interface RunAccount {
  /** Exceeded when the run's own calls, or those of others, have used up a quota. */
  readonly limit: Limit
  /** Resolves when it is known what was used before, or cannot be known soon. Never rejects. */
  readonly ready: Promise<void>
  /** A `usage` entry, before it is stored. */
  noted(entry: EntryOf<'usage'>): void
  /** All entries up to this `seq` are stored: their usage is counted, once. */
  stored(seq: number): void
  /** Resolves when all that is stored was counted, or after some seconds. Never rejects. */
  counted(): Promise<void>
  /** The run has ended, or goes on elsewhere. Resolves as `counted` does. */
  close(hasEnded: boolean): Promise<void>
}

/** Undefined if no quota applies to the user. */
export type OpenAccount = (run: AccountedRun) => RunAccount | undefined

/**
 * Counts all usage of a run that is about to end. It must come before `run-end`: after that nobody looks at the run any more, so that a crash in
 * between would forget it.
 */
export async function countBeforeEnd(
  account: RunAccount,
  { emit, stored }: Pick<Writer, 'emit' | 'stored'>,
  state: RunState,
): Promise<void> {
  for (const { step, part } of missingUsages(state)) emit(step, part)
  // If the store fails, nothing can be counted, and the end of the run says so.
  await stored().catch(() => undefined)
  await account.counted()
}
