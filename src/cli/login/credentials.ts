/**
 * What `millrace login` keeps: keys and tokens by the URL of their server, in `millrace/credentials.json` of the user's config folder, which only the
 * user can read.
 */
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { messageOf, MillraceError } from '../../part/error.ts'
import { parseJson } from '../../part/json.ts'
import { ownValue } from '../../part/own-value.ts'
import type { CommandContext } from '../context.ts'

export type Credential =
  | { type: 'key'; key: string }
  | {
      type: 'token'
      token: string
      /** Epoch ms. */
      expiresAt: number
      /** Gets the next token. */
      refreshToken?: string
      issuer: string
      clientId: string
    }

/** Of `--server` and `--url`, in one form. Throws `usage` if it is not a URL. */
export function serverUrl(text: string, flag = '--server'): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url?.protocol === 'http:' || url?.protocol === 'https:') return normalUrl(url)
  throw new MillraceError('usage', `${flag} must be a URL such as http://localhost:3000, not "${text}".`)
}

function normalUrl(url: URL): string {
  return url.origin + url.pathname.replace(/\/+$/u, '')
}

/** Throws `bad-credentials` if the file cannot be used. */
export function readCredential(context: CommandContext, url: string): Credential | undefined {
  return readAll(context).get(normalUrl(new URL(url)))
}

/** Undefined removes it. */
export function writeCredential(context: CommandContext, url: string, credential: Credential | undefined): void {
  const all = readAll(context)
  const name = normalUrl(new URL(url))
  if (credential === undefined) all.delete(name)
  else all.set(name, credential)
  const path = pathOf(context)
  if (all.size === 0) return void rmSync(path, { force: true })
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  // A new file replaces the old one, which would keep its mode.
  const made = `${path}.new`
  rmSync(made, { force: true })
  const text = JSON.stringify({ servers: Object.fromEntries(all) }, undefined, 2)
  writeFileSync(made, `${text}\n`, { mode: 0o600, flag: 'wx' })
  renameSync(made, path)
}

/** The URLs of servers with a credential. */
export function knownServers(context: CommandContext): string[] {
  return [...readAll(context).keys()]
}

export function pathOf({ env }: Pick<CommandContext, 'env'>): string {
  const home = env['HOME'] || env['USERPROFILE'] || homedir()
  const folder = env['XDG_CONFIG_HOME'] || (process.platform === 'win32' && env['APPDATA']) || join(home, '.config')
  return join(folder, 'millrace', 'credentials.json')
}

function readAll(context: CommandContext): Map<string, Credential> {
  const path = pathOf(context)
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ENOTDIR') return new Map()
    throw new MillraceError('bad-credentials', `${path} cannot be read: ${messageOf(error)}`, { cause: error })
  }
  const servers = objectIn(parsed(text), 'servers')
  // The text is not quoted: it has secrets.
  if (servers === undefined) {
    const cure = 'Delete it and run: millrace login --server <url>'
    throw new MillraceError('bad-credentials', `${path} is not a file of millrace login. ${cure}`)
  }
  const found = new Map<string, Credential>()
  for (const url of Object.keys(servers)) {
    const credential = toCredential(objectIn(servers, url))
    if (credential !== undefined) found.set(url, credential)
  }
  return found
}

function parsed(text: string): unknown {
  try {
    return parseJson(text)
  } catch {
    return undefined
  }
}

function objectIn(value: unknown, key: string): Record<string, unknown> | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const found = ownValue(value as Record<string, unknown>, key)
  return typeof found === 'object' && found !== null ? (found as Record<string, unknown>) : undefined
}

/** People edit files. */
function toCredential(value: Record<string, unknown> | undefined): Credential | undefined {
  const text = (key: string) => {
    const found = ownValue(value, key)
    return typeof found === 'string' ? found : undefined
  }
  const key = text('key')
  if (key !== undefined) return { type: 'key', key }
  const [token, issuer, clientId, refreshToken] = ['token', 'issuer', 'clientId', 'refreshToken'].map(text)
  const expiresAt = ownValue(value, 'expiresAt')
  if (token === undefined || issuer === undefined || clientId === undefined) return undefined
  if (typeof expiresAt !== 'number') return undefined
  return { type: 'token', token, issuer, clientId, expiresAt, ...(refreshToken !== undefined && { refreshToken }) }
}
