/** The address of a store: `redis://user:password@host:6379,host2:6379/0?prefix=tenant`, or `rediss://…?ca=/path/ca.pem`. */
import { MillraceError, messageOf } from '../../part/error.ts'
import { readFileSync } from 'node:fs'
import { connect as connectPlain } from 'node:net'
import { connect as connectTls, createSecureContext } from 'node:tls'

export interface RedisAddress {
  /** The first host is asked for its role; several hosts are those of a cluster. */
  hosts: { host: string; port: number }[]
  tls: boolean
  username?: string
  password?: string
  database: number
  prefix: string
  /** Paths of PEM files: the trusted authority, and the client's certificate and key. */
  files?: { ca?: string; cert?: string; key?: string }
}

/** Whether an address is that of Redis. */
export function isRedisUrl(text: string): boolean {
  return /^rediss?:\/\//iu.test(text)
}

/** The address without user and password, for logs and errors. */
export function redactUrl(url: string): string {
  // Up to the last `@` of the hosts: a password may hold any character.
  const end = url.search(/[?#]/u)
  const [front, rest] = end < 0 ? [url, ''] : [url.slice(0, end), url.slice(end)]
  const at = front.lastIndexOf('@')
  const scheme = /^[a-z]+:\/\//iu.exec(front)?.[0] ?? ''
  const prefix = /[?&](prefix=[\w.:/-]*)/u.exec(rest)?.[1]
  // A password with an unescaped `?` or `#`: nothing after the scheme is safe to show.
  if (rest.includes('@')) return `${scheme}…`
  const place = at < 0 ? front : scheme + front.slice(at + 1)
  return prefix === undefined ? place : `${place}?${prefix}`
}

/** Throws `bad-config`, and never quotes the user or the password. */
export function parseRedisUrl(url: string): RedisAddress {
  const bad = (what: string) =>
    new MillraceError(
      'bad-config',
      `${redactUrl(url)}: ${what}. An address looks like redis://user:password@host:6379/0`,
    )
  const match = /^(rediss?):\/\/(?:([^@/?#]*)@)?([^/?#@]*)(?:\/([^?#@]*))?(?:\?([^#]*))?$/iu.exec(url)
  if (match === null) throw bad('not an address of Redis; escape @, / and ? in a password with %40, %2F and %3F')
  const [, scheme = '', user, places = '', path = '', query = ''] = match
  const hosts = places.split(',').map((place) => {
    const { host, port } = /^(?<host>\[[\da-f:.]+\]|[^:[\]\s]+)(?::(?<port>\d{1,5}))?$/iu.exec(place)?.groups ?? {}
    if (host === undefined || Number(port) > 65535) throw bad(`${places === '' ? 'no host' : 'not a host'}`)
    return { host: host.replace(/^\[(.*)\]$/u, '$1'), port: port === undefined ? 6379 : Number(port) }
  })
  if (!/^\d{0,4}$/u.test(path)) throw bad('the path must be the number of a database')
  const options = new URLSearchParams(query)
  const known = ['prefix', 'ca', 'cert', 'key']
  const isTls = scheme.toLowerCase() === 'rediss'
  for (const name of options.keys())
    if (!known.includes(name)) throw bad('the options are ?prefix=, and ca=, cert= and key= of rediss://')
  const address: RedisAddress = {
    hosts,
    tls: isTls,
    database: Number(path),
    prefix: options.get('prefix') ?? 'millrace',
  }
  const files = Object.fromEntries([...options].filter(([name]) => name !== 'prefix'))
  if (Object.keys(files).length > 0) {
    if (!isTls) throw bad('ca=, cert= and key= need rediss://')
    if ((files['cert'] === undefined) !== (files['key'] === undefined)) throw bad('cert= and key= go together')
    address.files = files
  }
  if (user === undefined) return address
  const colon = user.indexOf(':')
  try {
    const username = decodeURIComponent(colon < 0 ? user : user.slice(0, colon))
    if (username !== '') address.username = username
    if (colon >= 0) address.password = decodeURIComponent(user.slice(colon + 1))
  } catch {
    throw bad('the user or the password has a % that is no escape; write %25')
  }
  return address
}

/* TLS of the connection: the files that the URL names, certificate errors, and hosts whose protocol differs from the URL's. */

/** Options of the socket; undefined without TLS. Throws `bad-config` if a file cannot be used. */
export function tlsOptions({ tls, files = {} }: RedisAddress, shown: string) {
  if (!tls) return undefined
  const options: { ca?: string; cert?: string; key?: string } = {}
  for (const name of ['ca', 'cert', 'key'] as const) {
    const path = files[name]
    if (path === undefined) continue
    const bad = (why: string) => new MillraceError('bad-config', `${shown}: ?${name}=${path} ${why}`)
    try {
      options[name] = readFileSync(path, 'utf8')
    } catch (error) {
      throw bad(`cannot be read: ${messageOf(error)}`)
    }
    if (!/-----BEGIN [\w ]+-----/u.test(options[name])) throw bad('is no PEM file')
  }
  try {
    createSecureContext(options)
  } catch (error) {
    const names = Object.keys(options).map((name) => `?${name}=`)
    throw new MillraceError('bad-config', `${shown}: ${names.join(' and ')} cannot be used`, {
      detail: messageOf(error),
    })
  }
  return { tls: true as const, ...options }
}

/** Whether the connection failed because of TLS. Such an error is permanent. */
export function isTlsFault(error: unknown): error is Error & { code: string } {
  if (!(error instanceof Error) || !('code' in error) || typeof error.code !== 'string') return false
  return /^ERR_(?:SSL|TLS)_|CERT|^UNABLE_TO_|^HOSTNAME_MISMATCH$/u.test(error.code)
}

/** Timeout of a host in the URL's protocol before the other protocol is tried, in ms. */
const patience = 500

/**
 * Rejects if the host uses TLS and the URL is `redis://`, or the other way round. Redis does not report that: it closes the connection, or waits
 * for more.
 */
export function otherProtocol(address: RedisAddress, shown: string, signal: AbortSignal): Promise<never> {
  const { promise, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(ask, patience)
  signal.addEventListener('abort', () => clearTimeout(timer))
  function ask(): void {
    const { host, port } = address.hosts[0]!
    const place = { host, port, signal }
    const found = (what: string, scheme: string) => {
      const message = `${shown} ${what}: write ${scheme}://`
      reject(new MillraceError('store-failed', message))
    }
    // Sends no secrets, so no certificate is verified.
    const socket = address.tls
      ? connectPlain(place, () => void socket.write('PING\r\n'))
      : connectTls({ ...place, rejectUnauthorized: false }, () => {
          found('speaks TLS', 'rediss')
          socket.destroy()
        })
    socket.on('error', () => undefined)
    socket.once('data', (data) => {
      if (/^[+-]/u.test(data.toString('latin1'))) found('does not speak TLS', 'redis')
      socket.destroy()
    })
  }
  return promise
}
