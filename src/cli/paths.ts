/** Agents, their folders and data folders on a command line: checked before anything is opened or created. */
import { existsSync, readdirSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import type { CommandContext } from './context.ts'
import { MillraceError } from '../part/error.ts'
import { nearest } from '../pipeline/nearest.ts'

/** Throws `usage` if `--data` cannot be a folder. It may not exist yet. */
export function checkData(context: CommandContext, data: string): void {
  if (data === 'none') return
  let at = data
  while (at !== dirname(at) && !existsSync(context.path(at))) at = dirname(at)
  if (!existsSync(context.path(at)) || statSync(context.path(at)).isDirectory()) return
  const file = at === data ? `${data} is a file` : `${data} cannot be a folder: ${at} is a file`
  const meant = basename(data) === 'millrace.db' ? `: --data ${dirname(data)}` : ''
  throw new MillraceError('usage', `--data ${file}. Pass the folder that contains the log${meant}.`)
}

/** Throws `usage` if there is no such folder of agents. */
export function checkAgents(context: CommandContext, dir: string, command: 'run' | 'serve'): void {
  const found = statSync(context.path(dir), { throwIfNoEntry: false })
  if (found?.isDirectory()) return
  if (found === undefined) {
    const other = command === 'run' ? ', or use another folder with --dir' : ''
    throw new MillraceError('usage', `There is no folder of agents at ${dir}. ${initCure(context, dir)}${other}.`)
  }
  const cure = command === 'serve' ? `Serve its folder with: millrace serve ${dirname(dir)}` : 'Pass a folder.'
  throw new MillraceError('usage', `${dir} is a file, not a folder of agents. ${cure}`)
}

/** How to create the first agent: a sentence without its full stop. */
export function initCure(context: CommandContext, dir: string): string {
  const path = context.path(dir)
  const parent = dirname(dir)
  if (basename(path) === 'agents') return `Create one with ${initCommand(context)}${parent === '.' ? '' : ` ${parent}`}`
  return `Put a YAML file there, or create ./agents with ${initCommand(context)}`
}

function initCommand(context: CommandContext): string {
  return `${context.env['npm_command'] === 'exec' ? 'npx ' : ''}millrace init`
}

/** The JSON Schema beside agents, to which the first line of an agent file refers. */
export const schemaFile = 'millrace.schema.json'

/** The agent files of a folder, sorted; empty if it is not a folder. */
export function agentFiles(context: CommandContext, dir: string): string[] {
  if (!statSync(context.path(dir), { throwIfNoEntry: false })?.isDirectory()) return []
  return readdirSync(context.path(dir))
    .filter((name) => /\.ya?ml$/u.test(name))
    .toSorted()
}

/** An agent given by its id, or by the path of its file. */
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
