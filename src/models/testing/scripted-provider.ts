/** A provider over HTTP whose responses a test defines. */
import { createServer, type RequestListener, type Server } from 'node:http'
import { once } from 'node:events'
import { type AddressInfo } from 'node:net'
import { createProviderFetch } from '../provider-fetch.ts'

export const providerFetch = createProviderFetch({ who: 'box:tiny' })

export const symbol = Symbol.for('undici.globalDispatcher.1')

export const holder = globalThis as unknown as Record<symbol, { dispatch(...args: unknown[]): unknown }>

export const { fetch } = globalThis

export const dispatcher = holder[symbol]!

export const servers: Server[] = []

export function setDispatcher(value: unknown): void {
  Object.defineProperty(globalThis, symbol, { value, writable: true, configurable: false, enumerable: false })
}

export async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, '127.0.0.1')
  servers.push(server)
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** Makes requests through the platform’s `fetch` fail. */
export function forbidFetch(): void {
  const own = fetch.toString()
  const forbidden = () => Promise.reject(new Error('the platform was asked'))
  globalThis.fetch = Object.assign(forbidden, { toString: () => own })
}

export const post = { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"a":"ü"}' }
