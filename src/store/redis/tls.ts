/** TLS of the connection: the files that the URL names, what goes wrong with certificates, and who speaks TLS where the URL says otherwise. */
import { readFileSync } from 'node:fs'
import { connect as connectPlain } from 'node:net'
import { connect as connectTls, createSecureContext } from 'node:tls'
import { MillraceError, messageOf } from '../../part/error.ts'
import type { RedisAddress } from './url.ts'

/** Options of the socket; undefined: not TLS. Throws `bad-config` if a file cannot be used. */
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

/** Whether TLS is why there is no connection. It stays so. */
export function isTlsFault(error: unknown): error is Error & { code: string } {
  if (!(error instanceof Error) || !('code' in error) || typeof error.code !== 'string') return false
  return /^ERR_(?:SSL|TLS)_|CERT|^UNABLE_TO_|^HOSTNAME_MISMATCH$/u.test(error.code)
}

/** How long a host gets to answer in the protocol of the URL before it is asked in the other one, in ms. */
const patience = 500

/**
 * Rejects if the host speaks TLS and the URL says `redis://`, or the other way round. Redis does not tell: it closes the connection, or
 * waits for more.
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
    // Asks nothing that is a secret, so nothing must be trusted.
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
