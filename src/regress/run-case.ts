/** Runs one case, with one model: its turns one after the other, and what is expected of each. */
import { randomUUID } from 'node:crypto'
import { resolve } from 'node:path'
import { compact } from '../part/compact.ts'
import type { Entry } from '../part/entry.ts'
import { messageOf } from '../part/error.ts'
import type { Outcome } from '../part/part.ts'
import { recordedEntries } from '../part/recording.ts'
import { addUsage, noUsage, type Usage } from '../part/usage.ts'
import { createRecordingModel } from '../models/recording.ts'
import { askJudge } from './ask-judge.ts'
import { checkFacts } from './check-facts.ts'
import { comparePrompts } from './compare-prompts.ts'
import { factsOf, type Facts } from './facts.ts'
import type { Failure } from './failure.ts'
import { followTurn, type TurnRun } from './follow-turn.ts'
import { openBench, type Bench, type Lab } from './lab.ts'
import { loadRecording, recordingFile, saveRecording, type RunOfCase } from './recording-files.ts'
import type { Tape } from './recorded-registry.ts'
import type { CaseFile, TestCase, Turn } from './test-case.ts'

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

export interface RunCaseOptions {
  /** Ask the real models, run the real tools, and keep what they said. */
  record: boolean
  signal: AbortSignal
}

const stopCodes: ReadonlySet<string> = new Set(['recording-over'])

/** Never rejects. */
export async function runCase(lab: Lab, run: CaseRun, { record, signal }: RunCaseOptions): Promise<CaseResult> {
  const { file, test, model } = run
  const began = performance.now()
  const failures: Failure[] = []
  const warnings: string[] = []
  const all: Facts[] = []
  const judges = new Set(test.turns.flatMap(({ expect: { judge } }) => judge?.agent ?? []))
  const end = AbortSignal.any([signal, AbortSignal.timeout(file.timeout)])
  let bench: Bench | undefined
  try {
    bench = openBench(lab, { plays: !record, live: record || test.tools === 'live', model, judges })
    const threadId = `thread_${randomUUID().replaceAll('-', '')}`
    for (const [turn, given] of test.turns.entries()) {
      const player = createPlayer(lab, bench, run, record)
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
      if (failures.length > 0) break
    }
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
  return compact({
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

function createPlayer({ options }: Lab, bench: Bench, { file, test, model }: CaseRun, record: boolean): CasePlayer {
  let seconds: number | undefined
  return {
    async play(which, run, expected) {
      const path = recordingFile(file.path, test, model, which)
      const place = resolve(options.cwd ?? '', path)
      if (record) {
        const { entries, failures } = await followTurn(bench.runtime, run)
        const end = entries.at(-1)
        // What was stopped, or failed because a model could not be reached, must not replace what is there.
        const isKept = end?.type === 'run-end' && end.outcome === expected && !run.signal.aborted
        if (isKept && failures.length === 0) saveRecording(place, entries)
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
  given: Turn
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
