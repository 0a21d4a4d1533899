/**
 * A watched folder of YAML agents. A changed file is checked and loaded; if it is invalid, the error is reported and the last
 * good version stays. An active run keeps the text it started with, because its log contains it.
 */
import { readFileSync, readdirSync, realpathSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { findByName } from '../runtime/agent-names.ts'
import { isInside, createPromptReader } from './prompt-reader.ts'
import { messageOf, MillraceError } from '../part/error.ts'
import { faultsOf } from '../pipeline/fault.ts'
import type { ReadFolder, ReadText } from '../pipeline/inlined.ts'
import { parsePipeline } from '../pipeline/parse.ts'
import type { Known } from '../pipeline/pipeline.ts'
import type { AgentSource } from '../runtime/runtime.ts'
import { createAgentEditor, type AgentEditor } from './agent-editor.ts'
import { faultyFile, settle, type AgentError, type AgentFile } from './agent-set.ts'
import { configNames } from './load-config.ts'
import { watchFolder } from './watch-folder.ts'
import * as fs from 'node:fs'

export type { AgentError } from './agent-set.ts'

export interface AgentFolder extends AgentSource {
  readonly errors: AgentError[]
  readonly editor: AgentEditor
  /** Reads changed files and resolves names again. Returns the ids whose agent or faults changed. */
  reload(): string[]
  /** Calls `onReload` after each reload that changed something, `onConfig` when the config file or `.env` has changed. */
  watch(onReload: (changed: string[], errors: AgentError[]) => void, onConfig?: (file: string) => void): void
  close(): void
}

/** Files that are read only when the server starts. */
const atStart = [...configNames, '.env']

const none: ReadonlyMap<string, string> = new Map()
const extension = /\.ya?ml$/u

/** `packAgents`: id → text. An agent of the folder replaces the pack's agent with the same id. */
export function openAgentFolder(dir: string, known: Known, packAgents: Record<string, string> = {}): AgentFolder {
  let files = new Map<string, AgentFile>()
  let { names, errors } = settle(files)
  let stop: (() => void) | undefined
  let stopPrompts: (() => void) | undefined
  const promptFiles = createPromptFiles(dir)
  const pathsOfPrompts = () => [...files.values()].flatMap(({ prompts }) => [...prompts.keys()])
  const timers = new Map<string, ReturnType<typeof setTimeout>>()
  const fromPacks = new Map(
    Object.entries(packAgents).map(([id, text]) => [`pack:${id}`, parse(`pack:${id}`, id, text)]),
  )

  function parse(file: string, id: string, text: string, good?: AgentFile['good']): AgentFile {
    const prompts = new Map<string, string>()
    const readText = file.startsWith('pack:') ? undefined : promptFiles.reader(prompts)
    try {
      const pipeline = parsePipeline(text, known, readText)
      return { id, text, prompts, next: { id, pipeline }, good, fault: undefined }
    } catch (error) {
      return { id, text, prompts, next: undefined, good, fault: faultyFile(file, faultsOf(error)) }
    }
  }

  function read(file: string): AgentFile {
    const before = files.get(file)
    const id = file.replace(extension, '')
    let text: string
    try {
      const path = join(dir, file)
      // Kubernetes mounts files as symlinks to a subfolder.
      if (!isInside(realpathSync(dir), realpathSync(path))) {
        const message = 'this symlink points outside the agents folder; put the file itself here'
        const fault = faultyFile(file, [{ line: 1, column: 1, message }])
        return { id, text: undefined, prompts: none, next: undefined, good: before?.good, fault }
      }
      text = readRegular(path)
    } catch (error) {
      // Editors replace files, so a file that is missing for a moment keeps its last version.
      // Clients see this message; the system's own would contain the path of the folder.
      const fault = faultyFile(file, [{ line: 1, column: 1, message: `this file cannot be read: ${whyNot(error)}` }])
      return { id, text: undefined, prompts: none, next: undefined, good: before?.good, fault }
    }
    const isUnchanged = before !== undefined && before.text === text && promptFiles.isSame(before.prompts)
    return isUnchanged ? { ...before } : parse(file, id, text, before?.good)
  }

  function reload(): string[] {
    const found = new Map(filesOf(dir).map((file) => [file, read(file)]))
    const ids = new Set([...found.values()].map(({ id }) => id))
    for (const [file, each] of fromPacks) if (!ids.has(each.id)) found.set(file, each)
    const before = { files, errors }
    files = found
    ;({ names, errors } = settle(files))
    return changes(before, { files, errors })
  }

  function soon(what: string, act: () => void): void {
    // One save causes several events.
    clearTimeout(timers.get(what))
    timers.set(what, setTimeout(act, 50))
  }

  reload()
  let check: () => void = reload
  const editor = createAgentEditor(dir, known, {
    entries: () => files,
    agents: () => names,
    reload: () => check(),
  })
  return {
    editor,
    get: (name) => findByName(names, name),
    list: () => [...files.values()].flatMap(({ good }) => (good && names.get(good.id) === good ? [good] : [])),
    get errors() {
      return errors
    },
    reload,
    watch(onReload, onConfig = () => undefined) {
      const configs = new Map(atStart.map((name) => [name, textOf(join(dir, name))]))
      let unreadable: string | undefined

      function lookAtConfig(file: string): void {
        const text = textOf(join(dir, file))
        if (text === configs.get(file)) return
        configs.set(file, text)
        onConfig(file)
      }

      function lookAtAgents(): void {
        let changed: string[]
        try {
          changed = reload()
          unreadable = undefined
        } catch (error) {
          const message = messageOf(error)
          if (message !== unreadable) onReload([], [{ file: dir, message, faults: [] }])
          unreadable = message
          return
        }
        if (changed.length > 0) onReload(changed, errors)
      }

      check = lookAtAgents
      stopPrompts ??= promptFiles.watch(pathsOfPrompts, () => soon('', lookAtAgents))
      stop ??= watchFolder(dir, (file) => {
        if (file === null || extension.test(file)) soon('', lookAtAgents)
        for (const name of atStart) if (file === null || file === name) soon(name, () => lookAtConfig(name))
      })
    },
    close() {
      for (const timer of timers.values()) clearTimeout(timer)
      stopPrompts?.()
      stop?.()
    },
  }
}

interface FolderState {
  files: ReadonlyMap<string, AgentFile>
  errors: readonly AgentError[]
}

/** The ids of files that were added, removed or changed, and of those whose faults changed because of other files. */
function changes(before: FolderState, after: FolderState): string[] {
  const messageAt = ({ errors }: FolderState, file: string) => errors.find((error) => error.file === file)?.message
  const changed = new Set<string>()
  for (const file of new Set([...before.files.keys(), ...after.files.keys()])) {
    const [old, now] = [before.files.get(file), after.files.get(file)]
    const isSame = old?.text === now?.text && old?.good === now?.good
    if (isSame && messageAt(before, file) === messageAt(after, file)) continue
    changed.add((now ?? old)!.id)
  }
  return [...changed]
}

/** Without the path: the fault names the file. */
/** Reading a named pipe or a device would block the process. */
function readRegular(path: string): string {
  const found = statSync(path)
  if (found.isFile() || found.isDirectory()) return readFileSync(path, 'utf8')
  throw Object.assign(new Error('not a regular file'), { code: notRegular })
}

const notRegular = 'ERR_NOT_REGULAR'

function whyNot(error: unknown): string {
  const { code } = error as NodeJS.ErrnoException
  if (code === notRegular) return 'it is not a regular file'
  return code === 'EISDIR' ? 'it is a folder' : (code ?? 'unknown reason')
}

function textOf(path: string): string | undefined {
  try {
    return readRegular(path)
  } catch {
    return undefined
  }
}

function filesOf(dir: string): string[] {
  let names: string[]
  try {
    names = readdirSync(dir)
  } catch (error) {
    throw new MillraceError('bad-folder', `The agents folder cannot be read: ${messageOf(error)}`, { cause: error })
  }
  return names.filter((name) => extension.test(name)).toSorted()
}

/* The prompt files of a folder's agents: read with the agents and polled for changes. */

/** ms between two polls. Each is a `stat` per path, which also detects files that are created, removed or replaced. */
const every = 300

/** By path: the text of a file, the names of the folders in a folder, or why it could not be read. */
type PromptsRead = ReadonlyMap<string, string>

interface PromptFiles {
  /** Reads files and lists folders, and records their texts, names or errors in `into`. Throws when one cannot be read. */
  reader(into: Map<string, string>): ReadText
  /** Reads the files again. True if every text or error is the same as before. */
  isSame(before: PromptsRead): boolean
  /** Calls `onChange` when one of `paths` has changed since it was read. Returns a function that stops watching. */
  watch(paths: () => Iterable<string>, onChange: () => void): () => void
}

function createPromptFiles(dir: string): PromptFiles {
  const readText = createPromptReader(fs, dir)
  /** The `stat` of each file before it was last read. */
  const seen = new Map<string, string>()

  function noted<T>(path: string, into: Map<string, string>, read: () => T, toText: (value: T) => string): T {
    seen.set(path, stateOf(join(dir, path)))
    try {
      const value = read()
      into.set(path, toText(value))
      return value
    } catch (error) {
      into.set(path, `error ${messageOf(error)}`)
      throw error
    }
  }

  function reader(into: Map<string, string>): ReadFolder {
    const read = (path: string) =>
      noted(
        path,
        into,
        () => readText(path),
        (text) => `text ${text}`,
      )
    // Folders end with a slash here, so that no file has the same name.
    const folders = (path: string) =>
      noted(
        `${path}/`,
        into,
        () => readText.folders(path),
        (names) => names.join('/'),
      )
    return Object.assign(read, { folders })
  }

  function isSame(before: PromptsRead): boolean {
    const now = new Map<string, string>()
    const read = reader(now)
    for (const path of before.keys()) {
      try {
        if (path.endsWith('/')) read.folders(path.slice(0, -1))
        else read(path)
      } catch {
        // `read` has recorded the error.
      }
    }
    return [...before].every(([path, gave]) => now.get(path) === gave)
  }

  function watch(paths: () => Iterable<string>, onChange: () => void): () => void {
    const check = () => {
      for (const path of paths()) if (seen.get(path) !== stateOf(join(dir, path))) return onChange()
    }
    const timer = setInterval(check, every)
    timer.unref()
    return () => clearInterval(timer)
  }

  return { reader, isSame, watch }
}

function stateOf(path: string): string {
  try {
    const { mtimeNs, ctimeNs, size, ino } = fs.statSync(path, { bigint: true })
    return `${mtimeNs} ${ctimeNs} ${size} ${ino}`
  } catch (error) {
    return String((error as NodeJS.ErrnoException).code)
  }
}
