/** The test cases of a server's project: found by their ids, never by a path that somebody sends. */
import { readFileSync, readdirSync, realpathSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { MillraceError, messageOf } from '../part/error.ts'
import { unknownTest } from '../part/test-result.ts'
import { faultsOf } from '../pipeline/fault.ts'
import { formatFaults } from '../pipeline/parse.ts'
import { isInside } from '../project/prompt-reader.ts'
import { isCaseText, largestCaseFile, yamlFilesIn } from './case-folder.ts'
import { caseText, withAnswer, withoutCase } from './edit-cases.ts'
import { factsOf } from './facts.ts'
import { readCases } from './read-cases.ts'
import { loadRecording, recordingFile } from './recording-files.ts'
import { caseId } from './result-row.ts'
import type { CaseFile, TestCase } from './test-case.ts'

/** A case and where it is. */
export interface FoundCase {
  /** Its file without the extension, and its name in file names: `shop/orders-two-lunches`. */
  id: string
  file: CaseFile
  test: TestCase
  /** The text of the whole file. */
  text: string
}

export interface CaseFiles {
  /** Of all files that can be read; the faults of the others. */
  read(): { cases: FoundCase[]; faults: { file: string; message: string }[] }
  /** Throws `unknown-test`. */
  find(id: string): FoundCase
  /** Its lines. */
  textOf(found: FoundCase): string
  /** Whether each turn has a recording. */
  isRecorded(found: FoundCase): boolean
  /** The recorded answer, if the case expects exactly another one. */
  otherAnswer(found: FoundCase): string | undefined
  /** The id of the run that was recorded last. */
  recordedRun(found: FoundCase, model?: string): string | undefined
  /** Makes the recorded answer the expected one. */
  accept(id: string): void
  /** Deletes the case and its recordings; its file with its last case. */
  remove(id: string): void
}

const mostFiles = 2000

/** `dir`: the folder of cases, relative to `cwd`. */
export function openCaseFiles(cwd: string, dir: string): CaseFiles {
  const place = (path: string) => resolve(cwd, path)

  function textOf(path: string): string {
    const real = realpathSync(place(path))
    if (!isInside(realpathSync(place(dir)), real)) throw new Error('this symlink points outside the folder of tests')
    const found = statSync(real)
    if (!found.isFile()) throw new Error('this is no regular file')
    if (found.size > largestCaseFile) throw new Error(`the file is larger than ${largestCaseFile} bytes`)
    return readFileSync(real, 'utf8')
  }

  function read(): ReturnType<CaseFiles['read']> {
    const cases: FoundCase[] = []
    const faults: { file: string; message: string }[] = []
    for (const path of yamlFilesIn(cwd, dir).slice(0, mostFiles)) {
      try {
        const text = textOf(path)
        if (!isCaseText(text)) continue
        const file = readCases(text, path)
        cases.push(...file.cases.map((test) => ({ id: caseId(dir, path, test)!, file, test, text })))
      } catch (error) {
        const isFault = error instanceof MillraceError && error.code === 'bad-pipeline'
        const message = isFault ? formatFaults(path, faultsOf(error)) : `${path}: ${messageOf(error)}`
        faults.push({ file: path, message })
      }
    }
    return { cases, faults }
  }

  function find(id: string): FoundCase {
    const found = read().cases.find((each) => each.id === id)
    if (found !== undefined) return found
    throw unknownTest(id)
  }

  const recordings = ({ file, test }: FoundCase, model: string | undefined) =>
    test.turns.map((_, turn) => place(recordingFile(file.path, test, model, { turn })))
  const exists = (path: string) => statSync(path, { throwIfNoEntry: false })?.isFile() === true

  function otherAnswer(found: FoundCase): string | undefined {
    const { expect } = found.test.turns.at(-1)!
    const [wanted, ...more] = expect.text?.equals ?? []
    if (wanted === undefined || more.length > 0) return undefined
    const answer = lastRecording(found)
    const text = answer && factsOf(answer).text.trim()
    return text === undefined || text === '' || text === wanted.trim() ? undefined : text
  }

  function lastRecording(found: FoundCase, model?: string) {
    try {
      return loadRecording(recordings(found, model).at(-1)!)
    } catch {
      // The case says so when it is run.
      return undefined
    }
  }

  function write(path: string, text: string): void {
    const real = realpathSync(place(path))
    const next = `${real}.${process.pid}.tmp`
    try {
      writeFileSync(next, text, { flag: 'wx' })
      renameSync(next, real)
    } finally {
      rmSync(next, { force: true })
    }
  }

  return {
    read,
    find,
    textOf: ({ text, test, file }) => caseText(text, test.slug, file.cases),
    isRecorded: (found) =>
      (found.file.models ?? [undefined]).every((model) => recordings(found, model).every((path) => exists(path))),
    otherAnswer,
    recordedRun(found, model) {
      const start = lastRecording(found, model)?.[0]
      return start?.type === 'run-start' ? start.runId : undefined
    },
    accept(id) {
      const found = find(id)
      const answer = otherAnswer(found)
      if (answer === undefined) {
        throw new MillraceError('bad-input', 'The recorded answer is what the case expects, or there is none.')
      }
      const text = withAnswer(found.text, found.file.path, found.test.slug, answer)
      changing(dir, () => write(found.file.path, text))
    },
    remove(id) {
      const { file, test, text } = find(id)
      const left = withoutCase(text, file.path, test.slug)
      changing(dir, () => {
        if (left === undefined) rmSync(place(file.path))
        else write(file.path, left)
        const folder = dirname(place(recordingFile(file.path, test, undefined, { turn: 0 })))
        const names = statSync(folder, { throwIfNoEntry: false }) === undefined ? [] : readdirSync(folder)
        // `case.ndjson`, `case.model.2.judge.ndjson`: a slug has no dot.
        for (const name of names) if (name.split('.')[0] === test.slug) rmSync(resolve(folder, name))
      })
    },
  }
}

/** Writes files of the folder. What the system refuses is told with its cure. */
export function changing<T>(dir: string, change: () => T): T {
  try {
    return change()
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (error instanceof MillraceError || code === undefined) throw error
    throw new MillraceError('forbidden', `The folder ${dir} cannot be changed: ${code}. It must be writable.`)
  }
}
