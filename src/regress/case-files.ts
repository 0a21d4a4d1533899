/** The test cases of a server's project: found by their ids, never by a path that somebody sends. */
import { createHash } from 'node:crypto'
import { copyFileSync, readFileSync, realpathSync, rmSync, statSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { MillraceError, messageOf } from '../part/error.ts'
import { omitUndefined } from '../part/omit-undefined.ts'
import { unknownTest } from '../part/test-result.ts'
import { faultsOf } from '../pipeline/fault.ts'
import { formatFaults } from '../pipeline/parse.ts'
import { isInside } from '../project/prompt-reader.ts'
import { isCaseText, largestCaseFile, yamlFilesIn } from './case-folder.ts'
import { changeFile } from './change-file.ts'
import { caseText, withAnswer, withName, withoutCase } from './edit-cases.ts'
import { factsOf } from './facts.ts'
import { readCases, slugOf } from './read-cases.ts'
import {
  acceptSet,
  dropProposal,
  hasProposal,
  proposalsOf,
  recordingFolders,
  replacedBy,
  runIdOf,
  undoSet,
  type ChangedRun,
  type Replaced,
} from './new-recordings.ts'
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

/** What accepting would change. */
export interface CaseChange {
  /** Absent: the recordings are those with the agent's models. */
  model?: string
  /** The new recorded run. */
  run?: string
  /** New recordings wait. Absent: only what the case expects would change. */
  isNew?: true
  /** The answer that the case would expect exactly. */
  expects?: string
  runs: ChangedRun[]
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
  /** What somebody may accept: new recordings, or the recorded answer if the case expects exactly another one. */
  changesOf(found: FoundCase): CaseChange[]
  /** The same as far as a list shows it. */
  hasChange(found: FoundCase): boolean
  /** Whether what was accepted last can be taken back: not if there is something else there by now. */
  canUndo(found: FoundCase): boolean
  /** The id of the run that was recorded last. */
  recordedRun(found: FoundCase, model?: string): string | undefined
  /** Changes with each change of the case or of its recordings. */
  etagOf(found: FoundCase): string
  /** Puts new recordings in the place of the old ones, and expects their answer where another one is expected exactly. */
  accept(found: FoundCase, model: string | undefined): void
  /** Takes back what was accepted last, once. */
  undo(found: FoundCase): void
  /** Deletes new recordings. */
  discard(found: FoundCase, model: string | undefined): void
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

  /** The one text that the last turn must answer exactly. */
  function exactOf({ test }: FoundCase): string | undefined {
    const [wanted, ...more] = test.turns.at(-1)!.expect.text?.equals ?? []
    return more.length > 0 ? undefined : wanted
  }

  /** What the case would expect if this is the answer. */
  function expects(found: FoundCase, answer: string): string | undefined {
    const wanted = exactOf(found)
    const text = answer.trim()
    return wanted === undefined || text === '' || text === wanted.trim() ? undefined : text
  }

  function changesOf(found: FoundCase): CaseChange[] {
    const turn = found.test.turns.length - 1
    const changes = proposalsOf(recordingsIn(found), found.test.slug).map(
      ({ model, run, changed: runs }): CaseChange => {
        const last = runs.find((each) => each.turn === turn && each.judge !== true)
        return omitUndefined({
          model,
          run,
          isNew: true as const,
          runs,
          expects: last && expects(found, last.after.answer),
        })
      },
    )
    if (changes.some(({ model }) => model === undefined)) return changes
    const recorded = lastRecording(found)
    const { text = '', tools = [] } = recorded === undefined ? {} : factsOf(recorded)
    const other = expects(found, text)
    if (other === undefined) return changes
    const runs = [{ turn, before: { answer: exactOf(found)!, tools }, after: { answer: other, tools } }]
    return [...changes, omitUndefined({ run: runIdOf(recorded), expects: other, runs })]
  }

  function undoOf(found: FoundCase): Replaced | undefined {
    const replaced = replacedBy(recordingsIn(found), found.test.slug)
    if (replaced === undefined) return undefined
    const { expected, files, model, run } = replaced
    const isThere = files.length === 0 || runIdOf(lastRecording(found, model)) === run
    return isThere && (expected === undefined || exactOf(found) === expected.after) ? replaced : undefined
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
  /** Its recordings, those that wait and those that were replaced. */
  const everyFile = (found: FoundCase) =>
    recordingFolders(recordingsIn(found)).flatMap((folder) =>
      filesOfCase(folder, found.test.slug).map((name) => join(folder, name)),
    )

  return {
    read,
    find,
    textOf: ({ text, test, file }) => caseText(text, test.slug, file.cases),
    isRecorded: (found) =>
      (found.file.models ?? [undefined]).every((model) => recordings(found, model).every((path) => exists(path))),
    changesOf,
    hasChange: (found) => hasProposal(recordingsIn(found), found.test.slug),
    canUndo: (found) => undoOf(found) !== undefined,
    recordedRun: (found, model) => runIdOf(lastRecording(found, model)),
    accept(found, model) {
      const change = changesOf(found).find((each) => each.model === model)
      if (change === undefined) {
        throw new MillraceError('bad-input', 'There is no new answer of this case. Ask the models first.')
      }
      const { file, test, text } = found
      const folder = recordingsIn(found)
      const set = proposalsOf(folder, test.slug).find((each) => each.model === model)
      const { run, expects: after } = change
      const next = after === undefined ? text : withAnswer(text, file.path, test.slug, after)
      const expected = after === undefined ? undefined : { before: exactOf(found)!, after }
      changing(dir, () =>
        changeFile(place(file.path), text, (write) => {
          acceptSet(folder, test.slug, set, omitUndefined({ expected, run }))
          if (next !== text) write(next)
        }),
      )
    },
    undo(found) {
      const replaced = undoOf(found)
      if (replaced === undefined) {
        throw new MillraceError(
          'bad-input',
          'Nothing of this case can be undone: it was accepted by nobody, or has changed since.',
        )
      }
      const { file, test, text } = found
      const { expected } = replaced
      const next = expected === undefined ? text : withAnswer(text, file.path, test.slug, expected.before)
      changing(dir, () =>
        changeFile(place(file.path), text, (write) => {
          undoSet(recordingsIn(found), test.slug, replaced)
          if (next !== text) write(next)
        }),
      )
    },
    discard(found, model) {
      const { file, test, text } = found
      changing(dir, () => changeFile(place(file.path), text, () => dropProposal(recordingsIn(found), test.slug, model)))
    },
    etagOf(found) {
      const files = everyFile(found).map((path) => {
        const { size, mtimeMs } = statSync(path)
        return [path, size, mtimeMs]
      })
      const text = JSON.stringify([caseText(found.text, found.test.slug, found.file.cases), files])
      return createHash('sha256').update(text).digest('hex').slice(0, 32)
    },
    rename(found, name) {
      const { file, test, text } = found
      const next = withName(text, file.path, test.slug, name)
      const slug = slugOf(name)
      changing(dir, () =>
        changeFile(place(file.path), text, (write) => {
          const paths = slug === test.slug ? [] : everyFile(found)
          // A process that ends here leaves the case as it was.
          for (const path of paths)
            copyFileSync(path, join(dirname(path), slug + basename(path).slice(test.slug.length)))
          write(next)
          for (const path of paths) rmSync(path)
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
          for (const path of everyFile(found)) rmSync(path)
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
