/**
 * Loads `.env` from the folder of agents, then from the current folder. Variables that are already set are kept. Node's parser
 * reads the values; it silently skips lines that it cannot parse, so a missing "=" or quote is detected here.
 */
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { parseEnv } from 'node:util'
import type { Command } from 'commander'
import type { CommandContext } from './context.ts'
import { messageOf, MillraceError } from '../part/error.ts'

/** Commands that need the keys of agents: a mistake in the file is an error. The others only need the server's key. */
const strict: ReadonlySet<string> = new Set(['serve', 'run', 'chat', 'answer', 'check', 'schema'])
/** Commands whose arguments are folders; those of the others are agents or runs. */
const takesFolders: ReadonlySet<string> = new Set(['serve', 'check', 'schema'])

/** Adds the variables to `context.env` and returns the files. Throws `bad-env` with the file and the line. */
export function readEnvFiles(context: CommandContext, command: Command): string[] {
  const files = new Map([...foldersOf(command), '.'].map((dir) => [context.path(join(dir, '.env')), join(dir, '.env')]))
  return [...files.values()].filter((file) => {
    try {
      return addVariables(context, file)
    } catch (error) {
      if (strict.has(command.name())) throw error
      return false
    }
  })
}

/** The folders of agents on a command line. */
function foldersOf(command: Command): string[] {
  const { dir } = command.opts() as { dir?: string }
  const folders: string[] = dir === undefined ? [] : [dir]
  for (const word of command.processedArgs.flat() as unknown[]) {
    if (typeof word !== 'string') continue
    if (strict.has(command.name()) && /\.ya?ml$/u.test(word)) folders.push(dirname(word))
    else if (takesFolders.has(command.name())) folders.push(word)
  }
  return folders.length === 0 ? ['agents'] : folders
}

/** False if there is no such file. */
function addVariables(context: CommandContext, file: string): boolean {
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(context.path(file)))
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ENOTDIR') return false
    throw new MillraceError('bad-env', `${file} cannot be read: ${messageOf(error)}`, { cause: error })
  }
  const fault = faultOf(text)
  // The error does not quote the line: it may contain a key.
  if (fault !== undefined) throw new MillraceError('bad-env', `${file}:${fault.line}: ${fault.message}`)
  for (const [name, value] of Object.entries(parseEnv(text))) {
    if (!Object.hasOwn(context.env, name)) context.env[name] = value
  }
  return true
}

function faultOf(text: string): { line: number; message: string } | undefined {
  if (text.includes('\0')) return { line: 1, message: 'the file is not UTF-8 text; save it as UTF-8' }
  const lines = text.split(/\r?\n/u)
  for (let i = 0; i < lines.length; i++) {
    const line = lines[i]!.trim()
    if (line === '' || line.startsWith('#')) continue
    const [, value] = /^(?:export\s+)?[A-Za-z_][\w.-]*\s*=\s*(.*)$/u.exec(line) ?? []
    if (value === undefined) return { line: i + 1, message: 'expected NAME=value, or # for a comment' }
    const [quote] = value
    if (quote !== '"' && quote !== "'" && quote !== '`') continue
    // A quoted value may span lines, up to the next quote of the same kind.
    let end = i
    for (let rest = value.slice(1); !rest.includes(quote); rest = lines[end]!) {
      end++
      if (end === lines.length)
        return { line: i + 1, message: `the value starts with ${quote}, but the closing ${quote} is missing` }
    }
    i = end
  }
  return undefined
}
