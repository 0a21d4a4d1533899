/** What the room shows of a list of cases: which, in which groups, and how they are counted. */
import type { TestRow, TestsRun } from '../../data/tests.ts'

export type TestState = 'running' | 'passed' | 'failed' | 'not run'

export const testStates = ['failed', 'passed', 'not run', 'new answer'] as const

export function stateOf({ id, last }: Pick<TestRow, 'id' | 'last'>, run?: Pick<TestsRun, 'running'>): TestState {
  if (run?.running.includes(id) === true) return 'running'
  return last === undefined || last.status === 'stopped' ? 'not run' : last.status
}

/** What the list can be filtered by. */
export type TestMarked = TestState | 'new answer'

export function isMarked(row: TestRow, mark: TestMarked): boolean {
  return mark === 'new answer' ? row.hasChange : stateOf(row) === mark
}

export interface TestFilter {
  q: string
  agent: string | undefined
  state: TestMarked | undefined
}

/** Words are found in the name, the id and the reason of a failure. */
export function filterTests(cases: readonly TestRow[], { q, agent, state }: TestFilter): TestRow[] {
  const words = q.toLowerCase().split(/\s+/u).filter(Boolean)
  return cases.filter((row) => {
    const text = [row.name, row.id, ...(row.last?.failures.map(({ message }) => message) ?? [])].join(' ').toLowerCase()
    return (
      (agent === undefined || row.agent === agent) &&
      (state === undefined || isMarked(row, state)) &&
      words.every((word) => text.includes(word))
    )
  })
}

export interface TestGroup {
  agent: string
  rows: TestRow[]
  passed: number
  failed: number
}

/** By agent, in the order of names; in it as in the files. */
export function groupTests(rows: readonly TestRow[]): TestGroup[] {
  return [...Map.groupBy(rows, ({ agent }) => agent)]
    .toSorted(([a], [b]) => a.localeCompare(b))
    .map(([agent, of]) => ({
      agent,
      rows: of,
      passed: of.filter((row) => stateOf(row) === 'passed').length,
      failed: of.filter((row) => stateOf(row) === 'failed').length,
    }))
}

/** `12 of 40, 1 failed`; `40 passed`; `38 passed, 1 failed, 1 not run`. */
export function progressWords({ total, passed, failed, stopped, endedAt }: TestsRun): string {
  const bad = failed > 0 ? `, ${failed} failed` : ''
  if (endedAt === undefined) return `${passed + failed} of ${total}${bad}`
  return `${passed} passed${bad}${stopped > 0 ? `, ${stopped} not run` : ''}`
}
