/** The recordings of a file of cases: one log in NDJSON for each turn, and one for its judge. */
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import type { Entry } from '../part/entry.ts'
import { MillraceError } from '../part/error.ts'
import { readNdjson, verify } from '../store/ndjson.ts'
import { slugOf } from './read-cases.ts'
import type { TestCase } from './test-case.ts'

export const recordingsFolder = 'recordings'

/** Which run of a case: a turn, from 0, and whether it is that of its judge. */
export interface RunOfCase {
  turn: number
  judge?: boolean
}

/** `tests/recordings/<file>/<case>[.<model>][.<turn>][.judge].ndjson`. */
export function recordingFile(path: string, { slug }: TestCase, model: string | undefined, run: RunOfCase): string {
  const parts = [slug]
  if (model !== undefined) parts.push(slugOf(model))
  if (run.turn > 0) parts.push(String(run.turn + 1))
  if (run.judge) parts.push('judge')
  return join(recordingsOf(path), `${parts.join('.')}.ndjson`)
}

/** The folder of the recordings of a file of cases. */
export function recordingsOf(path: string): string {
  return join(dirname(path), recordingsFolder, basename(path).replace(/\.ya?ml$/u, ''))
}

/** The files of one case in a folder of recordings. A slug has no dot: `case.ndjson`, `case.model.2.judge.ndjson`. */
export function filesOfCase(folder: string, slug: string): string[] {
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory() !== true) return []
  return readdirSync(folder).filter((name) => name.includes('.') && name.split('.')[0] === slug)
}

/** Undefined if there is no such file. Throws `bad-recording` for a file that is not the log of a whole run. */
export function loadRecording(file: string): Entry[] | undefined {
  if (!existsSync(file)) return undefined
  const { entries, faults } = readNdjson(readFileSync(file, 'utf8'))
  const [fault] = [...faults.map(({ line, message }) => `line ${line}: ${message}`), ...verify(entries)]
  if (fault === undefined) return entries
  throw new MillraceError(
    'bad-recording',
    `${file} is not the log of a whole run (${fault}). Record it again with --record.`,
  )
}

/** Replaces the file at once, so that it is never half written. */
export function saveRecording(file: string, entries: readonly Entry[]): void {
  mkdirSync(dirname(file), { recursive: true })
  const temporary = `${file}.${process.pid}.tmp`
  writeFileSync(temporary, entries.map((entry) => `${JSON.stringify(entry)}\n`).join(''))
  renameSync(temporary, file)
}
