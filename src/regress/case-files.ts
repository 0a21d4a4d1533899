/** The test cases of a server's project: found by their ids, never by a path that somebody sends. */
import { createHash } from 'node:crypto'
import { copyFileSync, readFileSync, realpathSync, rmSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { MillraceError, messageOf } from '../part/error.ts'
import { unknownTest } from '../part/test-result.ts'
import { faultsOf } from '../pipeline/fault.ts'
import { formatFaults } from '../pipeline/parse.ts'
import { isInside } from '../project/prompt-reader.ts'
import { isCaseText, largestCaseFile, yamlFilesIn } from './case-folder.ts'
import { changeFile } from './change-file.ts'
import { caseText, withAnswer, withName, withoutCase } from './edit-cases.ts'
import { factsOf } from './facts.ts'
import { readCases, slugOf } from './read-cases.ts'
import { filesOfCase, loadRecording, recordingFile, recordingsOf } from './recording-files.ts'
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
  /** Changes with each change of the case or of its recordings. */
  etagOf(found: FoundCase): string
  /** Makes the recorded answer the expected one. */
  accept(id: string): void
  /** Returns the id that it has with its new name. Its recordings follow. */
  rename(found: FoundCase, name: string): string
  /** Deletes the case and its recordings; its file with its last case. */
  remove(found: FoundCase): void
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

  const recordingsIn = ({ file }: FoundCase) => place(recordingsOf(file.path))

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
      changing(dir, () => changeFile(place(found.file.path), found.text, (write) => write(text)))
    },
    etagOf(found) {
      const folder = recordingsIn(found)
      const files = filesOfCase(folder, found.test.slug).map((name) => {
        const { size, mtimeMs } = statSync(join(folder, name))
        return [name, size, mtimeMs]
      })
      const text = JSON.stringify([caseText(found.text, found.test.slug, found.file.cases), files])
      return createHash('sha256').update(text).digest('hex').slice(0, 32)
    },
    rename(found, name) {
      const { file, test, text } = found
      const next = withName(text, file.path, test.slug, name)
      const slug = slugOf(name)
      const folder = recordingsIn(found)
      changing(dir, () =>
        changeFile(place(file.path), text, (write) => {
          const names = slug === test.slug ? [] : filesOfCase(folder, test.slug)
          // A process that ends here leaves the case as it was.
          for (const each of names) copyFileSync(join(folder, each), join(folder, slug + each.slice(test.slug.length)))
          write(next)
          for (const each of names) rmSync(join(folder, each))
        }),
      )
      return caseId(dir, file.path, { slug })!
    },
    remove(found) {
      const { file, test, text } = found
      const left = withoutCase(text, file.path, test.slug)
      changing(dir, () =>
        changeFile(place(file.path), text, (write) => {
          write(left)
          const folder = recordingsIn(found)
          for (const name of filesOfCase(folder, test.slug)) rmSync(join(folder, name))
        }),
      )
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
