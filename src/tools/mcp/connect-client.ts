/**
 * Connects to an MCP server, whichever version it speaks. A modern one (2026-07-28) answers `server/discover`; a legacy one gets the handshake of 2025.
 * That a server is legacy is remembered, so that it is not asked again at each connection. Loads the MCP SDK.
 */
import {
  Client,
  ProtocolError,
  SdkHttpError,
  type JSONRPCMessage,
  type jsonSchemaValidator as ValidatorProvider,
} from '@modelcontextprotocol/client'
import type { ReadLimits } from '../../models/limits/read-limits.ts'
import { validate } from '../../pipeline/json-schema/validate.ts'
import { isObject } from '../../pipeline/json-schema/keywords.ts'
import type { TokenSource } from './auth/token-source.ts'
import { ownFault } from './fault.ts'
import { HttpTransport } from './http-transport.ts'
import { connectTimeout, longest, type McpServer } from './server.ts'
import type { StdioTransport } from './stdio-transport.ts'

/** What a client can do, as it tells servers. */
export const asks = { elicitation: { form: {}, url: {} } }
export const tasksExtension = 'io.modelcontextprotocol/tasks'
export const tasks = { extensions: { [tasksExtension]: {} } }

/** Under this key of `_meta` a list of tools stands as the server has sent it: of a modern one the SDK refuses the whole list because of one tool. */
export const listKey = 'millrace/list'
/** Under this key of `_meta` a task stands in the result of a call: the SDK refuses any other kind of result. */
export const taskKey = 'millrace/task'

export type McpTransport = HttpTransport | StdioTransport

export interface Connected {
  client: Client
  transport: McpTransport
}

export interface ConnectOptions {
  who: string
  secrets: readonly string[]
  limits: ReadLimits
  /** Aborts the attempt. */
  signal: AbortSignal
  /** The server is known to be legacy. */
  isLegacy: boolean
  /** Sent with each request. */
  tokens?: TokenSource | undefined
  /** Legacy servers are told that this client answers questions. */
  asks: boolean
}

/** A connection that failed: `transport` says why, unless it is the error. */
export class ConnectFailure extends Error {
  readonly transport: McpTransport
  override readonly cause: unknown

  constructor(cause: unknown, transport: McpTransport) {
    super('The connection failed.')
    this.cause = cause
    this.transport = transport
  }
}

/** Throws {@link ConnectFailure}, leaving no process behind. */
export async function connectClient(server: McpServer, options: ConnectOptions): Promise<Connected> {
  const limit = connectTimeout(server)
  const late = new AbortController()
  const timer = setTimeout(() => late.abort(), limit)
  const again = async (failure: unknown): Promise<Connected> => {
    if (!(failure instanceof ConnectFailure) || options.signal.aborted || late.signal.aborted) throw failure
    if (refusesHandshake(failure)) return connectOnce(server, { ...options, mode: modern, limit, late: late.signal })
    if (!mayBeOther(failure, options.isLegacy)) throw failure
    return connectOnce(server, { ...options, mode: options.isLegacy ? 'auto' : 'legacy', limit, late: late.signal })
  }
  try {
    const mode = options.isLegacy ? 'legacy' : 'auto'
    return await connectOnce(server, { ...options, mode, limit, late: late.signal }).catch(again)
  } finally {
    clearTimeout(timer)
  }
}

/**
 * Whether the server may be of the other era. Programs for older versions end at a request that they do not know, and servers answer it in odd ways; one
 * that was legacy when it was asked last may refuse the handshake now.
 */
function mayBeOther({ cause, transport }: ConnectFailure, wasLegacy: boolean): boolean {
  if (transport.refusal !== undefined || ownFault(cause) !== undefined) return false
  if ('exited' in transport) return transport.exited
  const status = cause instanceof SdkHttpError ? cause.status : undefined
  if (wasLegacy) return status !== undefined && [400, 404, 405].includes(status)
  // It has answered, and not that it wants other headers.
  return transport.failure === undefined && status !== 401 && status !== 403
}

/** A program that has started so slowly that it was taken for a legacy one, or that is a newer version than last time. */
function refusesHandshake({ cause, transport }: ConnectFailure): boolean {
  if (!('exited' in transport) || transport.refusal !== undefined) return false
  return cause instanceof ProtocolError && handshakeRefusals.has(cause.code)
}

/** An unsupported version, an unknown method. */
const handshakeRefusals: ReadonlySet<number> = new Set([-32_022, -32_601])
const modern = { pin: '2026-07-28' }
/** ms until a program that does not answer `server/discover` counts as legacy, at most. */
const longestProbe = 5000

interface Attempt extends ConnectOptions {
  mode: 'auto' | 'legacy' | typeof modern
  /** ms until `late` aborts. */
  limit: number
  late: AbortSignal
}

async function connectOnce(server: McpServer, options: Attempt): Promise<Connected> {
  const { signal, late, limit, mode } = options
  const transport = await createTransport(server, options)
  // A program may ignore what it does not know; over HTTP no answer is a failure.
  const timeoutMs = 'exited' in transport && mode === 'auto' ? Math.min(Math.ceil(limit / 2), longestProbe) : longest
  const client = new Client(
    { name: 'millrace', version: '0' },
    {
      jsonSchemaValidator,
      capabilities: options.asks ? asks : {},
      versionNegotiation: { mode, probe: { timeoutMs } },
      inputRequired: { autoFulfill: false },
    },
  )
  const stop = () => void transport.close()
  const tooLate = () => {
    transport.failure ??= `it was not ready within ${limit} ms; raise connectTimeout if it needs longer`
    stop()
  }
  signal.addEventListener('abort', stop)
  late.addEventListener('abort', tooLate)
  try {
    signal.throwIfAborted()
    await client.connect(transport, { timeout: longest })
  } catch (error) {
    await transport.close()
    throw new ConnectFailure(error, transport)
  } finally {
    signal.removeEventListener('abort', stop)
    late.removeEventListener('abort', tooLate)
  }
  passAsItIs(transport)
  return { client, transport }
}

async function createTransport(server: McpServer, options: Attempt): Promise<McpTransport> {
  if ('url' in server) return new HttpTransport(server, options)
  const transport = await import('./stdio-transport.ts')
  return new transport.StdioTransport(server, options)
}

/** What the SDK refuses, and we read ourselves: it gets an empty result, with the real one beside it. It knows no task as the result of a call. */
function passAsItIs(transport: McpTransport): void {
  const receive = transport.onmessage
  transport.onmessage = (message: JSONRPCMessage) => {
    const result: unknown = 'result' in message ? message.result : undefined
    const empty = isObject(result) ? emptyFor(result) : undefined
    return receive?.call(transport, empty === undefined ? message : ({ ...message, result: empty } as JSONRPCMessage))
  }
}

function emptyFor(result: Record<string, unknown>): object | undefined {
  if (result['resultType'] === 'task') return { resultType: 'complete', content: [], _meta: { [taskKey]: result } }
  if (!Object.hasOwn(result, 'tools') || Object.hasOwn(result, 'content')) return undefined
  return { resultType: 'complete', tools: [], ttlMs: 0, cacheScope: 'private', _meta: { [listKey]: result } }
}

/** Replaces the SDK's validator, which compiles the server's schemas to code and runs their patterns without a limit. */
const jsonSchemaValidator: ValidatorProvider = {
  getValidator:
    <T>(schema: unknown) =>
    (input: unknown) => {
      const faults = validate(schema, input)
      if (faults.length === 0) return { valid: true, data: input as T, errorMessage: undefined }
      return { valid: false, data: undefined, errorMessage: faults.join('; ') }
    },
}
