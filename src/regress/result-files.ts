/**
 * Results of `millrace test`, on their way to the page. The command leaves a file for each of its runs in the data folder, and the server of that
 * folder takes it in when somebody looks. So a result is kept whether a server runs or not, and the command needs no lock, no address and no key.
 */
import { createHash, randomUUID } from 'node:crypto'
import {
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join, resolve } from 'node:path'
import { parseJson } from '../part/json.ts'
import { MillraceError } from '../part/error.ts'
import { readTestResults, toTestResult, type NewTestResult } from '../part/test-result.ts'

/** Files that wait: the oldest leaves when there are more. */
const mostFiles = 200
const largestFile = 16_000_000
const mostRows = 20_000

const folderOf = (data: string) => join(resolve(data), 'tests')

/** Several projects may share a data folder: a file names the agents that it is about. */
function projectOf(agents: string): string {
  return createHash('sha256').update(realpathSync(agents)).digest('hex').slice(0, 16)
}

/** Leaves the results of one run. `agents`: the folder that they are about. */
export function leaveResults(data: string, agents: string, results: readonly NewTestResult[], now: number): void {
  if (results.length === 0) return
  const folder = folderOf(data)
  // They have what models said: other accounts of the machine get no access.
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const name = `${projectOf(agents)}-${String(now).padStart(15, '0')}-${randomUUID()}.json`
  const next = join(folder, `${name}.tmp`)
  try {
    writeFileSync(next, textOf(results.slice(0, mostRows).map(toTestResult)), { flag: 'wx', mode: 0o600 })
    renameSync(next, join(folder, name))
  } finally {
    rmSync(next, { force: true })
  }
  for (const old of namesIn(folder).slice(0, -mostFiles)) rmSync(join(folder, old), { force: true })
}

/** Without the values that were compared, if they are too long to be read again. */
function textOf(results: readonly NewTestResult[]): string {
  const text = JSON.stringify({ results })
  if (Buffer.byteLength(text) <= largestFile) return text
  const short = results.map((row) => ({
    ...row,
    warnings: [],
    failures: row.failures.slice(0, 1).map(({ what, message }) => ({ what, message: message.slice(0, 300) })),
  }))
  return JSON.stringify({ results: short })
}

export interface LeftResults {
  path: string
  results: NewTestResult[]
}

/** The files about these agents, the oldest first. `onBroken`: of one that this command has not written; it is deleted. */
export function readLeftResults(data: string, agents: string, onBroken: (error: MillraceError) => void): LeftResults[] {
  const folder = folderOf(data)
  const project = projectOf(agents)
  const names = namesIn(folder).filter((name) => name.startsWith(`${project}-`))
  return names.flatMap((name) => {
    const path = join(folder, name)
    try {
      return [{ path, results: readResults(path) }]
    } catch (error) {
      rmSync(path, { force: true, recursive: true })
      const why = error instanceof Error ? error.message : ''
      onBroken(new MillraceError('bad-input', `${path} had no results of tests and was deleted: ${why}`))
      return []
    }
  })
}

function readResults(path: string): NewTestResult[] {
  const found = lstatSync(path)
  if (!found.isFile()) throw new Error('it is no regular file')
  if (found.size > largestFile) throw new Error(`it is larger than ${largestFile} bytes`)
  return readTestResults((parseJson(readFileSync(path, 'utf8')) as { results?: unknown } | null)?.results, mostRows)
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
      .filter((name) => /^[0-9a-f]{16}-\d{15}-[0-9a-f-]{36}\.json$/u.test(name))
      .toSorted((a, b) => (a.slice(17) < b.slice(17) ? -1 : 1))
  } catch {
    // There are none yet.
    return []
  }
}
