/** Test cases: finds and reads their files, and adds a case from a recorded run. */
import { readFileSync, statSync } from 'node:fs'
import type { CommandContext } from '../context.ts'
import { MillraceError } from '../../part/error.ts'
import { formatFaults } from '../../pipeline/parse.ts'
import { faultsOf } from '../../pipeline/fault.ts'
import { nearest } from '../../pipeline/nearest.ts'
import { readCases } from '../../regress/read-cases.ts'
import { caseFilesIn, casesFolder, yamlFilesIn } from '../../regress/case-folder.ts'
import { foreignLines, foreignTitle, readThread } from '../../regress/read-thread.ts'
import type { CaseFile } from '../../regress/test-case.ts'
import type { Entry } from '../../part/entry.ts'
import { addCase } from '../../regress/add-case.ts'
import { checkAgentOf, type TestRuntime } from '../../regress/test-runtime.ts'
import { openConnection, findRun } from '../connection.ts'
import { agree } from '../run/consent.ts'
import { printable } from '../terminal/output.ts'

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
    const known = yamlFilesIn(context.path('.'), casesFolder(agents))
    const meant = nearest(path, known)
    throw new MillraceError('usage', `There is no file or folder ${path}${meant ? ` (did you mean "${meant}"?)` : ''}.`)
  }
  if (!found.isDirectory()) return [path]
  return caseFilesIn(context.path('.'), path)
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
  data?: string
  url?: string
  store?: string
  trust?: boolean
}

/** Returns the file with the new case only. */
export async function addFromRun(
  context: CommandContext,
  testRuntime: TestRuntime,
  run: string,
  flags: AddFlags,
): Promise<CaseFile> {
  const { name, dir } = flags
  const data = flags.data ?? testRuntime.config.record?.data ?? '.millrace'
  const connection = await openConnection(context, { ...flags, data })
  let logs: Entry[][]
  try {
    const { id, agent } = await findRun(connection, run)
    checkAgentOf(testRuntime, agent, `run ${id}`)
    logs = await readThread((each) => connection.read(each, 0, false), id)
    const lines = flags.trust === true ? undefined : foreignLines(logs, testRuntime.agents.get(agent)!.pipeline.text)
    const question = { title: foreignTitle, question: 'Add it?', cure: 'pass --trust' }
    if (lines !== undefined) await agree(context, id, { ...question, lines })
  } finally {
    await connection.close()
  }
  const { file, test, ownPipeline } = addCase(casesFolder(dir), logs, { name, cwd: context.path('.') })
  if (ownPipeline) context.stderr.write('The run had YAML of its own; the test plays the file of its agent.\n')
  context.stderr.write(`${printable(`added to ${file.path}:${test.line}: ${test.name}`)}\n`)
  return file
}
