/** Judges AG-UI streams by what the official verifiers do not check. */
import { expect } from 'vitest'
import type { AgUiEvent } from '../src/wire/ag-ui/ag-ui-event.ts'

/** Checks a whole stream. Returns its AG-UI runs: more than one if a suspended run was continued in it. */
export function agUiRuns(events: readonly AgUiEvent[]): AgUiEvent[][] {
  const runs: AgUiEvent[][] = []
  for (const event of events) {
    if (event.type === 'RUN_STARTED' || runs.length === 0) runs.push([])
    runs.at(-1)!.push(event)
  }
  for (const run of runs) {
    const terminals = run.filter(({ type }) => type === 'RUN_FINISHED' || type === 'RUN_ERROR')
    expect(terminals).toEqual([run.at(-1)])
  }
  return runs
}
