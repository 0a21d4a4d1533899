/** Writes a case into a file of cases: at its end, or into a new file. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import type { Entry } from '../part/entry.ts'
import { MillraceError } from '../part/error.ts'
import { agentIdFault } from '../pipeline/agent-id.ts'
import { child } from '../pipeline/check.ts'
import { createFaultCollector } from '../pipeline/fault.ts'
import { parseTree } from '../pipeline/tree.ts'
import { caseOfRuns, caseYaml } from './case-of-run.ts'
import { readCases, slugOf } from './read-cases.ts'
import { recordingFile, saveRecording } from './recording-files.ts'
import type { CaseFile, TestCase } from './test-case.ts'

export interface AddedCase {
  file: CaseFile
  test: TestCase
}

export interface AddCaseOptions {
  name?: string | undefined
  /** Folder that `dir` is relative to. */
  cwd: string
}

/** `dir`: the folder of cases. Throws for runs that cannot be repeated. */
export function addCase(dir: string, logs: readonly (readonly Entry[])[], { name, cwd }: AddCaseOptions): AddedCase {
  const textOf = (path: string) => {
    const place = resolve(cwd, path)
    return existsSync(place) ? readFileSync(place, 'utf8') : undefined
  }
  const { agent, title, value } = caseOfRuns(logs)
  // It becomes the name of a file.
  const fault = agentIdFault(agent)
  if (fault !== undefined) throw new MillraceError('bad-run', `The agent of the run ${fault}.`)
  const wanted = name ?? (title.replaceAll(/\s+/gu, ' ').trim().slice(0, 60) || 'case')
  const path = [join(dir, `${agent}.yaml`), join(dir, `${agent}-${slugOf(wanted)}.yaml`)].find((each) =>
    fits(textOf(each), each, agent),
  )
  const target = path ?? freePath(dir, agent, textOf)
  const before = textOf(target)
  const taken = before === undefined ? [] : readCases(before, target).cases
  const unique = uniqueName(wanted, taken)
  const text =
    before === undefined
      ? `${head}agent: ${agent}\ncases:\n${caseYaml({ name: unique, ...value }, '  ')}`
      : `${before.trimEnd()}\n${caseYaml({ name: unique, ...value }, indentIn(before)!)}`
  const file = readCases(text, target)
  const test = file.cases.at(-1)!
  for (const [turn, entries] of logs.entries())
    saveRecording(resolve(cwd, recordingFile(target, test, undefined, { turn })), entries)
  const place = resolve(cwd, target)
  mkdirSync(dirname(place), { recursive: true })
  writeFileSync(place, text)
  return { file: { ...file, cases: [test] }, test }
}

const head = `# Run with: millrace test
# Models and tools are answered from the recordings beside this file. Loosen what may differ when you record again.
`

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

/** What stands before the dashes of its cases; undefined if they are not its last key, or not one below the other. */
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
  for (let n = 2; ; n++) if (isFree(`${wanted} ${n}`)) return `${wanted} ${n}`
}
