/** A recorded run as a source of entries, wherever it is kept: in a log, in a file. */
import type { Entry, EntryOf } from './entry.ts'
import type { Log, ReadOptions } from './log.ts'
import { isUnder } from './path.ts'

/** A run that can be read, several times. */
export interface Recording {
  /** Its name in messages: the run's id, or the name of a file. */
  readonly name: string
  /** Reads entries in batches, in order. May be called several times. */
  read(options?: Omit<ReadOptions, 'signal'>): AsyncIterable<Entry[]>
}

/** A run of a log. A store's notes about an imported recording are no part of it. */
export function recordedRun(log: Log, run: string): Recording {
  return {
    name: run,
    async *read(options) {
      for await (const batch of log.read(run, options)) {
        const [start, ...rest] = batch
        yield start?.type === 'run-start' ? [asRecorded(start), ...rest] : batch
      }
    },
  }
}

/** The start of a run without the notes of its store. */
export function asRecorded(start: EntryOf<'run-start'>): EntryOf<'run-start'> {
  const { foreign: _, ...recorded } = start
  return recorded
}

/** Entries in memory, such as those of an NDJSON file. */
export function recordedEntries(name: string, entries: readonly Entry[]): Recording {
  return {
    name,
    async *read({ after = 0, before = Infinity, limit = Infinity, step, types } = {}) {
      const chosen = entries.filter(
        (entry) =>
          entry.seq > after &&
          entry.seq < before &&
          (step === undefined || isUnder(entry.step, step)) &&
          (types === undefined || types.includes(entry.type)),
      )
      if (chosen.length > 0) yield chosen.slice(0, limit)
    },
  }
}
