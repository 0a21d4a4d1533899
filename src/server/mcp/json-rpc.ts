/** Messages of JSON-RPC 2.0, and errors as its responses with an HTTP status. */
import { statusOf } from '../../delivery/http-error.ts'
import { MillraceError, unexplained } from '../../part/error.ts'
import { ownValue } from '../../part/own-value.ts'

export type MessageId = string | number
export type Fields = Record<string, unknown>

export interface RpcRequest {
  kind: 'request'
  id: MessageId
  method: string
  params: Fields
}
export interface RpcNotification {
  kind: 'notification'
  method: string
  params: Fields
}
/** A legacy client's response to a question of ours: its result, or its error. */
export interface RpcResponse {
  kind: 'response'
  id: MessageId
  result?: unknown
}
export type RpcMessage = RpcRequest | RpcNotification | RpcResponse

export const codes = {
  parse: -32700,
  invalidRequest: -32600,
  unknownMethod: -32601,
  invalidParams: -32602,
  internal: -32603,
  headerMismatch: -32020,
  missingCapability: -32021,
  unsupportedVersion: -32022,
} as const

/** A JSON-RPC error. `status`: of the HTTP response, default 200. */
export class RpcError extends Error {
  override readonly name = 'RpcError'
  readonly code: number
  readonly status: number
  readonly data: unknown
  /** Seconds. */
  readonly retryAfter: number | undefined

  constructor(
    code: number,
    message: string,
    { status = 200, data, retryAfter }: { status?: number; data?: unknown; retryAfter?: number | undefined } = {},
  ) {
    super(message)
    this.code = code
    this.status = status
    this.data = data
    this.retryAfter = retryAfter
  }
}

export function invalidParams(message: string): RpcError {
  return new RpcError(codes.invalidParams, message)
}

/** Any error as one of JSON-RPC. Errors of other code show clients nothing of it. */
export function toRpcError(error: unknown): RpcError {
  if (error instanceof RpcError) return error
  const known = error instanceof MillraceError ? error : new MillraceError('internal', unexplained)
  const { code, message, retryAfter, which } = known
  const status = statusOf(known)
  const rpcCode =
    code === 'bad-json' ? codes.parse : status >= 500 || status === 429 ? codes.internal : codes.invalidRequest
  return new RpcError(rpcCode, message, {
    status,
    data: { code, ...(which !== undefined && { which }) },
    // The store may work again in a moment, or at another instance.
    retryAfter: retryAfter ?? (/^store-(?:failed|closed)$/u.test(code) ? 1 : undefined),
  })
}

export function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Throws -32600 with status 400 for anything that is no message. */
export function readMessage(value: unknown): RpcMessage {
  if (!isObject(value) || ownValue(value, 'jsonrpc') !== '2.0')
    throw noMessage('it must be an object with jsonrpc: "2.0"')
  const method = ownValue(value, 'method')
  const hasId = Object.hasOwn(value, 'id')
  const id = ownValue(value, 'id')
  if (hasId && typeof id !== 'string' && !Number.isSafeInteger(id)) throw noMessage('id must be a string or an integer')
  if (method === undefined) {
    if (!hasId || !(Object.hasOwn(value, 'result') || Object.hasOwn(value, 'error')))
      throw noMessage('method is missing')
    return { kind: 'response', id: id as MessageId, result: ownValue(value, 'result') }
  }
  if (typeof method !== 'string') throw noMessage('method must be a string')
  const params = ownValue(value, 'params') ?? {}
  if (!isObject(params)) throw noMessage('params must be an object')
  return hasId ? { kind: 'request', id: id as MessageId, method, params } : { kind: 'notification', method, params }
}

function noMessage(why: string): RpcError {
  return new RpcError(codes.invalidRequest, `The body is not a message of JSON-RPC: ${why}.`, { status: 400 })
}

export function resultMessage(id: MessageId, result: unknown): object {
  return { jsonrpc: '2.0', id, result }
}

export function errorMessage(id: MessageId | undefined, { code, message, data }: RpcError): object {
  return {
    jsonrpc: '2.0',
    ...(id !== undefined && { id }),
    error: { code, message, ...(data !== undefined && { data }) },
  }
}

/** `challenge`: of a 401, for `WWW-Authenticate`. */
export function rpcErrorResponse(error: RpcError, id?: MessageId, challenge = 'Bearer'): Response {
  const headers: Record<string, string> = { 'cache-control': 'no-store' }
  if (error.retryAfter !== undefined) headers['retry-after'] = String(Math.ceil(error.retryAfter))
  if (error.status === 401) headers['www-authenticate'] = challenge
  return Response.json(errorMessage(id, error), { status: error.status, headers })
}
