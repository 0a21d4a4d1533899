/** The folder of test cases: where it is, and which of its files are cases. */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, resolve, sep } from 'node:path'
import { recordingsFolder } from './recording-files.ts'

/** Bytes of a file of cases. */
export const largestCaseFile = 1_000_000

/** The folder of cases beside a folder of agents: `tests` for `agents`. */
export function casesFolder(agents: string): string {
  return join(dirname(agents), 'tests')
}

/** The YAML files of a folder and of those in it, except recordings. `cwd`: what `dir` is relative to. */
export function yamlFilesIn(cwd: string, dir: string): string[] {
  const place = resolve(cwd, dir)
  if (statSync(place, { throwIfNoEntry: false })?.isDirectory() !== true) return []
  return readdirSync(place, { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.ya?ml$/u.test(name) && !name.split(sep).includes(recordingsFolder))
    .filter((name) => !name.split(sep).includes('node_modules'))
    .map((name) => join(dir, name))
    .toSorted()
}

/** Another tool may keep its own YAML there: a file with neither key is not a file of cases. */
export function caseFilesIn(cwd: string, dir: string): string[] {
  return yamlFilesIn(cwd, dir).filter((file) => isCaseText(readFileSync(resolve(cwd, file), 'utf8')))
}

export function isCaseText(text: string): boolean {
  return /^(?:agent|cases)\s*:/mu.test(text)
}
