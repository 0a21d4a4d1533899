/** The body of `millrace login`: by the device flow of the server's issuer, or with a key. */
import { pause } from '../../async/pause.ts'
import { checkKey } from '../../part/check-key.ts'
import { MillraceError } from '../../part/error.ts'
import { ownValue } from '../../part/own-value.ts'
import type { CommandContext } from '../context.ts'
import { forStream, printable } from '../terminal/output.ts'
import { serverUrl, writeCredential, type Credential } from './credentials.ts'
import { signInByDevice, type Issuer } from './device-flow.ts'
import { readSecret } from './secret-input.ts'

export interface LoginFlags {
  server: string
  key?: boolean
}

export interface LoginOptions {
  wait?: (ms: number) => Promise<void>
}

export async function logIn(
  context: CommandContext,
  flags: LoginFlags,
  { wait = pause }: LoginOptions = {},
): Promise<void> {
  const url = serverUrl(flags.server)
  const { stderr, env } = context
  const say = (line: string) => stderr.write(forStream(`${printable(line)}\n`, stderr))
  const issuer = await issuerOf(url)
  const show = (address: string, code: string) => say(`Sign in at ${address}\nThe code is ${code}`)
  const options = { show, wait, now: Date.now }
  const byDevice = issuer === undefined || flags.key === true ? undefined : await signInByDevice(issuer, options)
  const credential = byDevice ?? (await keyOf(context, url))
  await checkAccepted(url, credential)
  writeCredential(context, url, credential)
  say(`signed in to ${url}`)
  if (env['MILLRACE_API_KEY']) say('MILLRACE_API_KEY is set: commands use it instead.')
}

async function keyOf(context: CommandContext, url: string): Promise<Credential> {
  const key = await readSecret(context, `Key for ${url}: `)
  if (key === undefined) throw new MillraceError('usage', 'No key was given, so nothing has changed.')
  checkKey(key, 'The key')
  return { type: 'key', key }
}

async function get(url: string, path: string, token?: string): Promise<Response> {
  const headers = { accept: 'application/json', ...(token !== undefined && { authorization: `Bearer ${token}` }) }
  return fetch(url + path, { headers, redirect: 'error' }).catch((cause: unknown) => {
    throw new MillraceError('server', `No server answers at ${url}.`, { cause })
  })
}

/** Undefined for a server without a sign-in. */
async function issuerOf(url: string): Promise<Issuer | undefined> {
  const response = await get(url, '/auth/ways')
  const body: unknown = response.ok ? await response.json().catch(() => undefined) : undefined
  if (!response.ok) await response.body?.cancel()
  const login = objectOf(ownValue(objectOf(body), 'oidc'))
  const [issuer, clientId, scope] = ['issuer', 'clientId', 'scope'].map((key) => {
    const value = ownValue(login, key)
    return typeof value === 'string' ? value : undefined
  })
  if (issuer === undefined || clientId === undefined || !URL.canParse(issuer)) return undefined
  return { issuer, clientId, scope }
}

function objectOf(value: unknown): Record<string, unknown> | undefined {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined
}

/** Nothing that the server refuses is kept. */
async function checkAccepted(url: string, credential: Credential): Promise<void> {
  const response = await get(url, '/api/agents', credential.type === 'key' ? credential.key : credential.token)
  await response.body?.cancel()
  if (response.ok) return
  if (response.status !== 401) {
    throw new MillraceError('server', `${url} answered ${response.status}. Is it a Millrace server?`)
  }
  const what = credential.type === 'key' ? 'this key' : 'your account. Its report says why'
  throw new MillraceError('unauthorized', `The server at ${url} does not accept ${what}.`)
}
