/** Results of test cases: the last of each case are kept, with what differed. They stand beside the runs. */
import { MillraceError } from './error.ts'
import { isDeepText } from './json.ts'

export type TestStatus = 'passed' | 'failed' | 'stopped'

export const testStatuses: readonly TestStatus[] = ['passed', 'failed', 'stopped']

/** Why a case has failed. */
export interface Failure {
  /** The expectation: a key of `expect`, or `recording`, `answer`, `prompt`, `run`. */
  what: string
  message: string
  /** Both, when they can be compared. */
  expected?: unknown
  got?: unknown
}

/** One result of one case. */
export interface NewTestResult {
  /** The id of the case: its file and its name in file names. */
  test: string
  agent: string
  /** Epoch ms: when it ended. */
  time: number
  /** The id of who ran it; empty: nobody in particular. */
  user: string
  /** The model instead of those of the agent. */
  model?: string
  status: TestStatus
  /** Absent: the page, or its routes. */
  source?: 'terminal'
  /** The models were asked. */
  isLive: boolean
  /** The recorded run, or the one that asked the models. */
  run?: string
  /** As recorded, or spent now. */
  tokens: number
  /** USD; absent if a price is unknown. */
  cost?: number
  /** ms that it took. */
  duration: number
  failures: Failure[]
  warnings: string[]
}

export interface TestResultRow extends NewTestResult {
  /** Grows with each row of a case. */
  n: number
}

/** Every method rejects with `store-failed` when the store fails. */
export interface TestResults {
  add(row: NewTestResult): Promise<void>
  /** Of one case, the newest first. */
  of(test: string, limit?: number): Promise<TestResultRow[]>
  /** Gives those of one case to another, which then has no others. */
  rename(test: string, to: string): Promise<void>
  /** Deletes those of one case. */
  forget(test: string): Promise<void>
}

/** Results of a case that are kept. */
export const keptTestResults = 50
/** ms after which a result is deleted: its case may be gone. */
export const keepsTestResults = 365 * 86_400_000

const mostFailures = 20
const longestText = 4000
const longestName = 512
/** Levels of a value. */
const deepest = 50

/** The row as it is stored: long texts are cut, and long values become texts that are. */
export function toTestResult(row: NewTestResult): NewTestResult {
  const { test, agent, time, user, model, status, source, isLive, run, tokens, cost, duration, failures, warnings } =
    row
  return {
    test: test.slice(0, longestName),
    agent: cut(agent, longestName),
    time,
    user: cut(user, longestName),
    ...(model !== undefined && { model: cut(model, longestName) }),
    status,
    ...(source !== undefined && { source }),
    isLive,
    ...(run !== undefined && { run: cut(run, longestName) }),
    tokens,
    ...(cost !== undefined && { cost }),
    duration,
    failures: failures.slice(0, mostFailures).map(({ what, message, expected, got }) => ({
      what: cut(what, longestName),
      message: cut(message, longestText),
      ...(expected !== undefined && { expected: bounded(expected) }),
      ...(got !== undefined && { got: bounded(got) }),
    })),
    warnings: warnings.slice(0, mostFailures).map((each) => cut(each, longestText)),
  }
}

function cut(text: string, most: number): string {
  return (text.length > most ? `${text.slice(0, most)}…` : text).toWellFormed()
}

function bounded(value: unknown): unknown {
  if (typeof value === 'string') return cut(value, longestText)
  const text = JSON.stringify(value) ?? 'null'
  return text.length > longestText || isDeepText(text, deepest) ? cut(text, longestText) : value
}

/** A row that was stored, or came from elsewhere; undefined for what is none. */
export function readTestResult(value: unknown): NewTestResult | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const row = value as Partial<NewTestResult>
  const { test, agent, time, user, tokens, duration, status, failures, warnings, model, run, cost, source } = row
  const isRow =
    [test, agent, user].every(isText) &&
    [model, run].every((each) => each === undefined || isText(each)) &&
    [time, tokens, duration].every(isCount) &&
    (cost === undefined || isCount(cost)) &&
    (source === undefined || source === 'terminal') &&
    testStatuses.some((each) => each === status) &&
    Array.isArray(failures) &&
    failures.every((each: unknown) => isText((each as Failure | null)?.what) && isText((each as Failure).message)) &&
    Array.isArray(warnings) &&
    warnings.every(isText)
  return isRow ? toTestResult({ ...(row as NewTestResult), isLive: row.isLive === true }) : undefined
}

/** Results that came from elsewhere. Throws for what are none. */
export function readTestResults(value: unknown, most: number): NewTestResult[] {
  if (!Array.isArray(value) || value.length > most)
    throw new Error(`"results" must be a list of at most ${most} results`)
  return value.map((each: unknown, i) => {
    const row = readTestResult(each)
    if (row !== undefined) return row
    throw new Error(`results[${i}] is no result of a test case`)
  })
}

function isText(value: unknown): boolean {
  return typeof value === 'string'
}

function isCount(value: unknown): boolean {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0
}

export function unknownTest(id: string): MillraceError {
  return new MillraceError('unknown-test', `There is no test case ${id.slice(0, 200)}.`)
}
