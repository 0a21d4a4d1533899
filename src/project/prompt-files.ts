/** The prompt files of a folder's agents: read with the agents and polled for changes. */
import * as fs from 'node:fs'
import { join } from 'node:path'
import { createPromptReader } from './prompt-reader.ts'
import { messageOf } from '../part/error.ts'

/** ms between two polls. Each is a `stat` per path, which also detects files that are created, removed or replaced. */
const every = 300

/** By path: the text of a file, or why it could not be read. */
export type PromptsRead = ReadonlyMap<string, string>

export interface PromptFiles {
  /** Reads a file and records its text or error in `into`. Throws when it cannot be read. */
  read(path: string, into: Map<string, string>): string
  /** Reads the files again. True if every text or error is the same as before. */
  isSame(before: PromptsRead): boolean
  /** Calls `onChange` when one of `paths` has changed since it was read. Returns a function that stops watching. */
  watch(paths: () => Iterable<string>, onChange: () => void): () => void
}

export function createPromptFiles(dir: string): PromptFiles {
  const readText = createPromptReader(fs, dir)
  /** The `stat` of each file before it was last read. */
  const seen = new Map<string, string>()

  function read(path: string, into: Map<string, string>): string {
    seen.set(path, stateOf(join(dir, path)))
    try {
      const text = readText(path)
      into.set(path, `text ${text}`)
      return text
    } catch (error) {
      into.set(path, `error ${messageOf(error)}`)
      throw error
    }
  }

  function isSame(before: PromptsRead): boolean {
    const now = new Map<string, string>()
    for (const path of before.keys()) {
      try {
        read(path, now)
      } catch {
        // `read` has recorded the error.
      }
    }
    return [...before].every(([path, gave]) => now.get(path) === gave)
  }

  function watch(paths: () => Iterable<string>, onChange: () => void): () => void {
    const look = () => {
      for (const path of paths()) if (seen.get(path) !== stateOf(join(dir, path))) return onChange()
    }
    const timer = setInterval(look, every)
    timer.unref()
    return () => clearInterval(timer)
  }

  return { read, isSame, watch }
}

function stateOf(path: string): string {
  try {
    const { mtimeNs, ctimeNs, size, ino } = fs.statSync(path, { bigint: true })
    return `${mtimeNs} ${ctimeNs} ${size} ${ino}`
  } catch (error) {
    return String((error as NodeJS.ErrnoException).code)
  }
}
