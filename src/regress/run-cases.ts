/** Runs many cases at the same time, each in a runtime of its own. */
import type { CaseFile } from './test-case.ts'
import type { TestRuntime } from './test-runtime.ts'
import { runCase, type CaseResult, type CaseRun, type RunCaseOptions } from './run-case.ts'

export interface RunCasesOptions {
  testRuntime: TestRuntime
  files: readonly CaseFile[]
  /** Ask the real models and record their output. */
  record?: boolean
  /** How many cases run at the same time. */
  concurrency: number
  /** Start no further case after the first failure. */
  bail?: boolean
  /** Only cases whose name contains this text, in any case. */
  filter?: string | undefined
  /** Instead of the models of the files. */
  models?: readonly string[] | undefined
  /** Only these. */
  only?: ((run: CaseRun) => boolean) | undefined
  /** Stops the cases that are running and starts no others. */
  signal: AbortSignal
  /** See {@link RunCaseOptions.keep}. */
  keep?: RunCaseOptions['keep']
  /** Called when a case begins. */
  onStart?(run: CaseRun): void
  /** Called with each result, as they come. */
  onResult?(result: CaseResult, run: CaseRun): void
  /** Called after each run of a case. */
  onRun?(run: Parameters<NonNullable<RunCaseOptions['onRun']>>[0], of: CaseRun): void
}

export interface CasesResult {
  /** In the order of the files. */
  results: CaseResult[]
  /** Cases that were not started. */
  skipped: number
}

/** Each case with each model. */
export function casesOf({
  files,
  filter,
  models,
  only = () => true,
}: Pick<RunCasesOptions, 'files' | 'filter' | 'models' | 'only'>): CaseRun[] {
  const words = filter?.toLowerCase()
  const all = files.flatMap((file) =>
    file.cases
      .filter(({ name }) => words === undefined || name.toLowerCase().includes(words))
      .flatMap((test): CaseRun[] => {
        const wanted = models ?? file.models
        return wanted === undefined ? [{ file, test }] : wanted.map((model) => ({ file, test, model }))
      }),
  )
  return all.filter(only)
}

export async function runCases(options: RunCasesOptions): Promise<CasesResult> {
  const { testRuntime, record = false, concurrency, bail = false, signal, keep, onStart, onResult, onRun } = options
  const runs = casesOf(options)
  const results: (CaseResult | undefined)[] = runs.map(() => undefined)
  let next = 0
  let isOver = false

  async function work(): Promise<void> {
    while (next < runs.length && !isOver && !signal.aborted) {
      const at = next++
      const run = runs[at]!
      onStart?.(run)
      const result = await runCase(testRuntime, run, { record, signal, keep, onRun: (each) => onRun?.(each, run) })
      results[at] = result
      if (bail && result.status === 'failed') isOver = true
      onResult?.(result, run)
    }
  }

  await Promise.all(Array.from({ length: Math.min(concurrency, runs.length) }, work))
  const done = results.filter((result) => result !== undefined)
  return { results: done, skipped: runs.length - done.length }
}
