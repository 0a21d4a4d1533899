/** Continues filling the tables, one row of `ticks` or one text at a time. Call it inside a transaction. */
import type { DatabaseSync } from 'node:sqlite'
import type { DeltaRow, DeltaRows } from './delta-rows.ts'
import { fillTick, type Tick } from './fill-run.ts'
import { createHourMarks } from './hours.ts'
import { filledTo, readState, type RunState } from './run-state.ts'
import { prepareStatements } from './statements.ts'
import { createTextIndex } from './text-index.ts'
import { createTickReader } from './tick-reader.ts'
import { restoreWithoutPrompt } from '../shared-texts.ts'
import { createTexts } from '../sqlite/texts.ts'

/** Maximum number of runs with a cached state. */
const mostStates = 2000
/** Deltas of a run after which its position is written to the tables. A reader of events reads at most this many again from the log. */
const mostUnnoted = 256

export interface Fill {
  /** Call it first in each transaction: another process may have continued. After a rollback, create another instance. */
  begin(): void
  /** Does one step, or less if the time is over. Returns false if no work is left. */
  step(isOver: () => boolean): boolean
  /** Before COMMIT. */
  save(): void
}

export function createFill(db: DatabaseSync, deltaRows: DeltaRows): Fill {
  const statements = prepareStatements(db)
  const ticks = createTickReader(db)
  const stored = createTexts(db)
  const restore = (entry: unknown) => restoreWithoutPrompt(entry, stored.find)
  const texts = createTextIndex(db)
  const hours = createHourMarks(db)
  const dataVersion = db.prepare('PRAGMA data_version', { returnArrays: true })
  const position = db.prepare('SELECT tick, generation FROM index_state')
  const setPosition = db.prepare('UPDATE index_state SET tick = ?')
  const queued = db.prepare('SELECT run FROM index_queue LIMIT 1')
  const dequeue = db.prepare('DELETE FROM index_queue WHERE run = ?')
  const enqueue = db.prepare('INSERT OR IGNORE INTO index_queue (run) VALUES (?)')
  const origin = db.prepare('SELECT source, seq FROM forks WHERE run = ?')
  const lastSeq = db.prepare('SELECT last_seq FROM runs WHERE id = ?')
  const states = new Map<string, RunState>()
  /** The runs that this transaction has read: their state is that of the tables. A new map each time, as in `sqlite/batches.ts`. */
  let touched = new Map<string, RunState>()
  /** Those of them that it has filled. */
  let filled = new Set<RunState>()
  let tick = 0
  let saved = 0
  let generation: unknown
  let version: unknown

  function stateOf(run: string): RunState | undefined {
    const known = touched.get(run)
    if (known !== undefined) return known
    let state = states.get(run)
    if (state !== undefined && filledTo(statements, state.number) !== state.noted) state = undefined
    if (state === undefined) {
      state = readState(statements, run)
      if (state === undefined) return undefined
      states.set(run, state)
      // Drops the oldest.
      if (states.size > mostStates) states.delete(states.keys().next().value!)
    }
    touched.set(run, state)
    return state
  }

  /**
   * Skips a row of deltas if the tables need nothing from it: only the first delta of a call matters. Each read of a run in a transaction, and each
   * update of its position, costs as much as the delta itself.
   */
  function passes({ id, run, firstSeq, lastSeq }: DeltaRow): boolean {
    const state = states.get(run)
    if (state === undefined || state.waiting > 0 || firstSeq !== state.seq + 1) return false
    if (lastSeq - state.noted > mostUnnoted) return false
    state.seq = lastSeq
    tick = id
    return true
  }

  function fill(state: RunState, row: Tick, isOver: () => boolean, end?: number): boolean {
    filled.add(state)
    return fillTick(statements, state, row, { end, isOver, texts, restore, hours })
  }

  /** The next row of a run in the order of its entries, from its source's rows if it is a fork. */
  function stepOfRun(run: string, isOver: () => boolean): boolean {
    const state = stateOf(run)
    const last = Number(lastSeq.get(run)?.last_seq ?? 0)
    if (state === undefined || state.seq >= last) return false
    const next = state.seq + 1
    let log = run
    let end = Infinity
    const seen = new Set([run])
    for (let at = origin.get(run); at !== undefined && next <= Number(at.seq); at = origin.get(at.source!)) {
      log = String(at.source)
      if (seen.has(log)) break
      seen.add(log)
      end = Math.min(end, Number(at.seq))
    }
    const number = log === run ? state.number : Number(statements.runNumber.get(log)?.number ?? 0)
    const row = ticks.at(log, next)
    if (row === undefined) return false
    if (!fill(state, { ...row, log: number }, isOver, end)) return true
    if (state.seq >= end) statements.cutBlocks.run(end, state.number)
    return state.seq < last
  }

  function stepOfQueue(isOver: () => boolean): boolean {
    const run = queued.get()?.run
    if (run === undefined) return false
    if (!stepOfRun(String(run), isOver)) dequeue.run(run)
    return true
  }

  return {
    begin() {
      const state = position.get()
      hours.begin()
      touched = new Map()
      filled = new Set()
      texts.begin(state?.generation !== generation)
      if (state?.generation !== generation) states.clear()
      generation = state?.generation
      const [now] = dataVersion.get() as unknown as [number]
      // Another process has written, and may have reused an id.
      if (now !== version) deltaRows.clear()
      version = now
      saved = tick = Number(state?.tick ?? 0)
    },
    step(isOver) {
      const known = deltaRows.at(tick + 1)
      if (known !== undefined && passes(known)) return true
      const row = ticks.after(tick)
      if (row === undefined) return stepOfQueue(isOver) || texts.step(isOver)
      const state = stateOf(row.run)
      if (state !== undefined && state.seq < row.lastSeq) {
        // The rest of a fork, or a run whose rows were removed.
        if (row.firstSeq > state.seq + 1) enqueue.run(row.run)
        else if (!fill(state, { ...row, log: state.number }, isOver)) return true
      }
      tick = row.id
      return true
    },
    save() {
      ticks.rest()
      texts.save()
      hours.save()
      for (const state of filled) {
        statements.setFilled.run(state.number, state.seq)
        state.noted = state.seq
      }
      if (tick !== saved) setPosition.run(tick)
    },
  }
}
