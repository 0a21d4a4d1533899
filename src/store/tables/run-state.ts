/** The state of a run for filling the tables: its position, and the step and the agent of an entry. */
import { parentPath } from '../../part/path.ts'
import type { Statements } from './statements.ts'
import type { TickLine } from './tick-reader.ts'

/** A step: the `seq` it began with, the number of its agent, its kind. */
export interface StepRow {
  seq: number
  startedAt: number
  agent: number
  kind: string
  /** The number of the agent that it runs; 0 if it runs none. */
  runs: number
  /** False for a model call with a known first token. */
  waits?: boolean
}

export interface RunState {
  /** `runs.number`, which the tables use instead of the id. */
  number: number
  id: string
  thread: string
  /** For a fork: the time of the fork. The first entry of its log is that of its source. */
  startedAt: number
  /** The number of the run's own agent; 0 if unknown. */
  agent: number
  /** The last entry that is in the tables. */
  seq: number
  /** The position in the tables: smaller while there were only deltas. */
  noted: number
  /** The latest step at a path, or `null` if there is none. */
  steps: Map<string, StepRow | null>
  /** Number of model calls without a first token. */
  waiting: number
  /** The line in a row of `ticks` at which the last slice ended: the next one does not search from the beginning of the row. */
  place?: Pick<TickLine, 'seq' | 'from' | 'at'> & { tick: number; length: number }
}

/** The position of a run according to the tables; 0 if none. */
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
    startedAt: Number(row.started_at),
    agent: Number(row.agent),
    kind: String(row.kind),
    runs: numberOfAgent(statements, `${state.id}/${path}`),
  }
  keepStep(state, path, found ?? null)
  return found
}

/** Maximum number of cached steps; the tables have them all. */
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

/** Call it for a model call that ends without a token, or is discarded. */
export function stopWaiting(statements: Statements, state: RunState, call: number): void {
  if (state.waiting > 0 && statements.stopWaiting.run(state.number, call).changes > 0) state.waiting--
}
