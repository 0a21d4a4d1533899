/** The folders that a command line names: what is wrong with one is said before anything is opened or made. */
import { existsSync, readdirSync, statSync } from 'node:fs'
import { basename, dirname, resolve } from 'node:path'
import { MillraceError } from '../part/error.ts'

/** Throws `usage` when `--data` cannot be a folder. It need not be there yet. */
export function checkData(data: string): void {
  if (data === 'none') return
  let at = data
  while (at !== dirname(at) && !existsSync(at)) at = dirname(at)
  if (!existsSync(at) || statSync(at).isDirectory()) return
  const file = at === data ? `${data} is a file` : `${data} cannot be a folder: ${at} is a file`
  const meant = basename(data) === 'millrace.db' ? `: --data ${dirname(data)}` : ''
  throw new MillraceError('usage', `--data ${file}; name the folder that holds the log${meant}.`)
}

/** Throws `usage` when there is no such folder of agents. */
export function checkAgents(dir: string, command: 'run' | 'serve'): void {
  const found = statSync(dir, { throwIfNoEntry: false })
  if (found?.isDirectory()) return
  if (found === undefined) {
    const other = command === 'run' ? '; --dir names another folder' : ''
    throw new MillraceError('usage', `There is no folder of agents at ${dir}: ${initCure(dir)}${other}.`)
  }
  const cure = command === 'serve' ? `millrace serve ${dirname(dir)} serves the folder that holds it` : 'name a folder'
  throw new MillraceError('usage', `${dir} is a file, no folder of agents; ${cure}.`)
}

/** How a folder gets its first agent. */
export function initCure(dir: string): string {
  const path = resolve(dir)
  const parent = dirname(dir)
  if (basename(path) === 'agents')
    return `${initCommand()}${parent === '.' ? '' : ` ${parent}`} writes one to begin with`
  return `put a YAML file there, or let ${initCommand()} write one into ./agents`
}

function initCommand(): string {
  return `${process.env['npm_command'] === 'exec' ? 'npx ' : ''}millrace init`
}

/** The agents' files in a folder, in their order; none when it is none. */
export function agentFiles(dir: string): string[] {
  if (!statSync(dir, { throwIfNoEntry: false })?.isDirectory()) return []
  return readdirSync(dir)
    .filter((name) => /\.ya?ml$/u.test(name))
    .toSorted()
}
