/** The environment of an MCP server's process. */
import { ownValue } from '../../part/own-value.ts'
import type { McpStdioServer } from './server.ts'

/** Environment variables that every server inherits: locations, no secrets. */
const inherited = [
  'HOME',
  'LOGNAME',
  'PATH',
  'SHELL',
  'TERM',
  'USER',
  'APPDATA',
  'HOMEDRIVE',
  'HOMEPATH',
  'LOCALAPPDATA',
  'PROCESSOR_ARCHITECTURE',
  'SYSTEMDRIVE',
  'SYSTEMROOT',
  'TEMP',
  'USERNAME',
  'USERPROFILE',
  'PROGRAMFILES',
]

/** The variables that every server inherits, and those of its config. */
export function childEnv(env: McpStdioServer['env']): Record<string, string> {
  return { ...defaultEnv(), ...pickEnv(env) }
}

function defaultEnv(): Record<string, string> {
  return Object.fromEntries(
    inherited.flatMap((name) => {
      const value = ownValue(process.env, name)
      // Such a value is an exported shell function.
      return value === undefined || value.startsWith('()') ? [] : [[name, value]]
    }),
  )
}

function pickEnv(env: McpStdioServer['env'] = []): Record<string, string> {
  if (!isNames(env)) return env
  return Object.fromEntries(env.map((name) => [name, ownValue(process.env, name)!]))
}

/** The names of its config that are not set here. */
export function missingEnv(env: McpStdioServer['env'] = []): string[] {
  return isNames(env) ? env.filter((name) => ownValue(process.env, name) === undefined) : []
}

function isNames(env: NonNullable<McpStdioServer['env']>): env is readonly string[] {
  return Array.isArray(env)
}
