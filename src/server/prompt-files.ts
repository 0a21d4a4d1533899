/** The prompt files of a folder's agents: read with the agents, and looked at again for changes. */
import * as fs from 'node:fs'
import { join } from 'node:path'
import { createPromptReader } from '../library/prompt-reader.ts'
import { messageOf } from '../part/error.ts'

/** ms between two looks: a `stat` a file, by its path, so that one is seen that comes, goes or is replaced. */
const every = 300

/** By path: what a file gave, its text or why there is none. */
export type PromptsRead = ReadonlyMap<string, string>

export interface PromptFiles {
  /** Gives the text of a file and notes in `into` what it gave. */
  read(path: string, into: Map<string, string>): string
  /** Whether the files give what they gave before. */
  isSame(before: PromptsRead): boolean
  /** Calls back when one of `paths` has changed since it was read. Gives how to stop. */
  watch(paths: () => Iterable<string>, onChange: () => void): () => void
}

export function createPromptFiles(dir: string): PromptFiles {
  const readText = createPromptReader(fs, dir)
  /** Of each file, before it was last read. */
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
        // Why it cannot be read is noted like a text.
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
