/** A reset takes back what an attempt has emitted: row by row, so that any number of them is done in slices. */
import type { EntryOf } from '../../part/entry.ts'
import { stepAt, stopWaiting, type RunState } from './run-state.ts'
import type { Statements } from './statements.ts'

/**
 * Marks what the attempt has emitted under its path. Usage stays: it was paid. Returns false if the time was over before all was marked:
 * the tables then say what is left.
 */
export function takeBack(
  statements: Statements,
  state: RunState,
  { seq, step: path }: EntryOf<'step-reset'>,
  isOver: () => boolean,
): boolean {
  const { number: run } = state
  const attempt = stepAt(statements, state, path)?.seq
  if (attempt === undefined) return true
  for (let from = `${path}/`; ;) {
    // The range is that of all paths that begin with `path/`.
    const below = statements.stepBelow.get(run, from, `${path}0`, attempt)
    const step = below === undefined ? attempt : Number(below.seq)
    from = String(below?.path ?? path)
    while (takeBackOne(statements, run, step, seq)) if (isOver()) return false
    statements.takeBackStep.run(run, step)
    stopWaiting(statements, state, step)
    if (below === undefined) return true
    if (isOver()) return false
  }
}

/** One of the rows that a step has emitted. Returns false if none is left. */
function takeBackOne(statements: Statements, run: number, step: number, seq: number): boolean {
  const event = statements.eventOf.get(run, step)
  if (event !== undefined) {
    if (event.type === 'tool-call') statements.takeBackCall.run(run, event.seq!)
    statements.takeBackEvent.run(run, event.seq!)
    return true
  }
  const block = statements.openBlockOf.get(run, step)?.seq
  if (block != null) {
    statements.endBlock.run(seq, run, block)
    return true
  }
  const request = statements.requestOf.get(run, step)?.seq
  if (request == null) return false
  statements.takeBackRequest.run(run, request)
  return true
}
