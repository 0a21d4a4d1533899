/** `millrace test`: runs test cases of agents, with models answered from recordings. */
import { mkdirSync, writeFileSync, readdirSync, statSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { dirname, join } from 'node:path'
import { leave, type CommandContext } from '../context.ts'
import { MillraceError, wholeMessage, messageOf } from '../../part/error.ts'
import { parseEndpoint } from '../../project/project.ts'
import { toJunit } from '../../regress/junit.ts'
import { checkAgentOf, openTestRuntime, type TestRuntime } from '../../regress/test-runtime.ts'
import type { CaseResult } from '../../regress/run-case.ts'
import { casesOf, runCases, type CasesResult } from '../../regress/run-cases.ts'
import type { CaseFile } from '../../regress/test-case.ts'
import { checkAgents } from '../paths.ts'
import { guardRuntimes, onEnding, type Ending } from '../process-events.ts'
import { forStream, printable, paint } from '../terminal/output.ts'
import { casesFolder } from '../../regress/case-folder.ts'
import { addFromRun, findCaseFiles, readCaseFiles } from './cases.ts'
import { createResultKeeper } from './keep-results.ts'
import { createTestProgress, formatFile, formatMatrix, formatSummary, spent } from './report.ts'
import { watchFolder } from '../../project/watch-folder.ts'
import type { TestFlags } from '../commands/test.ts'

export async function runTests(context: CommandContext, paths: string[], flags: TestFlags): Promise<void> {
  const { dir, add, watch = false } = flags
  checkFlags(paths, flags)
  checkAgents(context, dir, 'run')
  const stop = new AbortController()
  let ending: Ending | undefined
  const off = onEnding(context, (how) => {
    ending = how
    stop.abort()
  })
  const guard = guardRuntimes(context)
  try {
    const testRuntime = await openTestRuntime({
      dir,
      cwd: context.path('.'),
      env: context.env,
      endpoints: flags.endpoint.map(parseEndpoint),
      ...guard,
    })
    let code: number
    if (add !== undefined)
      code = await runFiles(
        context,
        testRuntime,
        [await addFromRun(context, testRuntime, add, flags)],
        flags,
        stop.signal,
      )
    else if (watch)
      code = await watchCases(
        context,
        testRuntime,
        paths,
        () => runOnce(context, testRuntime, paths, flags, stop.signal),
        stop.signal,
      )
    else code = await runOnce(context, testRuntime, paths, flags, stop.signal)
    const exitCode = ending?.code ?? code
    await leave(context, exitCode)
  } finally {
    off()
    guard.release()
  }
}

function checkFlags(
  paths: readonly string[],
  { add, name, trust, record, watch, json, model, filter }: TestFlags,
): void {
  const refuse = (message: string) => {
    throw new MillraceError('usage', message)
  }
  if (add === undefined && name !== undefined) refuse('--name is the name of an added case: use it with --add.')
  if (add === undefined && trust) refuse('--trust is for the run of --add.')
  const others = { paths: paths.length > 0, '--record': record, '--watch': watch, '--model': model, '--filter': filter }
  const other = Object.entries(others).find(([, given]) => given)?.[0]
  if (add !== undefined && other !== undefined) refuse(`--add cannot be combined with ${other}: it runs its own case.`)
  if (watch && (record || json)) refuse(`--watch cannot be combined with ${record ? '--record' : '--json'}.`)
}

async function runOnce(
  context: CommandContext,
  testRuntime: TestRuntime,
  paths: string[],
  flags: TestFlags,
  signal: AbortSignal,
): Promise<number> {
  const files = readCaseFiles(context, findCaseFiles(context, paths, flags.dir))
  return runFiles(context, testRuntime, files, flags, signal)
}

async function runFiles(
  context: CommandContext,
  testRuntime: TestRuntime,
  files: CaseFile[],
  flags: TestFlags,
  signal: AbortSignal,
): Promise<number> {
  const { filter, record = false, bail = false, json = false, junit } = flags
  const models = flags.model?.split(',').map((each) => each.trim())
  for (const { agent, path, cases } of files) {
    checkAgentOf(testRuntime, agent, path)
    for (const { turns } of cases)
      for (const { expect } of turns) if (expect.judge) checkAgentOf(testRuntime, expect.judge.agent, path)
  }
  const began = performance.now()
  const wanted = casesOf({ files, filter, models })
  if (wanted.length === 0) throw new MillraceError('usage', `No case has a name with "${filter}".`)
  const progress = createTestProgress(context, wanted.length)
  const left = new Map(files.map(({ path }) => [path, wanted.filter(({ file }) => file.path === path).length]))
  const done: CaseResult[] = []
  const keeper = createResultKeeper(context, testRuntime, flags)

  /** Prints a file once all its cases are there. */
  function print(path: string): void {
    const results = done.filter(({ file }) => file === path)
    if (json || results.length === 0) return
    progress.clear()
    context.stdout.write(formatFile(context, path, inOrder(results)))
  }

  const outcome = await runCases({
    testRuntime,
    files,
    filter,
    models,
    record,
    bail,
    signal,
    concurrency: concurrencyOf(flags),
    onStart: ({ test, model }) => progress.start(test.name, model),
    onRun: keeper.onRun,
    onResult(result, run) {
      done.push(result)
      keeper.add(result, run)
      progress.done(result)
      left.set(result.file, left.get(result.file)! - 1)
      if (left.get(result.file) === 0) print(result.file)
    },
  })
  progress.clear()
  for (const [path, count] of left) if (count > 0) print(path)
  const ms = performance.now() - began
  await keeper.keep()
  if (junit !== undefined) writeJunit(context, junit, outcome)
  if (json) context.stdout.write(`${forStream(JSON.stringify(toJson(outcome, ms), null, 2), context.stdout)}\n`)
  else
    context.stdout.write(
      (formatMatrix(outcome.results) ?? '') + formatSummary(context, outcome.results, outcome.skipped, ms),
    )
  return outcome.skipped > 0 || outcome.results.some(({ status }) => status !== 'passed') ? 1 : 0
}

function inOrder(results: readonly CaseResult[]): CaseResult[] {
  return results.toSorted((a, b) => a.line - b.line)
}

function concurrencyOf({ concurrency }: TestFlags): number {
  if (concurrency === undefined) return availableParallelism()
  const count = Number(concurrency)
  if (Number.isInteger(count) && count >= 1 && count <= 1000) return count
  throw new MillraceError('usage', `--concurrency must be a number from 1 to 1000, not "${concurrency}".`)
}

function writeJunit(context: CommandContext, file: string, { results }: CasesResult): void {
  mkdirSync(context.path(dirname(file)), { recursive: true })
  writeFileSync(context.path(file), toJunit(results))
}

function toJson({ results, skipped }: CasesResult, ms: number) {
  const count = (status: CaseResult['status']) => results.filter((each) => each.status === status).length
  const { usage, cost } = spent(results)
  const counts = { passed: count('passed'), failed: count('failed'), stopped: count('stopped'), skipped }
  return { ...counts, duration: Math.round(ms), spent: { tokens: usage?.totalTokens ?? 0, usd: cost ?? null }, results }
}

/** ms: one save causes several events. */
const settleTime = 50

/**
 * `--watch`: runs the cases again when an agent, a prompt file or a case changes. Resolves when the signal aborts, with the code of the
 * last run.
 */
async function watchCases(
  context: CommandContext,
  testRuntime: TestRuntime,
  paths: readonly string[],
  run: () => Promise<number>,
  signal: AbortSignal,
): Promise<number> {
  const { dir } = testRuntime.options
  const roots =
    paths.length > 0 ? paths.map((path) => (isFolder(context, path) ? path : dirname(path))) : [casesFolder(dir)]
  let code = 0
  let changed = Promise.withResolvers<void>()
  let timer: ReturnType<typeof setTimeout> | undefined
  const report = () => {
    clearTimeout(timer)
    timer = setTimeout(() => changed.resolve(), settleTime)
  }
  signal.addEventListener('abort', () => changed.resolve(), { once: true })
  testRuntime.agents.watch(report, (file) =>
    say(context, `${file} is read at the start: start again to use what is new in it`),
  )
  const watched = new Map<string, () => void>()
  while (!signal.aborted) {
    changed = Promise.withResolvers()
    // Folders may have been added.
    for (const folder of roots.flatMap((root) => foldersIn(context, root))) {
      if (!watched.has(folder))
        watched.set(
          folder,
          watchFolder(context.path(folder), (file) => isCase(file) && report()),
        )
    }
    code = await run().catch((error: unknown) => {
      say(context, error instanceof MillraceError ? wholeMessage(error) : messageOf(error))
      return 2
    })
    if (signal.aborted) break
    say(context, 'waiting for changes (Ctrl-C to stop)')
    await changed.promise
  }
  clearTimeout(timer)
  for (const stop of watched.values()) stop()
  testRuntime.agents.close()
  return code
}

function say(context: CommandContext, text: string): void {
  context.stderr.write(`${paint(context, 'dim', printable(text), context.stderr)}\n`)
}

function isCase(file: string | null): boolean {
  return file === null || /\.ya?ml$|\.ndjson$/u.test(file)
}

function isFolder(context: CommandContext, path: string): boolean {
  return statSync(context.path(path), { throwIfNoEntry: false })?.isDirectory() === true
}

function foldersIn(context: CommandContext, dir: string): string[] {
  if (!isFolder(context, dir)) return []
  const inside = readdirSync(context.path(dir), { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isDirectory())
    .map(({ parentPath, name }) => join(parentPath, name))
  return [dir, ...inside.filter((each) => !each.includes('node_modules'))]
}
