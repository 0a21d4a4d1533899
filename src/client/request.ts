/** Sends one request to a Millrace server. Anything but a success rejects with a `MillraceError` with the server's message. */
import { omitUndefined } from '../part/omit-undefined.ts'
import { messageOf, MillraceError } from '../part/error.ts'
import { pause } from '../async/pause.ts'

export interface ServerAddress {
  /** Without a trailing slash; empty for the page's own origin. */
  url: string
  headers: Record<string, string>
  fetch: typeof fetch
}

/** Options of `client.request`. `body` is sent as JSON. */
export interface RequestOptions {
  method?: 'GET' | 'POST' | 'DELETE'
  body?: unknown
  accept?: string
  headers?: Record<string, string>
  signal?: AbortSignal
}

/** Rejects with `connection-lost` when the server cannot be reached, else with the server's code; `status` is the HTTP status, `retryAfter` in seconds. */
export async function request({ url, headers, fetch }: ServerAddress, path: string, init: RequestOptions = {}) {
  const { method = 'GET', body, accept = 'application/json', signal } = init
  let response: Response
  try {
    response = await fetch(url + path, {
      method,
      headers: {
        accept,
        ...(body === undefined ? undefined : { 'content-type': 'application/json' }),
        ...headers,
        ...init.headers,
      },
      ...(body === undefined ? undefined : { body: JSON.stringify(body) }),
      ...omitUndefined({ signal }),
    })
  } catch (cause) {
    if (signal?.aborted) throw cause
    throw new MillraceError('connection-lost', `${url}${path} cannot be reached: ${messageOf(cause)}`, { cause })
  }
  if (response.ok) return response
  const answer = (await response.json().catch(() => undefined)) as Partial<{ error: ErrorBody }> | undefined
  const {
    code = 'http',
    message = `${url}${path} responded with status ${response.status}.`,
    which,
  } = answer?.error ?? {}
  const retryAfter = Number(response.headers.get('retry-after')) || undefined
  throw new MillraceError(code, message, { status: response.status, retryAfter, which })
}

export async function getJson<T>(connection: ServerAddress, path: string): Promise<T> {
  return (await (await request(connection, path)).json()) as T
}

/** `?a=1&b=2`, or nothing. */
export function queryOf(parameters: object): string {
  const pairs = Object.entries(omitUndefined(parameters)).map(([name, value]): [string, string] => [
    name,
    String(value),
  ])
  return pairs.length === 0 ? '' : `?${new URLSearchParams(pairs).toString()}`
}

interface ErrorBody {
  code?: string
  message?: string
  /** The quota that is used up. */
  which?: string
}

/** Retries a request when the connection broke or the server shuts down: another server may answer. Only for requests that may run twice. */
const mostTries = 5

/** The longest that a server can make it wait between two tries, in ms. */
const mostWait = 2000

/** About 1.5 s of tries, or as the server says when to try again. Rejects with the last failure. */
export async function again<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
  let wait: number
  for (let tries = 1; ; tries++) {
    try {
      return await work()
    } catch (error) {
      const { code, retryAfter = 0 } = error as Partial<MillraceError>
      wait = Math.max(100 * 2 ** (tries - 1), Math.min(mostWait, retryAfter * 1000))
      const mayWork = code === 'connection-lost' || code === 'closing'
      if (!mayWork || tries === mostTries || signal?.aborted) throw error
    }
    await pause(wait, signal)
  }
}
