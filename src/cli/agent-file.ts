/** Agents on a command line: an id, or the path of a file. */
import { existsSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import type { CommandContext } from './context.ts'
import { MillraceError } from '../part/error.ts'
import { nearest } from '../pipeline/nearest.ts'
import { agentFiles } from './folders.ts'

export interface NamedAgent {
  id: string
  /** Set when the agent was given as a path. */
  file?: string
}

/** Throws `usage` for a path that is not an agent file. `agents`: the folder to search for similar names. */
export function nameAgent(context: CommandContext, text: string, agents = 'agents'): NamedAgent {
  // Agent ids contain no slashes.
  if (!/\.ya?ml$|[/\\]/u.test(text)) return { id: text }
  if (!/\.ya?ml$/u.test(text) || !existsSync(context.path(text))) throw noFile(context, text, agents)
  return { id: basename(text).replace(/\.ya?ml$/u, ''), file: text }
}

/** The file of an agent in a folder. */
export function agentFile(context: CommandContext, id: string, dir: string | undefined): string | undefined {
  if (dir === undefined) return undefined
  return agentFiles(context, dir)
    .filter((name) => name.replace(/\.ya?ml$/u, '') === id)
    .map((name) => join(dir, name))[0]
}

export function faultyAgent(faults: string): MillraceError {
  return new MillraceError('bad-pipeline', `The agent has errors:\n${faults}`)
}

function noFile(context: CommandContext, path: string, agents: string): MillraceError {
  const others = [...new Set([dirname(path), agents])].flatMap((dir) =>
    agentFiles(context, dir).map((name) => join(dir, name)),
  )
  const bare = basename(path).replace(/\.ya?ml$/u, '')
  const meant = others.find((each) => basename(each).replace(/\.ya?ml$/u, '') === bare) ?? nearest(path, others)
  return new MillraceError('usage', `There is no agent file ${path}${meant ? ` (did you mean "${meant}"?)` : ''}.`)
}
