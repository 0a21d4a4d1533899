/** Runs one case, with one model: its turns one after the other, with their expectations. */
import { randomUUID } from 'node:crypto'
import { resolve } from 'node:path'
import { omitUndefined } from '../part/omit-undefined.ts'
import type { Entry, EntryOf } from '../part/entry.ts'
import { messageOf } from '../part/error.ts'
import type { Outcome } from '../part/part.ts'
import { recordedEntries } from '../part/recording.ts'
import { addUsage, noUsage, type Usage } from '../part/usage.ts'
import { createRecordingModel } from '../models/recording.ts'
import { checkFacts } from './check-facts.ts'
import { comparePrompts } from './compare-prompts.ts'
import { factsOf, type Facts, jsonIn } from './facts.ts'
import type { Failure } from '../part/test-result.ts'
import { openBench, type Bench, type TestRuntime } from './test-runtime.ts'
import { loadRecording, recordingFile, saveRecording, type RunOfCase } from './recording-files.ts'
import type { Tape } from './recorded-registry.ts'
import type { CaseFile, TestCase, TestTurn, Expectation, GivenAnswer } from './test-case.ts'
import { messagesOf } from '../part/message.ts'
import { textOf } from '../fold/run-view.ts'
import { isMap } from '../pipeline/scalars.ts'
import type { Reply } from '../part/request-part.ts'
import type { Run, Runtime, StartOptions } from '../runtime/runtime.ts'

/** A case and the model that it is run with, if not those of its agent. */
export interface CaseRun {
  file: CaseFile
  test: TestCase
  model?: string | undefined
}

export interface CaseResult {
  file: string
  line: number
  name: string
  model?: string
  status: 'passed' | 'failed' | 'stopped'
  failures: Failure[]
  warnings: string[]
  /** Usage and cost of its runs: as recorded, or spent now. */
  usage: Usage
  cost?: number
  /** The models were asked. */
  isLive: boolean
  /** ms that it took. */
  duration: number
}

/** What a model has said for a run of a case. */
export interface RecordedRun {
  which: RunOfCase
  entries: readonly Entry[]
}

export interface RunCaseOptions {
  /** Ask the real models, run the real tools, and record their output. */
  record: boolean
  signal: AbortSignal
  /** Keeps what was recorded, at the end of the case. Default: it replaces the recordings. */
  keep?: ((run: CaseRun, made: readonly RecordedRun[]) => void) | undefined
  /** Called after each run of the case, in order. `recorded`: what it was answered from. */
  onRun?(run: { which: RunOfCase; entries: Entry[]; recorded?: readonly Entry[] }): void
}

const stopCodes: ReadonlySet<string> = new Set(['recording-over'])

/** Never rejects. */
export async function runCase(testRuntime: TestRuntime, run: CaseRun, options: RunCaseOptions): Promise<CaseResult> {
  const { record, signal } = options
  const { file, test, model } = run
  const began = performance.now()
  const failures: Failure[] = []
  const warnings: string[] = []
  const all: Facts[] = []
  const judges = new Set(test.turns.flatMap(({ expect: { judge } }) => judge?.agent ?? []))
  const end = AbortSignal.any([signal, AbortSignal.timeout(file.timeout)])
  const made: RecordedRun[] = []
  const { keep = (of, recorded) => replaceRecordings(testRuntime, of, recorded) } = options
  let bench: Bench | undefined
  try {
    bench = openBench(testRuntime, { plays: !record, live: record || test.tools === 'live', model, judges })
    const threadId = `thread_${randomUUID().replaceAll('-', '')}`
    for (const [turn, given] of test.turns.entries()) {
      const player = createPlayer(testRuntime, bench, run, { ...options, made })
      const played = {
        agent: file.agent,
        input: given.input,
        answers: given.answers,
        options: { threadId, protocol: 'test', history: 'server' },
        signal: end,
      } as const
      const { entries, ...found } = await player.play({ turn }, played, given.expect.outcome)
      failures.push(...found.failures)
      warnings.push(...found.warnings)
      if (entries.length === 0 || end.aborted) break
      const facts = factsOf(entries)
      const counted = player.counted(facts)
      all.push(counted)
      if (found.failures.length > 0) break
      failures.push(...named(checkFacts(given.expect, counted), turn, test))
      const judged = await judge(player, { turn, given, facts, signal: end })
      failures.push(...named(judged.failures, turn, test))
      warnings.push(...judged.warnings)
      all.push(...judged.facts)
      // The recordings of all turns belong together.
      if (failures.length > 0 && !record) break
    }
    if (made.length > 0) keep(run, made)
  } catch (error) {
    failures.push({ what: 'run', message: messageOf(error) })
  } finally {
    await bench?.close().catch(() => undefined)
  }
  if (end.aborted && !signal.aborted)
    failures.push({ what: 'run', message: `the case took longer than ${file.timeout} ms` })
  if (test.strict)
    failures.push(...warnings.splice(0).map((message) => ({ what: 'prompt', message: `${message}; ${again}` })))
  const costs = all.map(({ cost }) => cost)
  return omitUndefined({
    file: file.path,
    line: test.line,
    name: test.name,
    model,
    status: signal.aborted ? 'stopped' : failures.length > 0 ? 'failed' : 'passed',
    failures,
    warnings,
    usage: all.reduce<Usage | undefined>((sum, { usage }) => addUsage(sum, usage), undefined) ?? noUsage,
    cost: costs.reduce<number | undefined>(
      (sum, cost) => (sum === undefined || cost === undefined ? undefined : sum + cost),
      0,
    ),
    isLive: record,
    duration: Math.round(performance.now() - began),
  })
}

function replaceRecordings(
  { options }: TestRuntime,
  { file, test, model }: CaseRun,
  made: readonly RecordedRun[],
): void {
  for (const { which, entries } of made) {
    saveRecording(resolve(options.cwd ?? '', recordingFile(file.path, test, model, which)), entries)
  }
}

const again = 'record it again with --record'

function named(failures: Failure[], turn: number, { turns }: TestCase): Failure[] {
  return turns.length === 1
    ? failures
    : failures.map((each) => ({ ...each, message: `turn ${turn + 1}: ${each.message}` }))
}

interface Played {
  entries: Entry[]
  failures: Failure[]
  warnings: string[]
}

interface CasePlayer {
  /** Runs it with its recording, or records it. */
  play(which: RunOfCase, run: TurnRun, expected: Outcome): Promise<Played>
  /** The facts with the time that the recorded run took. */
  counted(facts: Facts): Facts
}

function createPlayer(
  { options }: TestRuntime,
  bench: Bench,
  { file, test, model }: CaseRun,
  { record, onRun = () => undefined, made }: RunCaseOptions & { made: RecordedRun[] },
): CasePlayer {
  let seconds: number | undefined
  return {
    async play(which, run, expected) {
      const path = recordingFile(file.path, test, model, which)
      const place = resolve(options.cwd ?? '', path)
      if (record) {
        const { entries, failures } = await followTurn(bench.runtime, run)
        onRun({ which, entries })
        const end = entries.at(-1)
        // A stopped run, or one whose model could not be reached, must not replace the recording.
        const isKept = end?.type === 'run-end' && end.outcome === expected && !run.signal.aborted
        if (isKept && failures.length === 0) made.push({ which, entries })
        return { entries, failures, warnings: [] }
      }
      const recorded = loadRecording(place)
      if (recorded === undefined) {
        return {
          entries: [],
          failures: [{ what: 'recording', message: `there is no recording ${path}; make it with --record` }],
          warnings: [],
        }
      }
      const playing = createRecordingModel(recordedEntries(path, recorded), { usage: 'recorded' })
      const tape: Tape = { entries: recorded, model: playing, missing: new Set() }
      bench.player!.insert(tape)
      const { entries, failures } = await followTurn(bench.runtime, run)
      onRun({ which, entries, recorded })
      const warnings = comparePrompts(recorded, entries)
      const end = entries.at(-1)
      if (end?.type === 'run-end' && end.error !== undefined && stopCodes.has(end.error.code)) {
        failures.push({ what: 'recording', message: `${end.error.message} If that is right, ${again}` })
      }
      for (const tool of tape.missing) {
        failures.push({
          what: 'recording',
          message: `the recording has no result for a call of ${tool}; ${again}, or set "tools: live"`,
        })
      }
      seconds = which.judge ? seconds : factsOf(recorded).seconds
      return { entries, failures, warnings }
    },
    counted: (facts) => ({ ...facts, seconds: seconds ?? facts.seconds }),
  }
}

interface Judging {
  turn: number
  given: TestTurn
  facts: Facts
  signal: AbortSignal
}

async function judge(
  player: CasePlayer,
  { turn, given, facts, signal }: Judging,
): Promise<Omit<Played, 'entries'> & { facts: Facts[] }> {
  const { judge: wanted } = given.expect
  if (wanted === undefined) return { failures: [], warnings: [], facts: [] }
  const { run, verdict } = askJudge(wanted, given.input, facts)
  const { entries, failures, warnings } = await player.play(
    { turn, judge: true },
    { ...run, answers: [], options: { protocol: 'test' }, signal },
    'completed',
  )
  if (failures.length > 0 || entries.length === 0 || signal.aborted) return { failures, warnings, facts: [] }
  const said = factsOf(entries)
  return { failures: verdict(said), warnings, facts: [said] }
}

/** A judging agent: its prompt, and the score in its answer. */
type Judge = NonNullable<Expectation['judge']>

interface Question {
  run: { agent: string; input: Record<string, unknown> }
  verdict(facts: Facts): Failure[]
}

/** The judge’s `$input` has the question, the user’s message, the answer and the output, and all of them as one message. */
function askJudge(
  { agent, threshold, question = defaultQuestion }: Judge,
  input: Record<string, unknown>,
  facts: Facts,
): Question {
  const asked = messagesOf(input).map(textOf).join('\n')
  const { text: answer, output } = facts
  const said = answer === '' ? JSON.stringify(output ?? null) : answer
  const content = `${question}\n\n<message>\n${asked}\n</message>\n\n<answer>\n${said}\n</answer>`
  return {
    run: {
      agent,
      input: { question, message: asked, answer: said, output: output ?? null, messages: [{ role: 'user', content }] },
    },
    verdict({ outcome, error, text, output: judged }) {
      const why = error === undefined ? '' : `: ${error.message}`
      if (outcome !== 'completed') return [{ what: 'judge', message: `the judge ${agent} ended as ${outcome}${why}` }]
      const score = scoreOf(judged) ?? scoreOf(jsonIn(text))
      if (score === undefined) {
        return [
          {
            what: 'judge',
            message: `the judge ${agent} gave no score: its output must be a number or have a number "score"`,
            got: judged ?? text,
          },
        ]
      }
      if (score >= threshold) return []
      const reason = isMap(judged) && typeof judged['reason'] === 'string' ? `: ${judged['reason']}` : ''
      return [
        {
          what: 'judge',
          message: `the judge ${agent} gave ${score}, less than ${threshold}${reason}`,
          expected: threshold,
          got: score,
        },
      ]
    },
  }
}

const defaultQuestion = 'How good is this answer? Give a score from 0 to 1.'

function scoreOf(value: unknown): number | undefined {
  const found = isMap(value) ? value['score'] : value
  return typeof found === 'number' && Number.isFinite(found) ? found : undefined
}

/** One run of a case: starts it, answers its requests, and reads its log to the end. */
interface TurnRun {
  agent: string
  input: Record<string, unknown>
  answers: readonly GivenAnswer[]
  options: StartOptions
  /** Ends the run. */
  signal: AbortSignal
}

interface TurnLog {
  entries: Entry[]
  failures: Failure[]
}

/** Never rejects: a run that cannot be started is a failure without entries. */
async function followTurn(runtime: Runtime, { agent, input, answers, options, signal }: TurnRun): Promise<TurnLog> {
  const log: TurnLog = { entries: [], failures: [] }
  let run: Run
  try {
    run = await runtime.start(agent, input, options)
  } catch (error) {
    return { entries: [], failures: [{ what: 'run', message: `the run cannot be started: ${messageOf(error)}` }] }
  }
  const stop = () => void run.stop('The test was stopped.').catch(() => undefined)
  signal.addEventListener('abort', stop, { once: true })
  if (signal.aborted) stop()
  const choose = createAnswers(answers)
  for await (const entry of run.parts) {
    log.entries.push(entry)
    if (entry.type !== 'request') continue
    const answer = choose(entry)
    const fault = answer === undefined ? missing(entry) : await give(run, entry, answer)
    if (fault === undefined) continue
    log.failures.push(fault)
    stop()
  }
  signal.removeEventListener('abort', stop)
  return log
}

/** In order; the last one that fits answers further requests as well. */
function createAnswers(answers: readonly GivenAnswer[]): (request: EntryOf<'request'>) => GivenAnswer | undefined {
  const used = new Set<GivenAnswer>()
  return ({ kind, toolName }) => {
    const fitting = answers.filter((each) => each.kind === kind && (each.tool === undefined || each.tool === toolName))
    const found = fitting.find((each) => !used.has(each)) ?? fitting.at(-1)
    if (found !== undefined) used.add(found)
    return found
  }
}

async function give(run: Run, { requestId }: EntryOf<'request'>, given: GivenAnswer): Promise<Failure | undefined> {
  try {
    const { tool: _, ...answer } = given
    await run.answer(requestId, answer as Reply)
    return undefined
  } catch (error) {
    return { what: 'answer', message: `an answer was refused: ${messageOf(error)}` }
  }
}

function missing(request: EntryOf<'request'>): Failure {
  const { kind, toolName } = request
  const message = request.kind === 'input' ? request.message : undefined
  const cures = {
    approval: ['approval of', `- { tool: ${toolName}, approve: true }`],
    tool: ['the result of', `- { tool: ${toolName}, output: … }`],
    input: ['a value for', '- { value: … }'],
  } as const
  const [what, cure] = cures[kind]
  return {
    what: 'answer',
    message: `the run asks for ${what} ${toolName ?? message ?? 'a step'}; add to answers: ${cure}`,
  }
}
