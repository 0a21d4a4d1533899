/** What filling the tables must know of a run: where it stands, and which step and agent an entry belongs to. */
import { parentPath } from '../../part/path.ts'
import type { Statements } from './statements.ts'
import type { TickLine } from './tick-reader.ts'

/** A step: the `seq` it began with, the number of its agent, its kind. */
export interface StepRow {
  seq: number
  agent: number
  kind: string
  /** The number of the agent that it runs, 0 if it runs none. */
  runs: number
  /** False for a model call whose first token is known to be there. */
  waits?: boolean
}

export interface RunState {
  /** `runs.number`, which the tables have instead of the id. */
  number: number
  id: string
  thread: string
  /** Of a fork: when it was forked. The entry that begins its log is that of its source. */
  startedAt: number
  /** The number of the run's own agent, 0 if it is not known. */
  agent: number
  /** The last entry that is in the tables. */
  seq: number
  /** What the tables say it is: less, while there were only deltas. */
  noted: number
  /** The latest step at a path, or `null` if there is none. */
  steps: Map<string, StepRow | null>
  /** How many model calls have no first token yet. */
  waiting: number
  /** The line in a row of `ticks` at which the last slice ended: the next one does not look for it from the beginning of the row. */
  place?: Pick<TickLine, 'seq' | 'from' | 'at'> & { tick: number; length: number }
}

/** The last entry of a run that the tables say they have, 0 if none. */
export function filledTo(statements: Statements, number: number): number {
  const row = statements.filled.get(number) as unknown as [number] | undefined
  return row === undefined ? 0 : row[0]
}

/** Reads the state from the tables. Undefined for a run that does not exist. */
export function readState(statements: Statements, id: string): RunState | undefined {
  const row = statements.runNumber.get(id)
  if (row === undefined) return undefined
  const number = Number(row.number)
  const seq = filledTo(statements, number)
  const waiting = seq === 0 ? 0 : Number(statements.waiting.get(number)?.calls)
  const [thread, startedAt] = [String(row.thread_id), Number(row.started_at)]
  return { number, id, thread, startedAt, agent: 0, seq, noted: seq, steps: new Map(), waiting }
}

/** The latest step at a path. */
export function stepAt(statements: Statements, state: RunState, path: string): StepRow | undefined {
  const known = state.steps.get(path)
  if (known !== undefined) return known ?? undefined
  const row = path === '' ? undefined : statements.stepAt.get(state.number, path)
  const found = row && {
    seq: Number(row.seq),
    agent: Number(row.agent),
    kind: String(row.kind),
    runs: numberOfAgent(statements, `${state.id}/${path}`),
  }
  keepStep(state, path, found ?? null)
  return found
}

/** So many are remembered; the tables have them all. */
const mostSteps = 10_000

export function keepStep(state: RunState, path: string, step: StepRow | null): void {
  if (state.steps.size >= mostSteps) state.steps.clear()
  state.steps.set(path, step)
}

/** The number of the agent that an entry of this step belongs to. */
export function agentAt(statements: Statements, state: RunState, path: string): number {
  for (let at = path; at !== ''; at = parentPath(at)) {
    const step = stepAt(statements, state, at)
    if (step !== undefined) return step.agent
  }
  if (state.agent === 0) state.agent = numberOfAgent(statements, state.id)
  return state.agent
}

/** 0 if there is none. */
function numberOfAgent(statements: Statements, id: string): number {
  return Number(statements.agentOf.get(id)?.number ?? 0)
}

/** Of a model call that ends without a token, or is taken back. */
export function stopWaiting(statements: Statements, state: RunState, call: number): void {
  if (state.waiting > 0 && statements.stopWaiting.run(state.number, call).changes > 0) state.waiting--
}
