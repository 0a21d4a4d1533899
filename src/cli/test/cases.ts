/** Test cases: finds and reads their files, and adds a case from a recorded run. */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, sep } from 'node:path'
import type { CommandContext } from '../context.ts'
import { MillraceError } from '../../part/error.ts'
import { formatFaults } from '../../pipeline/parse.ts'
import { faultsOf } from '../../pipeline/fault.ts'
import { nearest } from '../../pipeline/nearest.ts'
import { readCases } from '../../regress/read-cases.ts'
import { recordingsFolder } from '../../regress/recording-files.ts'
import type { CaseFile } from '../../regress/test-case.ts'
import type { Entry } from '../../part/entry.ts'
import { addCase } from '../../regress/add-case.ts'
import { checkAgentOf, type TestRuntime } from '../../regress/test-runtime.ts'
import { openConnection, type Connection, findRun } from '../connection.ts'
import { agree } from '../run/consent.ts'
import { printable } from '../terminal/output.ts'

/** The folder of cases beside a folder of agents: `tests` for `agents`. */
export function casesFolder(agents: string): string {
  return join(dirname(agents), 'tests')
}

/** The files on the command line, or those in the folder beside the agents. Throws `usage` if there is none. */
export function findCaseFiles(context: CommandContext, paths: readonly string[], agents: string): string[] {
  const given = paths.length > 0 ? paths : [casesFolder(agents)]
  const files = [...new Set(given.flatMap((path) => filesAt(context, path, agents)))]
  if (files.length > 0) return files
  const cure = 'Write one, or make one of a run with: millrace test --add <run>'
  throw new MillraceError('usage', `There are no test cases in ${given.join(', ')}. ${cure}`)
}

function filesAt(context: CommandContext, path: string, agents: string): string[] {
  const found = statSync(context.path(path), { throwIfNoEntry: false })
  if (found === undefined) {
    if (path === casesFolder(agents)) return []
    const known = inFolder(context, casesFolder(agents))
    const meant = nearest(path, known)
    throw new MillraceError('usage', `There is no file or folder ${path}${meant ? ` (did you mean "${meant}"?)` : ''}.`)
  }
  if (!found.isDirectory()) return [path]
  // Another tool may keep its own YAML there: a file with neither key is not a file of cases.
  return inFolder(context, path).filter((file) =>
    /^(?:agent|cases)\s*:/mu.test(readFileSync(context.path(file), 'utf8')),
  )
}

function inFolder(context: CommandContext, dir: string): string[] {
  if (!existsSync(context.path(dir))) return []
  return readdirSync(context.path(dir), { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.ya?ml$/u.test(name) && !name.split(sep).includes(recordingsFolder))
    .filter((name) => !name.split(sep).includes('node_modules'))
    .map((name) => join(dir, name))
    .toSorted()
}

/** Throws `bad-cases` with the errors of all files. */
export function readCaseFiles(context: CommandContext, paths: readonly string[]): CaseFile[] {
  const faults: string[] = []
  const files = paths.flatMap((path) => {
    try {
      return [readCases(readFileSync(context.path(path), 'utf8'), path)]
    } catch (error) {
      faults.push(formatFaults(path, faultsOf(error)))
      return []
    }
  })
  if (faults.length > 0) throw new MillraceError('bad-cases', `The test cases have errors:\n${faults.join('\n')}`)
  return files
}

/** `millrace test --add`: a recorded run as a test case. */
interface AddFlags {
  name?: string
  dir: string
  data: string
  url?: string
  store?: string
  trust?: boolean
}

/** The longest conversation that becomes a case. */
const maxTurns = 50

/** Returns the file with the new case only. */
export async function addFromRun(
  context: CommandContext,
  testRuntime: TestRuntime,
  run: string,
  flags: AddFlags,
): Promise<CaseFile> {
  const { name, dir } = flags
  const connection = await openConnection(context, flags)
  let logs: Entry[][]
  try {
    const { id, agent } = await findRun(connection, run)
    checkAgentOf(testRuntime, agent, `run ${id}`)
    logs = await readThread(connection, id)
    await agreeToForeign(context, id, logs, testRuntime.agents.get(agent)!.pipeline.text, flags)
  } finally {
    await connection.close()
  }
  const { file, test } = addCase(casesFolder(dir), logs, { name, cwd: context.path('.') })
  context.stderr.write(`${printable(`added to ${file.path}:${test.line}: ${test.name}`)}\n`)
  return file
}

/**
 * Asks before a run is added that was recorded elsewhere by another agent. `text`: of the agent here, which the test always runs.
 */
async function agreeToForeign(
  context: CommandContext,
  run: string,
  logs: Entry[][],
  text: string,
  { trust }: AddFlags,
): Promise<void> {
  const isForeign = (log: Entry[]) => log[0]?.type === 'run-start' && log[0].foreign !== undefined
  const foreign = logs.filter((log) => isForeign(log) && textOf(log) !== text)
  if (trust === true || foreign.length === 0) return
  const { programsIn } = await import('../../runtime/foreign-programs.ts')
  const lines = foreign.flatMap((log) => programsIn(log, { ownText: true }))
  await agree(context, run, {
    title:
      'A test plays the agent here with what the recording says, and sets nothing of it to work. The recording names:',
    lines,
    question: 'Add it?',
    cure: 'pass --trust',
  })
}

function textOf(log: Entry[]): string | undefined {
  let text: string | undefined
  for (const entry of log) if (entry.type === 'run-start' || entry.type === 'resume') text = entry.pipeline ?? text
  return text
}

/** The run and those before it that its conversation continues, the oldest first. */
async function readThread(connection: Connection, run: string): Promise<Entry[][]> {
  const logs: Entry[][] = []
  const seen = new Set<string>()
  for (let id: string | undefined = run; id !== undefined && !seen.has(id);) {
    seen.add(id)
    if (logs.length === maxTurns) throw new MillraceError('bad-run', `The conversation has more than ${maxTurns} runs.`)
    const entries: Entry[] = []
    for await (const entry of connection.read(id, 0, false)) entries.push(entry)
    logs.unshift(entries)
    const start = entries[0]
    id = start?.type === 'run-start' ? start.previousRunId : undefined
  }
  return logs
}
