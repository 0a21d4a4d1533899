/** The routes of test cases, and what they answer. */
import type { Failure, TestResultRow } from '../../src/part/test-result.ts'
import { api, fetchApi } from './client.ts'

/** A run of tests. */
export interface TestsRun {
  id: string
  user: string
  startedAt: number
  /** Absent: it goes on. */
  endedAt?: number
  record: boolean
  models?: string[]
  total: number
  passed: number
  failed: number
  stopped: number
  /** The ids of the cases that run now. */
  running: string[]
  error?: string
  /** Its server ended before it did. */
  isInterrupted?: true
}

/** A result as the list has it. */
export interface LastResult extends Omit<TestResultRow, 'failures' | 'warnings'> {
  failures: Pick<Failure, 'what' | 'message'>[]
  warnings: number
}

export interface TestRow {
  id: string
  agent: string
  file: string
  line: number
  name: string
  turns: number
  models?: string[]
  isRecorded: boolean
  /** New recordings wait. */
  hasChange: boolean
  last?: LastResult
}

export interface TestList {
  cases: TestRow[]
  faults: { file: string; message: string }[]
  run: TestsRun | null
}

/** What a turn of a case expects. */
export interface Expected {
  outcome: string
  error?: string
  text?: Conditions & { not: Conditions }
  json?: [path: string, value: unknown][]
  tools?: { calls: { name: string; input?: unknown; times?: number }[]; inOrder: boolean; only: boolean }
  steps?: { ran: string[]; skipped: string[] }
  budget?: { tokens?: number; usd?: number; seconds?: number; steps?: number }
  judge?: { agent: string; threshold: number; question?: string }
}

export interface Conditions {
  contains: string[]
  matches: string[]
  equals: string[]
}

/** What accepting would change. */
export interface TestChange {
  /** Absent: the models of the agent have answered. */
  model?: string
  run?: string
  /** New recordings wait. Absent: only what the case expects would change. */
  isNew?: true
  /** The answer that the case would expect exactly. */
  expects?: string
  /** It would expect the new calls of tools. */
  expectsTools?: true
  /** What it expects that would still not hold. */
  fails?: string[]
  runs: { turn: number; judge?: true; before?: Said; after: Said }[]
}

export interface Said {
  answer: string
  /** Each with its arguments. */
  tools: string[]
}

export interface WholeTest extends TestRow {
  /** What a change is made from. */
  etag: string
  strict: boolean
  tools: 'recorded' | 'live'
  /** Its YAML. */
  text: string
  /** One for each turn. */
  cases: { input: Record<string, unknown>; answers: unknown[]; expect: Expected }[]
  /** The run that was recorded, if it is here. */
  recordedRun?: string
  /** New answers, until somebody accepts them. */
  changes: TestChange[]
  /** What was accepted last can be taken back. */
  canUndo: boolean
  results: TestResultRow[]
  run: TestsRun | null
}

/** What a run would become. */
export interface TestDraft {
  id: string
  file: string
  name: string
  turns: number
  outcome: string
  answer: string
  hasOutput: boolean
  tools: string[]
  /** The run had YAML of its own, and the test plays the agent's file. */
  ownPipeline?: true
  /** Of a run that was recorded elsewhere by another agent: what it names. */
  programs?: string[]
}

export interface NewTest {
  run: string
  name: string
  answer: { is: 'equals' | 'contains' | 'not' | 'any'; text?: string }
  tools: boolean
  trust?: boolean
}

export interface StartTests {
  ids?: readonly string[]
  agent?: string
  models?: readonly string[]
  record?: boolean
  /** What the last run has not done, and nothing else. */
  rest?: true
}

const pathOf = (id: string) => `/api/tests/${encodeURIComponent(id)}`

export const readTests = (signal: AbortSignal) => api<TestList>('/api/tests', { signal })
export const readTest = (id: string, signal: AbortSignal) => api<WholeTest>(pathOf(id), { signal })
export const startTests = (body: StartTests) => api<{ run: TestsRun }>('/api/tests/run', { method: 'POST', body })
export const stopTests = () => api('/api/tests/stop', { method: 'POST', body: {} })
export const removeTest = (id: string, etag: string) => api(`${pathOf(id)}?etag=${etag}`, { method: 'DELETE' })
export const renameTest = (id: string, body: { name: string; etag: string }) =>
  api<WholeTest>(`${pathOf(id)}/rename`, { method: 'POST', body })
export const changeTest = (id: string, how: 'accept' | 'discard' | 'undo', body: { etag: string; model?: string }) =>
  api<WholeTest>(`${pathOf(id)}/${how}`, { method: 'POST', body })
export const addTest = (body: NewTest) => api<{ id: string }>('/api/tests', { method: 'POST', body })
export const readDraft = (run: string, signal: AbortSignal) =>
  api<TestDraft>(`/api/tests/draft?run=${encodeURIComponent(run)}`, { signal })

/** Each state of the run of tests, until it has ended. */
export async function* followTests(signal: AbortSignal): AsyncGenerator<TestsRun | null> {
  const response = await fetchApi('/api/tests/progress', { accept: 'text/event-stream', signal })
  let text = ''
  for await (const piece of response.body!.pipeThrough(new TextDecoderStream())) {
    text += piece
    const events = text.split('\n\n')
    text = events.pop()!
    // Only the last one counts.
    const data = events.flatMap((event) => /^data: (.*)$/mu.exec(event)?.[1] ?? []).at(-1)
    if (data !== undefined) yield JSON.parse(data) as TestsRun | null
  }
}
