/** Test cases as they are run: read, checked, with the types of their values. */
import type { Outcome } from '../part/part.ts'

/** The conditions for a text. Lists: each of them. */
export interface TextConditions {
  contains: string[]
  matches: string[]
  equals: string[]
}

export interface ExpectedCall {
  name: string
  /** Absent: any. */
  input?: unknown
  times?: number
}

export interface Expectation {
  outcome: Outcome
  error?: string
  text?: TextConditions & { not: TextConditions }
  json?: [path: string, value: unknown][]
  tools?: { calls: ExpectedCall[]; inOrder: boolean; only: boolean }
  steps?: { ran: string[]; skipped: string[] }
  budget?: { tokens?: number; usd?: number; seconds?: number; steps?: number }
  judge?: { agent: string; threshold: number; question?: string }
}

/** An answer to a request: for an approval, a client tool or a question of a step. */
export type GivenAnswer = { tool?: string } & (
  | { kind: 'approval'; approved: boolean; reason?: string; input?: unknown }
  | { kind: 'tool'; output: unknown; isError?: true }
  | { kind: 'input'; value: unknown }
  | { kind: 'input'; cancelled: true }
)

/** One run of a case. */
export interface TestTurn {
  input: Record<string, unknown>
  answers: GivenAnswer[]
  expect: Expectation
}

export interface TestCase {
  name: string
  /** The name in file names. */
  slug: string
  line: number
  turns: TestTurn[]
  strict: boolean
  tools: 'recorded' | 'live'
}

export interface CaseFile {
  /** Its path as the user gave it. */
  path: string
  agent: string
  models?: string[]
  /** ms for one case. */
  timeout: number
  cases: TestCase[]
}
