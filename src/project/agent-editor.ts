/** Reads, checks and saves the files of an agents folder for an editor. Checking runs no code and changes nothing. */
import * as fs from 'node:fs'
import { basename, dirname, extname, join } from 'node:path'
import { MillraceError } from '../part/error.ts'
import { agentIdFault } from '../pipeline/names.ts'
import { callsOf, checkCalls, placeOfAlias } from '../pipeline/calls.ts'
import { faultsOf } from '../pipeline/fault.ts'
import { parsePipeline } from '../pipeline/parse.ts'
import type { Fault, Known, Pipeline } from '../pipeline/pipeline.ts'
import type { Agent } from '../runtime/runtime.ts'
import { nameTaken } from './agent-set.ts'
import { isInside, createPromptReader } from './prompt-reader.ts'

export interface AgentEditor {
  /** The text as it is on disk, also if it has mistakes. Undefined for an id without a file; a pack's agent has no `file`. */
  read(id: string): AgentText | undefined
  check(id: string, text: string): CheckedText
  /** Writes a text that was checked. `was`: the text that it replaces; undefined for a new file. Returns the file's other text, null if there is no file. */
  save(id: string, text: string, was: string | undefined): { conflict?: AgentText | null }
  /** Gives a file whose text is `was` the name of another agent. Its runs keep the name that they had. */
  rename(id: string, to: string, was: string): Moved
  /** Deletes a file whose text is `was`. Its runs stay. */
  remove(id: string, was: string): Moved
  /** The names that an agent may use, without secrets and without other agents. */
  readonly names: Known
}

/** Both absent: it is done. */
export interface Moved {
  /** As of `save`. */
  conflict?: AgentText | null
  /** The agents that call it and would fail: nothing was done. */
  callers?: string[]
}

export interface AgentText {
  file?: string
  text: string
}

export interface CheckedText {
  faults: Fault[]
  pipeline?: Pipeline
}

interface Files {
  /** By name, `pack:<id>` for those of packs. */
  entries(): Iterable<[file: string, { id: string; text: string | undefined }]>
  agents(): Iterable<[name: string, Agent]>
  reload(): void
}

export function createAgentEditor(dir: string, known: Known, files: Files): AgentEditor {
  const readPrompt = createPromptReader(fs, dir)
  const { agents: _, secrets: __, ...names } = known

  function fileOf(id: string): { file: string; text: string | undefined } | undefined {
    for (const [file, each] of files.entries()) if (each.id === id) return { file, text: each.text }
    return undefined
  }

  function read(id: string): AgentText | undefined {
    const found = fileOf(id)
    if (found === undefined) return undefined
    if (found.file.startsWith('pack:')) return found.text === undefined ? undefined : { text: found.text }
    try {
      return { file: found.file, text: fs.readFileSync(pathOf(found.file), 'utf8') }
    } catch {
      return undefined
    }
  }

  /** Symlinks lead to files of the folder only: Kubernetes mounts files as links. */
  function pathOf(file: string): string {
    const path = fs.realpathSync(join(dir, file))
    if (isInside(fs.realpathSync(dir), path) && fs.statSync(path).isFile()) return path
    throw new MillraceError('forbidden', `${file} is no regular file of the agents folder.`)
  }

  function check(id: string, text: string): CheckedText {
    let pipeline: Pipeline
    try {
      pipeline = parsePipeline(text, known, readPrompt)
    } catch (error) {
      return { faults: faultsOf(error) }
    }
    const all = new Map<string, Pipeline>()
    for (const [name, agent] of files.agents()) if (agent.id !== id) all.set(name, agent.pipeline)
    // An agent with faults of its own still counts as existing.
    for (const [, other] of files.entries()) {
      if (!all.has(other.id)) all.set(other.id, { text: '', metadata: {}, workflow: [], after: [], recover: false })
    }
    all.set(id, pipeline)
    const calls = checkCalls(all).flatMap(({ agent, fault }) => (agent === id ? [fault] : []))
    return { faults: [...aliasFaults(id, pipeline), ...calls], pipeline }
  }

  function aliasFaults(id: string, pipeline: Pipeline): Fault[] {
    const owners = new Map(files.agents())
    return (pipeline.metadata.aliases ?? []).flatMap((alias) => {
      const owner = owners.get(alias)
      if (owner === undefined || owner.id === id) return []
      return [{ ...placeOfAlias(pipeline, alias), message: nameTaken(alias, owner.id) }]
    })
  }

  function save(id: string, text: string, was: string | undefined): { conflict?: AgentText | null } {
    const file = read(id)?.file ?? `${newId(id)}.yaml`
    const path = existing(file)
    const now = path === undefined ? read(id) : { file, text: fs.readFileSync(path, 'utf8') }
    if (now?.text !== was) return { conflict: now ?? null }
    try {
      replaceFile(path ?? join(dir, file), text)
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code ?? 'unknown reason'
      throw new MillraceError('forbidden', `${file} cannot be written: ${code}. The agents folder must be writable.`)
    }
    files.reload()
    return {}
  }

  function rename(id: string, to: string, was: string): Moved {
    const name = newId(to)
    if (fileOf(name) !== undefined || new Map(files.agents()).has(name)) {
      throw new MillraceError('bad-input', `There is an agent "${name}" already. Choose another id.`)
    }
    return move(id, was, (path, file) => {
      const next = join(dirname(path), `${name}${extname(file)}`)
      if (fs.existsSync(next)) throw new MillraceError('bad-input', `There is a file ${basename(next)} already.`)
      fs.renameSync(path, next)
    })
  }

  function remove(id: string, was: string): Moved {
    return move(id, was, (path) => fs.unlinkSync(path))
  }

  function move(id: string, was: string, act: (path: string, file: string) => void): Moved {
    const now = read(id)
    const { file } = now ?? {}
    if (now?.text !== was) return { conflict: now ?? null }
    if (file === undefined) throw new MillraceError('forbidden', `${id} comes with a pack. It has no file here.`)
    const callers = callersOf(id)
    if (callers.length > 0) return { callers }
    try {
      // What the folder has is the link, not the file that it leads to.
      act(join(dir, file), file)
    } catch (error) {
      if (error instanceof MillraceError) throw error
      const code = (error as NodeJS.ErrnoException).code ?? 'unknown reason'
      throw new MillraceError('forbidden', `${file} cannot be moved: ${code}. The agents folder must be writable.`)
    }
    files.reload()
    return {}
  }

  /** The agents that name it, by its id or by an alias: in a call, as a tool, as `sideCalls`. */
  function callersOf(id: string): string[] {
    const all = [...files.agents()]
    const names = new Set([id, ...all.flatMap(([name, agent]) => (agent.id === id ? [name] : []))])
    const callers = all.filter(([, { id: other, pipeline }]) => {
      if (other === id) return false
      return [...callsOf(pipeline), pipeline.sideCalls ?? ''].some((name) => names.has(name))
    })
    return [...new Set(callers.map(([, agent]) => agent.id))]
  }

  function existing(file: string): string | undefined {
    try {
      return pathOf(file)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
      throw error
    }
  }

  return { read, check, save, rename, remove, names }
}

function newId(id: string): string {
  const fault = agentIdFault(id) ?? (/^[\p{L}\p{N}_]/u.test(id) ? undefined : 'must begin with a letter or a number')
  if (fault === undefined) return id
  throw new MillraceError('bad-input', `The id of a new agent ${fault}.`)
}

/** A reader of the file gets the old text or the new one, never a mixture. */
function replaceFile(path: string, text: string): void {
  const next = join(dirname(path), `.${basename(path)}.${process.pid}.${Math.random().toString(36).slice(2)}.tmp`)
  try {
    const mode = fs.existsSync(path) ? fs.statSync(path).mode : undefined
    fs.writeFileSync(next, text, { flag: 'wx', flush: true, ...(mode !== undefined && { mode }) })
    fs.renameSync(next, path)
  } catch (error) {
    fs.rmSync(next, { force: true })
    throw error
  }
}
