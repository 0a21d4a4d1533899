/** The test cases of a server: one run of tests at a time, with its progress, and their results in the store. */
import { availableParallelism } from 'node:os'
import { rmSync } from 'node:fs'
import { basename, dirname, resolve } from 'node:path'
import type { Entry } from '../part/entry.ts'
import { MillraceError, messageOf, wholeMessage } from '../part/error.ts'
import { timeOf, type Store } from '../part/log.ts'
import type { NewTestResult } from '../part/test-result.ts'
import { omitUndefined } from '../part/omit-undefined.ts'
import { scopedThread, type RunUser } from '../part/principal.ts'
import { noUsage } from '../part/usage.ts'
import { addCase, planCase, type AddCaseOptions, type PlannedCase } from './add-case.ts'
import { changing, openCaseFiles, type CaseFiles, type FoundCase } from './case-files.ts'
import { casesFolder } from './case-folder.ts'
import { keepRecordings } from './new-recordings.ts'
import { readLeftResults } from './result-files.ts'
import { resultRow } from './result-row.ts'
import type { CaseResult, CaseRun } from './run-case.ts'
import { casesOf, runCases } from './run-cases.ts'
import { outcomeOf, readPlan, removePlan, writePlan, type PlannedRun } from './run-plan.ts'
import type { CaseFile } from './test-case.ts'
import { checkAgentOf, openTestRuntime, type TestRuntime, type TestRuntimeOptions } from './test-runtime.ts'

/** A run of tests: what is done of it. */
export interface TestsRun {
  id: string
  /** The id of who started it; empty: nobody in particular. */
  user: string
  /** Epoch ms. */
  startedAt: number
  /** Absent: it goes on. */
  endedAt?: number
  record: boolean
  models?: readonly string[]
  total: number
  passed: number
  failed: number
  /** Not done when it was stopped. */
  stopped: number
  /** The ids of the cases that run now. */
  running: string[]
  /** Its server ended before it did. */
  isInterrupted?: true
  /** Why nothing of it was run. */
  error?: string
}

export interface StartTests {
  /** Which cases, by their ids. Absent: all. */
  ids?: readonly string[] | undefined
  /** Those of these agents. */
  agents?: ReadonlySet<string> | undefined
  /** What the last run did not come to, as it was started: nothing else may be given. */
  rest?: boolean | undefined
  /** Instead of the models of the files and agents. */
  models?: readonly string[] | undefined
  /** Ask the models, run the tools, and record what they say. */
  record?: boolean | undefined
  user?: RunUser | undefined
}

export interface TestDesk {
  readonly files: CaseFiles
  /** The last one. */
  readonly run: TestsRun | undefined
  /** Keeps the results that `millrace test` has left in the data folder, and learns of a run of tests that a server has left. Never rejects. */
  takeIn(): Promise<void>
  /** Keeps results of cases that are here, as they ran elsewhere. Returns how many. */
  keep(results: readonly NewTestResult[]): Promise<number>
  /** The case that a conversation would become. Throws `bad-run`. */
  plan(logs: readonly (readonly Entry[])[], options: Omit<AddCaseOptions, 'cwd'>): PlannedCase & { id: string }
  add(logs: readonly (readonly Entry[])[], options: Omit<AddCaseOptions, 'cwd'>): FoundCase
  /** Its recordings and results follow. Returns its new id. */
  rename(found: FoundCase, name: string): Promise<string>
  /** Deletes a case and its results. */
  remove(found: FoundCase): Promise<void>
  /** Throws `tests-running` while others run, and `no-tests`. */
  start(options: StartTests): TestsRun
  /** False if nothing runs. */
  stop(): boolean
  /** Calls back after each change of `run`. Returns a function that unsubscribes. */
  onChange(listener: () => void): () => void
  /** Stops the tests and waits for them. */
  close(): Promise<void>
}

interface Chosen {
  wanted: CaseFile[]
  runs: PlannedRun[]
  idOf(run: CaseRun): string
  only: ((run: CaseRun) => boolean) | undefined
}

export interface TestDeskOptions extends Omit<TestRuntimeOptions, 'cwd'> {
  store: Store
  /** Where `millrace test` leaves its results. */
  data?: string | undefined
  onError: (error: unknown) => void
  /** How many cases run at the same time. Default: one for each CPU, as `millrace test` does. */
  concurrency?: number
}

export function openTestDesk({ store, data, onError, concurrency, ...options }: TestDeskOptions): TestDesk {
  const agents = resolve(options.dir)
  const cwd = dirname(agents)
  const dir = casesFolder(basename(agents))
  const files = openCaseFiles(cwd, dir)
  const listeners = new Set<() => void>()
  let run: TestsRun | undefined
  let stopping = new AbortController()
  let working: Promise<void> = Promise.resolve()
  let taking: Promise<void> = Promise.resolve()
  /** What the last run has not done. */
  let left: PlannedRun[] = []
  let isRestored = false
  let isClosing = false

  function tell(): void {
    for (const listener of listeners) listener()
  }

  const keyOf = ({ test, model }: PlannedRun) => `${model ?? ''} ${test}`

  function chosen({ ids, agents: of, models }: StartTests, rest: PlannedRun[] | undefined): Chosen {
    const known = files.read().cases
    const all = new Set(known.map(({ id }) => id))
    for (const id of ids ?? []) if (!all.has(id)) files.find(id)
    const left = rest && new Set(rest.map(keyOf))
    const isWanted = ({ id, file }: FoundCase) =>
      (ids === undefined || ids.includes(id)) && (of === undefined || of.has(file.agent))
    const wanted = [...Map.groupBy(known.filter(isWanted), ({ file }) => file)].map(([file, found]) => ({
      ...file,
      cases: found.map(({ test }) => test),
    }))
    const names = new Map(known.map(({ id, test }) => [test, id]))
    const planned = ({ test, model }: CaseRun) => omitUndefined({ test: names.get(test)!, model })
    const only = left && ((each: CaseRun) => left.has(keyOf(planned(each))))
    const runs = casesOf({ files: wanted, filter: undefined, models, only }).map(planned)
    return { wanted, runs, idOf: ({ test }) => names.get(test)!, only }
  }

  /** A data folder that cannot be written stops no tests. */
  function planOf(change: () => void): void {
    if (data === undefined) return
    try {
      change()
    } catch (error) {
      onError(error)
    }
  }

  function refuseWhileRunning(): void {
    if (run === undefined || run.endedAt !== undefined) return
    const message = `Tests are running: ${run.passed + run.failed} of ${run.total} are done. Wait for them, or stop them.`
    throw new MillraceError('tests-running', message, { retryAfter: 5 })
  }

  async function work(state: TestsRun, { wanted, idOf, only }: Chosen, given: StartTests): Promise<void> {
    const { signal } = stopping
    const { models } = state
    const lastRuns = new Map<CaseRun, string>()
    const saving: Promise<void>[] = []
    const save = (what: Promise<unknown> | undefined) => void (what && saving.push(what.then(() => undefined, onError)))

    function onResult(result: CaseResult, each: CaseRun): void {
      state.running = state.running.filter((id) => id !== idOf(each))
      state[result.status]++
      if (result.status !== 'stopped') {
        left = left.filter((run) => keyOf(run) !== keyOf(omitUndefined({ test: idOf(each), model: each.model })))
      }
      const about = { test: idOf(each), agent: each.file.agent, time: timeOf(store), user: state.user }
      const row = resultRow({ ...about, run: lastRuns.get(each) }, result)
      save(result.status === 'stopped' ? undefined : store.testResults?.add(row))
      tell()
    }

    const testRuntime = await openTestRuntime({ ...options, dir: basename(agents), cwd })
    const [ready, faulty] = partition(wanted, (file) => agentFault(testRuntime, file) === undefined)
    for (const each of casesOf({ files: faulty, filter: undefined, models, only })) {
      const message = agentFault(testRuntime, each.file)!
      onResult(notRun(each, message), each)
    }
    await runCases({
      testRuntime,
      files: ready,
      models,
      only,
      record: state.record,
      concurrency: concurrency ?? availableParallelism(),
      signal,
      keep: (each, made) => keepRecordings(cwd, each, made),
      onStart(each) {
        state.running.push(idOf(each))
        tell()
      },
      onRun({ which, entries, recorded }, each) {
        // What asked a model is a run like others; what was answered from a recording is that recording.
        if (recorded === undefined) save(keepRun(store, entries, { user: given.user, thread: `tests/${idOf(each)}` }))
        const start = (recorded ?? entries)[0]
        if (which.judge !== true && start?.type === 'run-start') lastRuns.set(each, start.runId)
      },
      onResult,
    })
    await Promise.all(saving)
  }

  async function keep(results: readonly NewTestResult[]): Promise<number> {
    const { testResults } = store
    if (testResults === undefined || results.length === 0) return 0
    const known = new Map(files.read().cases.map(({ id, file }) => [id, file.agent]))
    const now = timeOf(store)
    let kept = 0
    for (const row of results) {
      const agent = known.get(row.test)
      if (agent === undefined || row.status === 'stopped') continue
      const given = { ...row, agent, time: Math.min(row.time, now) }
      // A server that ended between keeping them and deleting their file reads them again.
      if ((await testResults.of(row.test)).some((each) => isSame(each, given))) continue
      await testResults.add(given)
      kept++
    }
    return kept
  }

  /** A run of tests that a server has left when it was killed. */
  async function restore(): Promise<void> {
    if (isRestored || data === undefined) return
    isRestored = true
    const plan = run === undefined ? readPlan(data, agents) : undefined
    if (plan === undefined) return
    const found = await outcomeOf(plan, (test) => store.testResults?.of(test) ?? Promise.resolve([]))
    // Somebody may have started others meanwhile.
    if (run !== undefined) return
    ;({ run, left } = found)
  }

  async function take(): Promise<void> {
    if (data === undefined) return
    await restore()
    for (const { path, results } of readLeftResults(data, agents, onError)) {
      await keep(results)
      rmSync(path, { force: true })
    }
  }

  return {
    files,
    get run() {
      return run
    },
    takeIn: () => (taking = taking.then(take).catch(onError)),
    keep,
    plan(logs, more) {
      const planned = planCase(dir, logs, { ...more, cwd })
      return { ...planned, id: idOfPlanned(dir, planned) }
    },
    add(logs, more) {
      const { file, test } = changing(dir, () => addCase(dir, logs, { ...more, cwd }))
      return files.read().cases.find((each) => each.file.path === file.path && each.test.slug === test.slug)!
    },
    async rename(found, name) {
      refuseWhileRunning()
      const id = files.rename(found, name)
      if (id !== found.id) await store.testResults?.rename(found.id, id)
      return id
    },
    async remove(found) {
      refuseWhileRunning()
      files.remove(found)
      await store.testResults?.forget(found.id)
    },
    start(given) {
      refuseWhileRunning()
      const { rest = false, user } = given
      const { record = false, models } = rest ? (run ?? {}) : given
      const what = chosen({ ...given, models }, rest ? left : undefined)
      const total = what.runs.length
      if (total === 0) {
        const message = rest ? 'Nothing is left of the last run of tests.' : 'There are no such test cases.'
        throw new MillraceError('bad-input', message)
      }
      stopping = new AbortController()
      const counts = { total, passed: 0, failed: 0, stopped: 0, running: [] }
      const about = { id: crypto.randomUUID(), user: user?.id ?? '', startedAt: timeOf(store), record, models }
      const state: TestsRun = omitUndefined({ ...about, ...counts })
      run = state
      left = what.runs
      isRestored = true
      planOf(() => writePlan(data!, agents, omitUndefined({ ...about, runs: what.runs, pid: process.pid })))
      working = work(state, what, given)
        .catch((error: unknown) => {
          state.error = error instanceof MillraceError ? wholeMessage(error) : messageOf(error)
        })
        .then(() => {
          // The next server goes on with what this one leaves.
          if (!isClosing || left.length === 0) planOf(() => removePlan(data!, agents))
          state.stopped = total - state.passed - state.failed
          state.running = []
          state.endedAt = timeOf(store)
          tell()
        })
      tell()
      return state
    },
    stop() {
      if (run === undefined || run.endedAt !== undefined) return false
      stopping.abort()
      return true
    },
    onChange(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    async close() {
      isClosing = true
      stopping.abort()
      await working
    },
  }
}

/** Two runs of a case end at the same time only if they ran at the same time, with two models. */
function isSame(a: NewTestResult, b: NewTestResult): boolean {
  return a.time === b.time && a.model === b.model && a.duration === b.duration && a.source === b.source
}

function partition<T>(all: readonly T[], isFirst: (each: T) => boolean): [T[], T[]] {
  return [all.filter(isFirst), all.filter((each) => !isFirst(each))]
}

/** Why none of its cases can be run. */
function agentFault(testRuntime: TestRuntime, { agent, path, cases }: CaseFile): string | undefined {
  try {
    checkAgentOf(testRuntime, agent, path)
    for (const { turns } of cases)
      for (const { expect } of turns) if (expect.judge) checkAgentOf(testRuntime, expect.judge.agent, path)
    return undefined
  } catch (error) {
    return messageOf(error)
  }
}

function notRun({ file, test, model }: CaseRun, message: string): CaseResult {
  const counts = { usage: noUsage, cost: 0, isLive: false, duration: 0 }
  const about = { file: file.path, line: test.line, name: test.name, model, status: 'failed' as const }
  return omitUndefined({ ...about, ...counts, failures: [{ what: 'run', message }], warnings: [] })
}

/** Characters of entries that a store takes at once. */
const mostAtOnce = 4_000_000

/** A run of an agent that its test has started, as one of this store. Those of a case are one conversation, which is its owner's. */
async function keepRun(
  store: Store,
  entries: readonly Entry[],
  { user, thread }: { user: RunUser | undefined; thread: string },
): Promise<void> {
  const [start, ...rest] = entries
  if (start?.type !== 'run-start') return
  const all: Entry[] = [{ ...start, threadId: scopedThread(thread, user), ...(user && { user }) }, ...rest]
  // A server that is killed in between would leave a run that nobody ends.
  const bytes = all.reduce((sum, entry) => sum + JSON.stringify(entry).length, 0)
  const atOnce = bytes > mostAtOnce ? 500 : all.length
  for (let at = 0; at < all.length; at += atOnce) await store.log.append(start.runId, 1, all.slice(at, at + atOnce))
}

function idOfPlanned(dir: string, { target, test }: PlannedCase): string {
  return `${target.slice(dir.length + 1).replace(/\.ya?ml$/u, '')}/${test.slug}`
}
