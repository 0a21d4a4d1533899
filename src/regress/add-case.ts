/** Writes a case into a file of cases: at its end, or into a new file. */
import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Entry, EntryOf } from '../part/entry.ts'
import { MillraceError } from '../part/error.ts'
import type { RunStatus } from '../part/log.ts'
import { agentIdFault } from '../pipeline/names.ts'
import { child } from '../pipeline/check.ts'
import { createFaultCollector } from '../pipeline/fault.ts'
import { parseTree } from '../pipeline/tree.ts'
import { changeFile } from './change-file.ts'
import { readCases, slugOf } from './read-cases.ts'
import { largestCaseFile } from './case-folder.ts'
import { recordingFile, saveRecording } from './recording-files.ts'
import type { CaseFile, TestCase } from './test-case.ts'
import { dump } from 'js-yaml'
import { omitUndefined } from '../part/omit-undefined.ts'
import { messagesOf } from '../part/message.ts'
import { factsOf } from './facts.ts'
import { startSince } from '../fold/start-since.ts'

export interface AddedCase {
  file: CaseFile
  test: TestCase
  /** The run had YAML of its own; the case plays the agent’s file. */
  ownPipeline: boolean
}

export interface AddCaseOptions {
  name?: string | undefined
  /** Folder that `dir` is relative to. */
  cwd: string
  /** What the case checks. Default: that everything is as recorded. */
  check?: WantedCheck | undefined
}

export interface WantedCheck {
  /** What must hold for the answer. `text`: default the recorded one. */
  answer?: { is: AnswerCheck; text?: string | undefined } | undefined
  /** false: it may call other tools. */
  tools?: boolean | undefined
  /** A changed prompt is a failure. */
  strict?: boolean | undefined
}

export const answerChecks = ['equals', 'contains', 'not', 'any'] as const
export type AnswerCheck = (typeof answerChecks)[number]

/** A case that could be written. */
export interface PlannedCase extends AddedCase {
  /** The path of its file, and the text that it will have. */
  target: string
  text: string
  /** The text of the file as it is; undefined if there is none. */
  before: string | undefined
}

/** `dir`: the folder of cases. Throws for runs that cannot be repeated. Writes nothing. */
export function planCase(
  dir: string,
  logs: readonly (readonly Entry[])[],
  { name, cwd, check = {} }: AddCaseOptions,
): PlannedCase {
  const texts = new Map<string, string | undefined>()
  const textOf = (path: string) => {
    const place = resolve(cwd, path)
    if (!texts.has(place)) texts.set(place, existsSync(place) ? readFileSync(place, 'utf8') : undefined)
    return texts.get(place)
  }
  const { agent, title, value, ownPipeline } = caseOfRuns(logs, check)
  // It becomes the name of a file.
  const fault = agentIdFault(agent)
  if (fault !== undefined) throw new MillraceError('bad-run', `The agent of the run ${fault}.`)
  const wanted = name ?? (title.replaceAll(/\s+/gu, ' ').trim().slice(0, 60) || 'case')
  const textAt = (target: string): string => {
    const before = textOf(target)
    const taken = before === undefined ? [] : readCases(before, target).cases
    const named = { name: uniqueName(wanted, taken), ...value }
    if (before === undefined) return `${head}agent: ${agent}\ncases:\n${caseYaml(named, '  ')}`
    return `${before.trimEnd()}\n${caseYaml(named, indentIn(before)!)}`
  }
  const path = [join(dir, `${agent}.yaml`), join(dir, `${agent}-${slugOf(wanted)}.yaml`)].find(
    (each) => fits(textOf(each), each, agent) && isReadable(textAt(each)),
  )
  const target = path ?? freePath(dir, agent, textOf)
  const text = textAt(target)
  if (!isReadable(text)) {
    const size = `more than ${largestCaseFile / 1_000_000} MB`
    throw new MillraceError('bad-run', `What was said to the agent is ${size}, too long for a file of cases.`)
  }
  const file = readCases(text, target)
  const test = file.cases.at(-1)!
  return { file: { ...file, cases: [test] }, test, target, text, before: textOf(target), ownPipeline }
}

/** How often a case is planned again because another process has changed its file. */
const mostPlans = 10

/** Writes the case of {@link planCase} and its recording. */
export function addCase(dir: string, logs: readonly (readonly Entry[])[], options: AddCaseOptions): AddedCase {
  for (let n = 1; ; n++) {
    const { file, test, target, text, before, ownPipeline } = planCase(dir, logs, options)
    try {
      changeFile(resolve(options.cwd, target), before, (write) => {
        for (const [turn, entries] of logs.entries())
          saveRecording(resolve(options.cwd, recordingFile(target, test, undefined, { turn })), entries)
        write(text)
      })
      return { file, test, ownPipeline }
    } catch (error) {
      const isTaken = error instanceof MillraceError && error.code === 'tests-changed'
      if (!isTaken || n === mostPlans) throw error
    }
  }
}

const head = `# Run with: millrace test
# Models and tools are answered from the recordings beside this file. Loosen what may differ when you record again.
`

function isReadable(text: string): boolean {
  return Buffer.byteLength(text) <= largestCaseFile
}

/** Whether a case can be added at the end of the file, or there is none. */
function fits(text: string | undefined, path: string, agent: string): boolean {
  if (text === undefined) return true
  try {
    const file = readCases(text, path)
    return file.agent === agent && file.models === undefined && indentIn(text) !== undefined
  } catch {
    return false
  }
}

/** The text before the dashes of its cases; undefined if they are not its last key, or not one below the other. */
function indentIn(text: string): string | undefined {
  const root = parseTree(text, createFaultCollector(text))
  if (root?.kind !== 'map' || [...root.entries.keys()].at(-1) !== 'cases') return undefined
  const list = child(root, 'cases')!
  const line = text.slice(text.lastIndexOf('\n', list.at) + 1, list.at + 1)
  return /^ *-$/u.test(line) ? line.slice(0, -1) : undefined
}

function freePath(dir: string, agent: string, textOf: (path: string) => string | undefined): string {
  for (let n = 2; ; n++) {
    const path = join(dir, `${agent}-${n}.yaml`)
    if (textOf(path) === undefined) return path
  }
}

function uniqueName(wanted: string, taken: readonly TestCase[]): string {
  const isFree = (name: string) => !taken.some(({ slug }) => slug === slugOf(name))
  if (isFree(wanted)) return wanted
  for (let n = 2; ; n++) {
    const name = numbered(wanted, n)
    if (isFree(name)) return name
  }
}

/** Shortened until the number is in the name of its files, too. */
function numbered(wanted: string, n: number): string {
  for (let letters = [...wanted]; ; letters = letters.slice(0, -8)) {
    const name = `${letters.join('').trimEnd()} ${n}`.trimStart()
    if (slugOf(name).split('-').at(-1) === String(n)) return name
  }
}

/* A recorded run, with the runs of its thread that it continues, as a case: its input, the answers it got, and what it came to. */

/** Longer texts are not written into the case as a whole. */
const longest = 4000

interface RunCase {
  agent: string
  /** The user’s last message, for a name. */
  title: string
  /** The keys of the case, without its name. */
  value: Record<string, unknown>
  ownPipeline: boolean
}

/** The logs of the runs, the first of the thread first. Throws `bad-run` for one that cannot be repeated. */
function caseOfRuns(logs: readonly (readonly Entry[])[], check: WantedCheck): RunCase {
  const turns = logs.map((entries, i) => turnOf(entries, i === logs.length - 1 ? check : undefined))
  const start = startOf(logs.at(-1)!)
  const asked = messagesOf(start.input).findLast(({ role }) => role === 'user')?.content
  const title = typeof asked === 'string' ? asked : start.runId
  const strict = check.strict === true ? { strict: true } : undefined
  const { agent, ownPipeline = false } = lastStartOf(logs.at(-1)!)
  return { agent, title, value: { ...strict, ...(turns.length === 1 ? turns[0]! : { turns }) }, ownPipeline }
}

function startOf(entries: readonly Entry[]): EntryOf<'run-start'> {
  const [start] = entries
  if (start?.type !== 'run-start') throw new MillraceError('bad-run', 'The run has no entries.')
  return start
}

/** A fork may have gone on as another one. */
function lastStartOf(entries: readonly Entry[]): EntryOf<'run-start'> {
  return entries.reduce<EntryOf<'run-start'>>(
    (start, entry) => (entry.type === 'resume' ? startSince(start, entry) : start),
    startOf(entries),
  )
}

const ended: Partial<Record<RunStatus, string>> = {
  running: 'has not ended',
  suspended: 'waits for an answer',
  aborted: 'was stopped',
  'timed-out': 'timed out',
  interrupted: 'was interrupted',
}

const repeatable: ReadonlySet<string> = new Set(['completed', 'failed', 'budget-exceeded'])

/** `check`: of the last turn. */
function turnOf(entries: readonly Entry[], check: WantedCheck | undefined): Record<string, unknown> {
  const start = startOf(entries)
  const { outcome, error, text, output, tools } = factsOf(entries)
  if (!repeatable.has(outcome)) {
    const cure = 'A case needs a run that has ended by itself: completed, failed or budget-exceeded.'
    throw new MillraceError('bad-run', `The run ${start.runId} ${ended[outcome] ?? `is ${outcome}`}. ${cure}`)
  }
  if (entries.some((entry) => entry.type === 'tool-result' && entry.outcome === 'handed-over')) {
    const cure = 'Run it where runs are recorded, without --data none.'
    throw new MillraceError('bad-run', `The run ${start.runId} left calls of tools to its client. ${cure}`)
  }
  const answers = answersIn(entries)
  const expect = omitUndefined({
    outcome: outcome === 'completed' ? undefined : outcome,
    error: error?.code,
    text: check && textCheck(text.trim(), check.answer),
    json: check && check.answer?.is !== 'any' && text === '' && output != null ? { $: output } : undefined,
    tools: tools.length === 0 || check?.tools === false ? undefined : { inOrder: true, only: true, calls: tools },
  })
  return {
    ...inputOf(start),
    ...(answers.length === 0 ? undefined : { answers }),
    ...(Object.keys(expect).length === 0 ? undefined : { expect }),
  }
}

function textCheck(text: string, wanted: WantedCheck['answer']): Record<string, unknown> | undefined {
  const given = wanted?.text?.trim() || text
  const short = given.slice(0, longest)
  if (short === '' || wanted?.is === 'any') return undefined
  if (wanted?.is === 'not') return { not: { contains: short } }
  return wanted?.is !== 'contains' && short === given ? { equals: short } : { contains: short }
}

function inputOf({ input }: EntryOf<'run-start'>): Record<string, unknown> {
  const { messages: _, ...rest } = input
  const [only, ...more] = messagesOf(input)
  if (only?.role !== 'user' || typeof only.content !== 'string' || more.length > 0) return { input }
  return { message: only.content, ...(Object.keys(rest).length === 0 ? undefined : { input: rest }) }
}

function answersIn(entries: readonly Entry[]): Record<string, unknown>[] {
  const requests = new Map<string, EntryOf<'request'>>()
  const answers: Record<string, unknown>[] = []
  for (const entry of entries) {
    if (entry.type === 'request') requests.set(entry.requestId, entry)
    if (entry.type !== 'response' || entry.answer === undefined) continue
    const tool = requests.get(entry.requestId)?.toolName
    const { answer } = entry
    if (answer.kind === 'approval') {
      const { approved: approve, reason, input } = answer
      answers.push(omitUndefined({ tool, approve, reason: approve ? undefined : reason, input }))
    } else if (answer.kind === 'tool') {
      const { output, isError } = answer
      answers.push(omitUndefined({ tool, ...(isError ? { error: textOf(output) } : { output }) }))
    } else answers.push('value' in answer ? { value: answer.value } : { cancel: true })
  }
  return answers
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** A list of one case as YAML, each line indented. */
function caseYaml(value: Record<string, unknown>, indent: string): string {
  const text = dump([value], { lineWidth: 120, noRefs: true })
  return text.replaceAll(/^(?=.)/gmu, indent)
}
