/** One request of a command to a server: what it refuses is an error whose words say what to do. */
import { MillraceError } from '../part/error.ts'
import { isLoopback } from '../server/loopback.ts'

export interface RemoteOptions {
  /** Sent with every request. */
  key?: string | undefined
  /** There may be a key, which this address does not get. */
  isKeyKept?: boolean
}

/** What a server that listens on all addresses is asked at. */
export function reachableUrl(text: string): string {
  const url = new URL(text)
  if (url.hostname === '0.0.0.0') url.hostname = '127.0.0.1'
  if (url.hostname === '[::]') url.hostname = '[::1]'
  return url.origin
}

/** Whether what is sent there stays on this machine. */
export function isOwnAddress(url: string): boolean {
  return isLoopback(new URL(url).hostname)
}

export interface RequestOptions {
  method?: string
  accept?: string
}

export type RemoteRequest = (path: string, init?: RequestOptions) => Promise<Response>

export function createRequest(url: string, { key, isKeyKept = false }: RemoteOptions): RemoteRequest {
  const headers: Record<string, string> = key === undefined ? {} : { authorization: `Bearer ${key}` }
  return async (path, { method = 'GET', accept = 'application/json' } = {}) => {
    const response = await fetch(url + path, { method, headers: { ...headers, accept } }).catch((cause: unknown) => {
      throw new MillraceError('server', `No server answers at ${url}.`, { cause })
    })
    if (response.ok) return response
    if (response.status === 401) throw unauthorized(url, { key, isKeyKept })
    throw await errorOf(response, url + path)
  }
}

/** What a server refuses, in its own words. */
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
    ? `is not on this machine's own address: add --url ${url} to send it MILLRACE_API_KEY.`
    : key === undefined
      ? 'wants its key: set MILLRACE_API_KEY.'
      : 'refuses the key that MILLRACE_API_KEY holds.'
  return new MillraceError('unauthorized', `The server at ${url} ${cure}`)
}
