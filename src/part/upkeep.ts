/** Keeps a store small: compaction and deletion of ended runs. */

/** Options of work that takes long. */
export interface Paced {
  /** Awaited between two slices of a few ms each. If it rejects, the work stops there, and so does the call. */
  rest?: () => Promise<void>
}

/** The result of a compaction. Bytes are those of the entries as JSON. */
export interface Compacted {
  entriesBefore: number
  entriesAfter: number
  bytesBefore: number
  bytesAfter: number
}

/** Some runs in the order in which they began. */
export interface UpkeepPage {
  /** Those that were asked for. */
  runs: { id: string; bytes: number }[]
  /** Pass it as `after` to go on; absent at the end. */
  next?: number
}

export interface Upkeep {
  /** Bytes in use, and bytes that a vacuum would give back. */
  size(): Promise<{ used: number; free: number }>
  /** Runs that ended before a moment (epoch ms) and were not compacted since. */
  uncompacted(endedBefore: number, limit: number): Promise<string[]>
  /**
   * Merges the deltas of a run that has ended; its content stays the same. The run can be read at every moment, and a crash leaves it
   * partly merged. `dryRun`: only reports its result. Undefined if there is no such run or it has not ended.
   */
  compact(run: string, options?: Paced & { dryRun?: boolean }): Promise<Compacted | undefined>
  /** Runs that ended before a moment (epoch ms) and are not in the archive yet. Absent where there is none. */
  unarchived?(endedBefore: number, limit: number): Promise<string[]>
  /**
   * Moves the entries of a run that has ended to the archive, from which it is read as before. A crash leaves it where it was. Resolves
   * with whether it did: false if another process is at it, or it has not ended.
   */
  archive?(run: string): Promise<boolean>
  /**
   * Runs that may be deleted, among the next ones after a position: those that have ended, whose thread has no run that goes on or was
   * active at or after `idleBefore` (epoch ms), whose log no fork shares, and whose caller has ended.
   */
  expired(idleBefore: number, after?: number): Promise<UpkeepPage>
  /** Deletes such a run with everything that is kept of it. Resolves with whether it did: false if it may not be deleted (now). */
  drop(run: string, options?: Paced): Promise<boolean>
  /**
   * A mark of each run, in order; undefined if there is no such run. It changes when any process deletes the run, even if it is stored
   * again: then data derived from it must be dropped. It may change without that.
   */
  marks(runs: readonly string[]): Promise<(string | undefined)[]>
  /** While it stays the same, so does each mark. Absent if a store cannot tell in one read. */
  generation?(): Promise<number>
  /** Completes deletions that a crash has cut off, and returns unused space to the file system. */
  vacuum(options?: Paced): Promise<void>
  /**
   * Erases deleted data, as far as that takes a moment; does nothing if there is nothing to erase. `rewrites`: whatever it
   * takes. Absent where nothing is left anyway.
   */
  erase?(options?: Paced & { rewrites?: boolean }): Promise<Erased>
}

/**
 * The remains of deleted data. `nothing`; `moved`: fragments of rows in unused places of a large file, until it is written anew;
 * `read`: data that a reader of another process still needs, until the next time.
 */
export type Erased = 'nothing' | 'moved' | 'read'
