/** The environment of a child process: what every program needs to run, and the variables that the agent names. */
import { MillraceError } from '../part/error.ts'
import { ownValue } from '../part/own-value.ts'

/** Variables that every child process inherits: places, language and time zone, no secrets. docs/cli-agents.md lists them. */
export const inherited = [
  'PATH',
  'HOME',
  'LOGNAME',
  'USER',
  'SHELL',
  'TERM',
  'LANG',
  'LC_ALL',
  'LC_CTYPE',
  'TZ',
  'TMPDIR',
  'APPDATA',
  'COMSPEC',
  'HOMEDRIVE',
  'HOMEPATH',
  'LOCALAPPDATA',
  'PATHEXT',
  'PROCESSOR_ARCHITECTURE',
  'PROGRAMFILES',
  'SYSTEMDRIVE',
  'SYSTEMROOT',
  'TEMP',
  'TMP',
  'USERNAME',
  'USERPROFILE',
] as const

export type Environment = Readonly<Record<string, string | undefined>>

/** `names`: those that the agent allows; one that ends in `?` may be unset. Throws `missing-env`. */
export function childEnv(names: readonly string[], environment: Environment): Record<string, string> {
  const env = new Map<string, string>()
  const missing: string[] = []
  for (const name of inherited) {
    const value = ownValue(environment, name)
    // Such a value is an exported shell function.
    if (value !== undefined && !value.startsWith('()')) env.set(name, value)
  }
  for (const written of names) {
    const name = written.replace(/\?$/u, '')
    const value = ownValue(environment, name)
    if (value !== undefined) env.set(name, value)
    else if (name === written) missing.push(name)
  }
  if (missing.length === 0) return Object.fromEntries(env)
  const list = missing.join(', ')
  const cure = `Set it for the server, or write "${missing[0]}?" in "env" if it may be unset.`
  throw new MillraceError('missing-env', `The environment variable ${list} is not set. ${cure}`)
}
