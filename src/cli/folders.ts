/** Checks the folders on a command line, before anything is opened or created. */
import { existsSync, readdirSync, statSync } from 'node:fs'
import { basename, dirname, resolve } from 'node:path'
import { MillraceError } from '../part/error.ts'

/** Throws `usage` if `--data` cannot be a folder. It may not exist yet. */
export function checkData(data: string): void {
  if (data === 'none') return
  let at = data
  while (at !== dirname(at) && !existsSync(at)) at = dirname(at)
  if (!existsSync(at) || statSync(at).isDirectory()) return
  const file = at === data ? `${data} is a file` : `${data} cannot be a folder: ${at} is a file`
  const meant = basename(data) === 'millrace.db' ? `: --data ${dirname(data)}` : ''
  throw new MillraceError('usage', `--data ${file}. Pass the folder that contains the log${meant}.`)
}

/** Throws `usage` if there is no such folder of agents. */
export function checkAgents(dir: string, command: 'run' | 'serve'): void {
  const found = statSync(dir, { throwIfNoEntry: false })
  if (found?.isDirectory()) return
  if (found === undefined) {
    const other = command === 'run' ? ', or use another folder with --dir' : ''
    throw new MillraceError('usage', `There is no folder of agents at ${dir}. ${initCure(dir)}${other}.`)
  }
  const cure = command === 'serve' ? `Serve its folder with: millrace serve ${dirname(dir)}` : 'Pass a folder.'
  throw new MillraceError('usage', `${dir} is a file, not a folder of agents. ${cure}`)
}

/** How to create the first agent: a sentence without its full stop. */
export function initCure(dir: string): string {
  const path = resolve(dir)
  const parent = dirname(dir)
  if (basename(path) === 'agents') return `Create one with ${initCommand()}${parent === '.' ? '' : ` ${parent}`}`
  return `Put a YAML file there, or create ./agents with ${initCommand()}`
}

function initCommand(): string {
  return `${process.env['npm_command'] === 'exec' ? 'npx ' : ''}millrace init`
}

/** The agent files of a folder, sorted; empty if it is not a folder. */
export function agentFiles(dir: string): string[] {
  if (!statSync(dir, { throwIfNoEntry: false })?.isDirectory()) return []
  return readdirSync(dir)
    .filter((name) => /\.ya?ml$/u.test(name))
    .toSorted()
}
