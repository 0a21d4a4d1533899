/**
 * One connected client: the runs that it has started or watches. Runs belong to the server, so only cursors end with the connection; the disconnect
 * policies of the runs decide about runs without readers.
 */
import type { Socket } from 'socket.io'
import { MillraceError, toMillraceError } from '../../part/error.ts'
import type { Permit } from '../../part/limits.ts'
import type { DisconnectPolicy } from '../../pipeline/pipeline.ts'
import type { AgUiEvent, AgUiOptions } from '../../wire/ag-ui/ag-ui-event.ts'
import type { Admission, RequestCaller } from '../http/admission.ts'
import { createDrain, followRun, type FollowedRun, type SessionContext, emitEvents } from './followed-run.ts'
import { type Position, bad, requiredText, type Data, type MessageReply } from './message.ts'
import { fromPromises, nextPiece, sourceOf, type BodySource } from '../../delivery/streamed-body.ts'
import { ownValue } from '../../part/own-value.ts'
import { PipelineError } from '../../pipeline/fault.ts'
import { didYouMean } from '../../pipeline/nearest.ts'
import type { Fault } from '../../pipeline/pipeline.ts'
import { editTokenHeader } from '../http/editing.ts'
import { noteAddress } from '../http/incoming-request.ts'

/** Maximum number of runs that a client may start or watch at the same time. */
export const mostRuns = 64
/** Maximum number of ended runs whose calls are kept, to report their outcome after a late reply. */
const mostOver = 64

export interface FollowedTurn {
  runId: string
  /** The client's id of the run. */
  label: string
  threadId: string
  after?: Position
  isNew: boolean
  answered?: ReadonlySet<string>
  options: Partial<AgUiOptions>
  policy: DisconnectPolicy
  /** Its place in the limit of open streams. */
  place: Permit | undefined
}

export interface Session {
  /** The remote address of the connection. */
  readonly address: string
  /** Runs that are being started, by the client's id. Resolves with our id. */
  readonly starting: Map<string, Promise<string>>
  /** The runs that it follows, and the last ended ones. */
  readonly followed: ReadonlyMap<string, FollowedRun>
  /** Number of runs that are or will be followed. */
  readonly active: number
  readonly requests: PassedRequests
  /** Follows a run, and ends an earlier cursor of it. `begin` starts sending. */
  follow(how: FollowedTurn): Promise<FollowedRun>
  /** Registers a message that will follow a run. Returns the same promise. */
  track<T>(message: Promise<T>): Promise<T>
  /** Resolves when all runs of earlier messages are followed, and their stored entries are known. */
  caughtUp(): Promise<void>
  emit(event: AgUiEvent, sentWith: object): void
  leave(): void
}

export function createSession(context: SessionContext, socket: Socket): Session {
  const drain = createDrain(socket.conn)
  const requests = createPassedRequests(context, socket)
  const followed = new Map<string, FollowedRun>()
  const starting = new Map<string, Promise<string>>()
  /** The last request to follow each run: an earlier pending one is dropped. */
  const wanted = new Map<string, object>()
  const opening = new Set<Promise<unknown>>()
  let active = 0
  let hasLeft = false

  function forgetOver(): void {
    let over = 0
    for (const { isOver } of followed.values()) if (isOver) over++
    for (const [id, { isOver }] of followed) {
      if (over <= mostOver) break
      if (isOver && followed.delete(id)) over--
    }
  }

  return {
    address: socket.handshake.address,
    starting,
    followed,
    requests,
    get active() {
      return active + starting.size
    },
    emit: (event, sentWith) => void socket.emit('event', event, sentWith),

    async follow({ runId, place, ...how }) {
      const me = {}
      wanted.set(runId, me)
      followed.get(runId)?.leave()
      active++
      const onEnd = () => {
        active--
        place?.leave()
        if (wanted.get(runId) === me) wanted.delete(runId)
      }
      let run: FollowedRun
      try {
        run = await followRun(context, { runId, ...how, drain, emit: (events) => emitEvents(socket, events), onEnd })
      } catch (error) {
        onEnd()
        throw error
      }
      if (hasLeft || wanted.get(runId) !== me) {
        run.leave()
        return run
      }
      followed.delete(runId)
      followed.set(runId, run)
      forgetOver()
      return run
    },

    track(message) {
      opening.add(message)
      const forget = () => void opening.delete(message)
      message.then(forget, forget)
      return message
    },

    async caughtUp() {
      await Promise.allSettled(opening)
      await Promise.all([...followed.values()].map((run) => run.caughtUp))
    },

    leave() {
      hasLeft = true
      requests.leave()
      for (const run of followed.values()) run.leave()
      followed.clear()
    },
  }
}

/** A place for one more followed run. Throws if there are too many. */
export async function openPlace(admission: Admission | undefined, caller: RequestCaller): Promise<Permit | undefined> {
  const place = await admission?.stream(caller)
  if (place instanceof Error) throw place
  return place
}

/** The error message for a client. */
export function toldError(
  error: unknown,
  onError: (error: unknown) => void,
): { message: string; code: string; retryAfter?: number; faults?: readonly Fault[] } {
  if (!(error instanceof MillraceError)) onError(error)
  const { code, message, retryAfter } = toMillraceError(error, 'internal')
  const faults = error instanceof PipelineError && { faults: error.faults }
  return { message, code, ...(retryAfter !== undefined && { retryAfter }), ...faults }
}

/**
 * `request`: a request to the HTTP routes under `/api`, over this connection, so that a client needs one connection for everything. The routes
 * decide about access and responses.
 */
interface PassedRequests {
  /** Number of streaming responses. */
  readonly size: number
  /** Those that say who the client is, and whether it may edit agents. */
  readonly headers: Headers
  pass(data: Data): Promise<MessageReply>
  /** Later requests are made with this token. */
  renew(token: string): void
  /** Ends a streaming response, if there is one with this id. */
  cancel(data: Data): Promise<MessageReply>
  leave(): void
}

/** Maximum number of responses that stream to one client at the same time. */
const mostStreams = 256
/** Maximum number of unacknowledged chunks of a client. */
const mostUntaken = 8

const methods = ['GET', 'POST', 'DELETE'] as const
/** The characters that a header can contain. */
const isHeaderValue = /^[\t -~\u0080-\u00ff]*$/u
const passedHeaders = [
  'accept',
  'idempotency-key',
  'last-event-id',
  'traceparent',
  'x-millrace-ui',
  editTokenHeader,
] as const

/** The headers of a handshake that say who the client is and whether it may edit agents, with its tokens among them. */
export function headersOf(
  { headers: given, auth }: Pick<Socket['handshake'], 'headers' | 'auth'>,
  token: unknown,
): Headers {
  const { host = 'localhost', origin, cookie } = given
  const { editToken } = auth as { editToken?: unknown }
  const headers = new Headers({ host })
  if (origin !== undefined) headers.set('origin', origin)
  if (cookie !== undefined) headers.set('cookie', cookie)
  // A server that does not ask accepts any token: one that no header can contain is dropped.
  if (isToken(token)) headers.set('authorization', `Bearer ${token}`)
  if (isToken(editToken)) headers.set(editTokenHeader, editToken)
  return headers
}

function isToken(value: unknown): value is string {
  return typeof value === 'string' && isHeaderValue.test(value) && value.trim() === value
}

function createPassedRequests({ handler, onError }: SessionContext, socket: Socket): PassedRequests {
  const { address } = socket.handshake
  const { auth } = socket.handshake
  let identity = headersOf(socket.handshake, (auth as { token?: unknown }).token)
  const host = identity.get('host')!
  const streams = new Map<string, AbortController>()

  function toRequest(data: Data, signal: AbortSignal): Request {
    const method = methods.find((each) => each === (ownValue(data, 'method') ?? 'GET'))
    if (method === undefined) throw bad('method', `one of ${methods.join(', ')}`)
    const path = ownValue(data, 'path')
    const url = typeof path === 'string' && path.startsWith('/api/') ? URL.parse(path, `http://${host}`) : null
    // A path that resolves to another place, such as `/api/../health`, is not one of these routes.
    if (url === null || !url.pathname.startsWith('/api/')) throw bad('path', 'a path that begins with /api/')
    const body = ownValue(data, 'body')
    if (body !== undefined && method !== 'POST') throw bad('body', `absent: a ${method} request has none`)
    const sent = new Headers(identity)
    const given = ownValue(data, 'headers') ?? {}
    if (typeof given !== 'object' || Array.isArray(given)) throw bad('headers', 'an object')
    for (const [name, value] of Object.entries(given)) {
      const known = passedHeaders.find((each) => each === name)
      if (known === undefined || typeof value !== 'string') {
        const shown = name.slice(0, 60)
        throw bad(`headers.${shown}`, `text, of ${passedHeaders.join(', ')}${didYouMean(shown, passedHeaders)}`)
      }
      if (!isHeaderValue.test(value)) throw bad(`headers.${name}`, 'one line of Latin characters')
      sent.set(known, value)
    }
    if (body !== undefined) sent.set('content-type', 'application/json')
    const request = new Request(url, {
      method,
      headers: sent,
      signal,
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    noteAddress(request, address)
    return request
  }

  async function pass(data: Data): Promise<MessageReply> {
    const id = requiredText(data, 'id')
    if (streams.has(id)) throw bad('id', 'new for each request')
    if (streams.size >= mostStreams) {
      throw new MillraceError('too-many-streams', `This socket reads ${mostStreams} streams. Cancel some first.`)
    }
    const gone = new AbortController()
    streams.set(id, gone)
    let source: BodySource<string | Uint8Array> | undefined
    try {
      const response = await handler(toRequest(data, gone.signal))
      const { status, body } = response
      const said = { id, status, headers: toldHeaders(response.headers) }
      if (body === null || said.headers['content-type']?.startsWith('application/json')) {
        return { said: { ...said, body: await response.text() } }
      }
      source = sourceOf(body) ?? toSource(body)
      return { said: { ...said, streams: true }, begin: () => void send(id, source!, gone.signal) }
    } finally {
      if (source === undefined) streams.delete(id)
    }
  }

  /** A client acknowledges each chunk after it has read it. */
  async function send(id: string, source: BodySource<string | Uint8Array>, signal: AbortSignal): Promise<void> {
    const decoder = new TextDecoder()
    let untaken = 0
    let wake = () => undefined as void
    signal.addEventListener('abort', () => (source.cancel(), wake()))
    try {
      while (!signal.aborted) {
        const piece = await nextPiece(source)
        if (piece === undefined || signal.aborted) break
        const text = typeof piece === 'string' ? piece : decoder.decode(piece, { stream: true })
        untaken++
        socket.emit('chunk', { id, text }, () => (untaken--, wake()))
        while (untaken >= mostUntaken && !signal.aborted) {
          await new Promise<void>((resolve) => void (wake = resolve))
        }
      }
      if (!signal.aborted) socket.emit('chunk', { id, end: true })
    } catch (error) {
      if (!signal.aborted) onError(error)
      socket.emit('chunk', { id, broken: true })
    } finally {
      streams.delete(id)
    }
  }

  return {
    get size() {
      return streams.size
    },
    get headers() {
      return identity
    },
    pass,
    renew(token) {
      identity = headersOf(socket.handshake, token)
    },
    async cancel(data) {
      const id = requiredText(data, 'id')
      streams.get(id)?.abort()
      streams.delete(id)
      return { said: { id } }
    },
    leave() {
      for (const gone of streams.values()) gone.abort()
      streams.clear()
    },
  }
}

function toldHeaders(headers: Headers): Record<string, string> {
  const shownHeaders = ['content-type', 'retry-after', 'x-millrace-run-id'].flatMap((name) => {
    const value = headers.get(name)
    return value === null ? [] : [[name, value] as const]
  })
  return Object.fromEntries(shownHeaders)
}

function toSource(body: ReadableStream<Uint8Array>): BodySource<Uint8Array> {
  const reader = body.getReader()
  return {
    next: fromPromises(async () => (await reader.read()).value),
    cancel: () => void reader.cancel().catch(() => undefined),
  }
}
