/** A connection to a server, over HTTP: finds the server, sends requests, and turns refusals into errors with a cure. */
import type { RunView } from '../../fold/run-view.ts'
import { checkKey } from '../../part/check-key.ts'
import type { AuditRow } from '../../part/audit.ts'
import type { FeedbackRow } from '../../part/feedback.ts'
import { omitUndefined } from '../../part/omit-undefined.ts'
import type { Entry } from '../../part/entry.ts'
import { MillraceError, type ErrorValue } from '../../part/error.ts'
import { parseJson } from '../../part/json.ts'
import type { RunRow } from '../../part/log.ts'
import type { MessageMode } from '../../part/sent-message.ts'
import type { ThreadRow } from '../../part/thread.ts'
import type { Deleted } from '../../record/delete.ts'
import type { Stats } from '../../record/stats.ts'
import { isHeld } from '../../server/data-lock.ts'
import { isLoopback } from '../../part/loopback.ts'
import { readServerFile } from '../../server/server-file.ts'
import type { ShownThread } from '../../server/show-thread.ts'
import { createNdjsonReader } from '../../store/ndjson.ts'
import type { Connection, OnProgress, RunImporter, RunUpkeep, UpkeepResult } from '../connection.ts'
import type { CommandContext } from '../context.ts'
import { serverUrl } from '../login/credentials.ts'
import { storedAccess } from '../login/stored-access.ts'

interface Access {
  /** Sent with every request. */
  key?: string | undefined
  /** There may be a key, but it is not sent to this address. */
  isKeyKept?: boolean
  /** The key is what `millrace login` has kept. */
  isSignIn?: boolean
}

export interface LiveServer extends Access {
  url: string
  /** The real path of its folder of agents. */
  dir?: string | undefined
  /** Hashes of its endpoints. */
  endpoints?: readonly string[] | undefined
}

/** Undefined if no server runs on the data folder, or it does not answer. */
export async function findServer(context: CommandContext, data: string): Promise<LiveServer | undefined> {
  // Only the lock proves that a server runs: a crash may have left the file behind, or anyone may have written it.
  const file = isHeld(context.path(data), 'server') ? readServerFile(context.path(data)) : undefined
  if (file?.url === undefined || !URL.canParse(file.url)) return undefined
  const url = reachableUrl(file.url)
  if (!(await isHealthy(url))) return undefined
  const isOwn = isLoopback(new URL(url).hostname)
  const { dir, endpoints } = file
  const key = apiKey(context)
  if (key !== undefined) return { url, dir, endpoints, key: isOwn ? key : undefined, isKeyKept: !isOwn }
  // It was kept for this very address.
  const stored = await storedAccess(context, url)
  return { url, dir, endpoints, isKeyKept: !isOwn && stored === undefined, ...stored }
}

/** `--url`: trusted with the key, on any host. Rejects with `usage` if it is not a URL, and with `unauthorized` if a sign-in has ended. */
export async function namedServer(context: CommandContext, text: string): Promise<LiveServer> {
  const url = serverUrl(text, '--url')
  const key = apiKey(context)
  return key === undefined ? { url, ...(await storedAccess(context, url)) } : { url, key }
}

function apiKey(context: CommandContext): string | undefined {
  const key = context.env['MILLRACE_API_KEY'] || undefined
  if (key !== undefined) checkKey(key, 'MILLRACE_API_KEY')
  return key
}

/** An address to reach a server that listens on all addresses. */
function reachableUrl(text: string): string {
  const url = new URL(text)
  if (url.hostname === '0.0.0.0') url.hostname = '127.0.0.1'
  if (url.hostname === '[::]') url.hostname = '[::1]'
  return url.origin
}

async function isHealthy(url: string): Promise<boolean> {
  try {
    return (await fetch(`${url}/health`, { signal: AbortSignal.timeout(5000) })).ok
  } catch {
    return false
  }
}

interface RequestOptions {
  method?: string
  accept?: string
  /** The content type of the body. */
  type?: string
  body?: BodyInit
}

/** Rejects unless the response is a 2xx. */
export type ServerRequest = (path: string, init?: RequestOptions) => Promise<Response>

export function createRequest({ url, key, isKeyKept, isSignIn }: LiveServer): ServerRequest {
  const headers: Record<string, string> = key === undefined ? {} : { authorization: `Bearer ${key}` }
  return async (path, { method = 'GET', accept = 'application/json', type, body } = {}) => {
    const all = { ...headers, accept, ...(type && { 'content-type': type }) }
    const init = { method, headers: all, ...(body !== undefined && { body }) }
    const response = await fetch(url + path, init).catch((cause: unknown) => {
      throw new MillraceError('server', `No server answers at ${url}.`, { cause })
    })
    if (response.ok) return response
    if (response.status === 401) throw unauthorized(url, { key, isKeyKept, isSignIn })
    const error = await errorOf(response, url + path)
    // A server of our version has every route, method and parameter that commands use.
    const isUnknown =
      error.code === 'method-not-allowed' || /^(?:There is nothing at|Unknown parameter) /u.test(error.message)
    throw isUnknown ? otherVersion(url, `it refuses ${method} ${withoutQuery(path)}: ${error.message}`) : error
  }
}

/**
 * Requests with the key of the server, whatever it answers. `find`: after a failure, for the next request: a server that was started again may have
 * another port.
 */
export function fetchFrom(
  server: LiveServer,
  find: () => Promise<LiveServer | undefined> = () => Promise.resolve(undefined),
): (path: string, init?: RequestInit) => Promise<Response> {
  let { url, key } = server
  return async (path, init = {}) => {
    const headers = new Headers(init.headers)
    if (key !== undefined) headers.set('authorization', `Bearer ${key}`)
    try {
      return await fetch(url + path, { ...init, headers })
    } catch (cause) {
      if (init.signal?.aborted !== true) ({ url, key } = (await find()) ?? { url, key })
      throw new MillraceError('server', `No server answers at ${url}.`, { cause })
    }
  }
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

function unauthorized(url: string, { key, isKeyKept = false, isSignIn = false }: Access): MillraceError {
  const cure = isKeyKept
    ? `requires a key but has a non-loopback address. Add --url ${url} to send it MILLRACE_API_KEY.`
    : key === undefined
      ? `requires a key: set MILLRACE_API_KEY, or run: millrace login --server ${url}`
      : isSignIn
        ? `no longer accepts your sign-in. Run: millrace login --server ${url}`
        : 'rejects the key in MILLRACE_API_KEY.'
  return new MillraceError('unauthorized', `The server at ${url} ${cure}`)
}

function otherVersion(url: string, what: string): MillraceError {
  const cure = 'Restart that server with this version, or use the command of its version.'
  return new MillraceError('server', `The server at ${url} is of another version: ${what.replace(/\.$/u, '')}. ${cure}`)
}

function withoutQuery(path: string): string {
  return path.replace(/\?.*$/u, '')
}

export function serverConnection(server: LiveServer): Connection & { url: string } {
  return { url: server.url, ...requestConnection(createRequest(server), server.url) }
}

/** Fields of a run that commands read. */
const runFields = [
  ...(['id', 'agent', 'threadId', 'protocol', 'status', 'startedAt', 'lastSeq', 'input', 'messages'] as const),
  ...(['steps', 'usage', 'usageByModel', 'requests', 'summary'] as const),
]

/** Whatever answers the requests: a server, or the handler of this process. */
export function requestConnection(request: ServerRequest, url: string): Connection {
  /** A server of another version may have no such route, refuse a parameter, or answer something else. */
  async function get<T extends object>(path: string, needed: readonly (keyof T & string)[]): Promise<T> {
    const response = await request(path)
    const found = (await response.json().catch(() => undefined)) as Partial<T> | null | undefined
    const missing = needed.filter((name) => found?.[name] === undefined)
    if (missing.length === 0) return found as T
    throw otherVersion(url, `its answer to GET ${withoutQuery(path)} has no ${missing.join(', ')}`)
  }

  async function view(run: string): Promise<RunView> {
    const { id, ...rest } = await get<RunView & { id: string }>(`/api/runs/${encodeURIComponent(run)}`, runFields)
    return { ...rest, runId: id }
  }

  return {
    view,
    async list({ threadId, search, owner, ...query }) {
      const found = params({ ...query, thread: threadId, q: search, user: owner })
      return (await get<{ runs: RunRow[] }>(`/api/runs?${found}`, ['runs'])).runs
    },
    async threads(query) {
      return (await get<{ threads: ThreadRow[] }>(`/api/threads?${params({ ...query })}`, ['threads'])).threads
    },
    async thread(id, { messages, runs } = {}) {
      const search = params({ messages, limit: runs })
      return get<ShownThread>(`/api/threads/${encodeURIComponent(id)}${search === '' ? '' : `?${search}`}`, ['runs'])
    },
    status: async (run) => (await view(run)).status,
    async *read(run, after, follow): AsyncGenerator<Entry> {
      const query = `after=${after}${follow ? '&follow=1' : ''}`
      const response = await request(`/api/runs/${encodeURIComponent(run)}/events?${query}`, {
        accept: 'application/x-ndjson',
      })
      if (response.body === null) return
      const reader = createNdjsonReader({ isStored: true })
      const chunks = response.body.pipeThrough(new TextDecoderStream()).getReader()
      for (;;) {
        const { done, value } = await chunks.read().catch((cause: unknown) => {
          throw new MillraceError('server', `Lost the connection to the server at ${url}.`, { cause })
        })
        if (done) break
        yield* reader.feed(value)
      }
      yield* reader.end()
    },
    feedback: async (run) =>
      (await get<{ rows: FeedbackRow[] }>(`/api/runs/${encodeURIComponent(run)}/feedback`, ['rows'])).rows,
    orphanOutcome: async () => undefined,
    async tell(run, message) {
      const how = { method: 'POST', type: 'application/json', body: JSON.stringify(message) }
      const response = await request(`/api/runs/${encodeURIComponent(run)}/messages`, how)
      return (await response.json()) as { id: string; mode: MessageMode }
    },
    async stop(run) {
      await request(`/api/runs/${encodeURIComponent(run)}/stop`, { method: 'POST' })
    },
    stats: async (queryAt) =>
      (await (await request(`/api/stats?${params({ ...queryAt(Date.now()) })}`)).json()) as Stats,
    usage: async (queryAt) => get(`/api/usage?${params({ ...queryAt(Date.now()) })}`, ['rows']),
    audit: async ({ principal, ...query }) =>
      (await get<{ rows: AuditRow[] }>(`/api/audit?${params({ ...query, user: principal })}`, ['rows'])).rows,
    upkeep: async () => requestUpkeep(request),
    importer: async () => requestImporter(request),
    close: async () => undefined,
  }
}

function params(fields: Record<string, unknown>): string {
  const given = Object.entries(omitUndefined(fields)).map(([name, value]) => [name, String(value)])
  return new URLSearchParams(Object.fromEntries(given) as Record<string, string>).toString()
}

function requestUpkeep(request: ServerRequest): RunUpkeep {
  async function post<T>(path: string, options: object, onProgress: OnProgress): Promise<UpkeepResult<T>> {
    const body = JSON.stringify(options)
    return readResult<T>(await request(path, { method: 'POST', type: 'application/json', body }), onProgress)
  }
  const remove = async (path: string, id: string) =>
    (await (await request(`${path}/${encodeURIComponent(id)}`, { method: 'DELETE' })).json()) as Deleted
  return {
    compact: (options, onProgress) => post('/api/compact', options, onProgress),
    prune: (options, onProgress) => post('/api/prune', options, onProgress),
    deleteRun: (id) => remove('/api/runs', id),
    deleteThread: (id) => remove('/api/threads', id),
  }
}

export function requestImporter(request: ServerRequest): RunImporter {
  return {
    async find(id) {
      const { runs } = (await (await request(`/api/runs?idPrefix=${id}`)).json()) as { runs: RunRow[] }
      return { row: runs.find((each) => each.id === id) }
    },
    async import(lines) {
      const body = Buffer.concat(lines)
      const response = await request('/api/runs/import', { method: 'POST', type: 'application/x-ndjson', body })
      return { ...((await response.json()) as RunRow), isNew: response.status === 201 }
    },
  }
}

type ResultLine<T> = { progress?: { runs: number }; done?: UpkeepResult<T>; error?: ErrorValue }

/** Lines of progress, then one with the result. */
async function readResult<T>(response: Response, onProgress: OnProgress): Promise<UpkeepResult<T>> {
  let rest = ''
  for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + chunk).split('\n')
    rest = lines.pop()!
    for (const line of lines) {
      const { progress, done, error } = parseJson(line) as ResultLine<T>
      if (error !== undefined) throw new MillraceError(error.code, error.message)
      if (progress !== undefined) onProgress(progress.runs)
      if (done !== undefined) return done
    }
  }
  throw new MillraceError(
    'server',
    'Lost the connection to the server. What was done stays done: run the command again.',
  )
}
