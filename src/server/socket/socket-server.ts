/** The Socket.IO server: who may connect, and what each message does. docs/socket-io.md is its contract. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { Server, type Socket } from 'socket.io'
import { MillraceError } from '../../part/error.ts'
import { createKeyCheck } from '../http/key.ts'
import { closingError } from '../../runtime/runtime-errors.ts'
import { abortRun, watchRun } from './known-run.ts'
import { messageTypes, readMessage, type ClientMessage, type Reply } from './message.ts'
import { runAgent } from './run-agent.ts'
import { sliceInput } from './sliced-input.ts'
import { createSession, toldError, type Session } from './session.ts'
import type { SessionContext } from './session-context.ts'
import type { SocketOptions } from './socket-context.ts'
import { answerCall } from './tool-result.ts'
import { agentsMessage } from './agents-message.ts'

/** What is open, so that a test sees what is left behind. */
export interface SocketCounts {
  sockets: number
  /** Of these, those that poll. */
  polling: number
  /** Followed runs, and responses that stream. */
  runs: number
  starting: number
  /** Tool results that wait for their request. */
  waiting: number
}

export interface SocketServer {
  handle(request: IncomingMessage, response: ServerResponse): void
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void
  announceAgents(): void
  counts(): SocketCounts
  close(): Promise<void>
}

/** Messages that begin something. What goes on may still be answered and stopped. */
const entering: ReadonlySet<string> = new Set(['run_agent', 'watch_run', 'request'])

/** Messages of a client that are not answered yet. */
const mostUnanswered = 1000

/** Messages that end something: they are always heard. */
const leaving: ReadonlySet<string> = new Set(['abort_run', 'cancel_request'])

/** ms in which clients must have received the end of their runs when the server closes. */
const farewellMs = 1000

export function createSocketServer(options: SocketOptions): SocketServer {
  const { runtime, onError, apiKey, allowedOrigins = [], maxBodyBytes = 4 * 1024 * 1024 } = options
  const allowsKey = apiKey === undefined ? undefined : createKeyCheck(apiKey)
  const sessions = new Map<Socket, Session>()
  const closing = new AbortController()
  let waiting = 0
  const context: SessionContext = {
    runtime,
    onError,
    keepAliveMs: 0,
    admission: options.admission,
    handler: options.handler,
    signal: closing.signal,
    onWaiting: (change) => void (waiting += change),
  }

  const io = new Server({
    maxHttpBufferSize: maxBodyBytes,
    perMessageDeflate: false,
    httpCompression: false,
    // A client without the key must not keep a connection.
    connectTimeout: 10_000,
    ...(allowedOrigins.length > 0 && { cors: { origin: [...allowedOrigins] } }),
  })
  // It takes requests from this server's events. Ours listens and hands over what is for Socket.IO.
  const inner = createServer()
  io.attach(inner)
  const input = sliceInput(io)

  io.use(({ handshake: { auth } }, next) => {
    const { token } = auth as { token?: unknown }
    if (allowsKey?.(typeof token === 'string' ? `Bearer ${token}` : null) !== false) return next()
    next(Object.assign(new Error('Send the key as auth.token.'), { data: { code: 'unauthorized' } }))
  })

  io.on('connection', (socket) => {
    const session = createSession(context, socket)
    sessions.set(socket, session)
    socket.emit('agents', agentsMessage(runtime.agents))
    let unanswered = 0
    socket.on('message', (...args: unknown[]) => {
      unanswered++
      void receive(session, args, unanswered > mostUnanswered).finally(() => unanswered--)
    })
    socket.onAny((event: string, ...args: unknown[]) => {
      const acknowledge = args.at(-1)
      if (event !== 'message' && typeof acknowledge === 'function')
        (acknowledge as (answer: object) => void)({ ok: false, error: toldError(notMessage(event), onError) })
    })
    socket.on('disconnect', () => {
      sessions.delete(socket)
      session.leave()
    })
  })

  /** Never rejects. Every message is acknowledged; who asks for no acknowledgement is told of a start that failed as of a run that did. */
  async function receive(session: Session, args: unknown[], isTooMany: boolean): Promise<void> {
    const last = args.at(-1)
    const acknowledge = typeof last === 'function' ? (last as (answer: object) => void) : undefined
    let message: ClientMessage | undefined
    try {
      message = readMessage(args[0])
      if (isTooMany && !leaving.has(message.type)) throw tooMany()
      const { said, begin } = await dispatch(session, message)
      acknowledge?.({ ok: true, ...said })
      begin?.()
    } catch (thrown) {
      const error = toldError(thrown, onError)
      if (acknowledge !== undefined) return acknowledge({ ok: false, error })
      if (message?.type !== 'run_agent') return
      const { runId, threadId } = message.data
      const { message: why, code, ...hint } = error
      session.emit({ type: 'RUN_ERROR', message: why, code }, { runId, threadId, ...hint })
    }
  }

  function dispatch(session: Session, { type, data }: ClientMessage): Promise<Reply> {
    if (closing.signal.aborted) throw closingError()
    const drained = entering.has(type) ? options.draining?.() : undefined
    if (drained !== undefined) throw drained
    switch (type) {
      case 'run_agent':
        return session.track(runAgent(context, session, data))
      case 'tool_result':
        return answerCall(context, session, data)
      case 'abort_run':
        return abortRun(context, session, data)
      case 'watch_run':
        return session.track(watchRun(context, session, data))
      case 'request':
        return session.requests.pass(data)
      case 'cancel_request':
        return session.requests.cancel(data)
    }
  }

  const count = (of: (session: Session) => number) => [...sessions.values()].reduce((sum, each) => sum + of(each), 0)
  const runs = () => count(({ active, starting, requests }) => active - starting.size + requests.size)

  return {
    handle(request, response) {
      const pass = () => void inner.emit('request', request, response)
      if (request.method === 'POST') input.handle(request, response, pass)
      else pass()
    },
    upgrade: (request, socket, head) => void inner.emit('upgrade', request, socket, head),
    announceAgents: () => void io.emit('agents', agentsMessage(runtime.agents)),
    counts: () => ({
      sockets: sessions.size,
      polling: [...sessions.keys()].filter(({ conn }) => conn.transport.name === 'polling').length,
      runs: runs(),
      starting: count(({ starting }) => starting.size),
      waiting,
    }),
    async close() {
      const enough = performance.now() + farewellMs
      while (sessions.size > 0 && performance.now() < enough) {
        if (runs() === 0 && [...sessions.keys()].every(({ conn }) => conn.transport.writable)) break
        await new Promise((done) => setTimeout(done, 10))
      }
      closing.abort()
      // Not `disconnectSockets`: clients would take that as a wish, and not connect again.
      io.engine.close()
    },
  }
}

/** Whoever waits for an acknowledgement of another event would wait forever. */
function notMessage(event: string): MillraceError {
  const type = messageTypes.find((each) => each === event)
  const meant = type === undefined ? `{type, data}` : `{type: '${type}', data}`
  const sent = `The event "${event.slice(0, 60)}" is not known`
  return new MillraceError('bad-input', `${sent}: emit "message" with ${meant} and the same acknowledgement.`)
}

function tooMany(): MillraceError {
  const cure = 'Wait for answers, then send it again.'
  return new MillraceError('too-many', `This socket has ${mostUnanswered} messages that are not answered yet. ${cure}`)
}
