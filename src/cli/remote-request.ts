/** Requests to a server. A refusal becomes an error that says what to do. */
import { MillraceError } from '../part/error.ts'
import { isLoopback } from '../server/http/foreign.ts'

export interface RemoteOptions {
  /** Sent with every request. */
  key?: string | undefined
  /** There may be a key, but it is not sent to this address. */
  isKeyKept?: boolean
}

/** An address to reach a server that listens on all addresses. */
export function reachableUrl(text: string): string {
  const url = new URL(text)
  if (url.hostname === '0.0.0.0') url.hostname = '127.0.0.1'
  if (url.hostname === '[::]') url.hostname = '[::1]'
  return url.origin
}

/** Whether the address is a loopback address. */
export function isOwnAddress(url: string): boolean {
  return isLoopback(new URL(url).hostname)
}

export interface RequestOptions {
  method?: string
  accept?: string
  /** The content type of the body. */
  type?: string
  body?: BodyInit
}

export type RemoteRequest = (path: string, init?: RequestOptions) => Promise<Response>

export function createRequest(url: string, { key, isKeyKept = false }: RemoteOptions): RemoteRequest {
  const headers: Record<string, string> = key === undefined ? {} : { authorization: `Bearer ${key}` }
  return async (path, { method = 'GET', accept = 'application/json', type, body } = {}) => {
    const all = { ...headers, accept, ...(type && { 'content-type': type }) }
    const init = { method, headers: all, ...(body !== undefined && { body }) }
    const response = await fetch(url + path, init).catch((cause: unknown) => {
      throw new MillraceError('server', `No server answers at ${url}.`, { cause })
    })
    if (response.ok) return response
    if (response.status === 401) throw unauthorized(url, { key, isKeyKept })
    const error = await errorOf(response, url + path)
    // A route, a method or a parameter that this server does not know: commands ask for none that their own version lacks.
    const isUnknown =
      error.code === 'method-not-allowed' || /^(?:There is nothing at|Unknown parameter) /u.test(error.message)
    throw isUnknown ? otherVersion(url, `it refuses ${method} ${path.replace(/\?.*$/u, '')}: ${error.message}`) : error
  }
}

export function otherVersion(url: string, what: string): MillraceError {
  const cure = 'Restart that server with this version, or use the command of its version.'
  return new MillraceError('server', `The server at ${url} is of another version: ${what.replace(/\.$/u, '')}. ${cure}`)
}

/** The error in a server's response. */
export async function errorOf(response: Response, url: string): Promise<MillraceError> {
  const body = (await response.json().catch(() => undefined)) as
    | { error?: { code?: string; message?: string } }
    | undefined
  const { code = 'server', message = `${url} answered ${response.status}. Is it a Millrace server?` } =
    body?.error ?? {}
  return new MillraceError(code, message)
}

function unauthorized(url: string, { key, isKeyKept = false }: RemoteOptions): MillraceError {
  const cure = isKeyKept
    ? `requires a key but has a non-loopback address. Add --url ${url} to send it MILLRACE_API_KEY.`
    : key === undefined
      ? 'requires a key: set MILLRACE_API_KEY.'
      : 'rejects the key in MILLRACE_API_KEY.'
  return new MillraceError('unauthorized', `The server at ${url} ${cure}`)
}
