/** The files of test cases on a command line, or those in the folder beside the agents. */
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

/** The folder of cases beside a folder of agents: `tests` for `agents`. */
export function casesFolder(agents: string): string {
  return join(dirname(agents), 'tests')
}

/** Throws `usage` if there is none. */
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
  // Another tool may keep its own YAML there. What has neither key is not ours.
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
