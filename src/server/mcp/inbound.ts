/**
 * Which version of MCP a message speaks. A modern request says so in its `_meta`, together with what the client can; nothing is kept between two of
 * them. All others are legacy: what the client said in `initialize` is in the id of its session, which is sealed (`sealed-token.ts`).
 * https://modelcontextprotocol.io/specification/2026-07-28/basic/versioning
 */
import { ownValue } from '../../part/own-value.ts'
import type { Era } from './content.ts'
import { codes, isObject, RpcError, type Fields, type RpcNotification, type RpcRequest } from './json-rpc.ts'

export const modernVersion = '2026-07-28'
/** Newest first. */
export const legacyVersions = ['2025-11-25', '2025-06-18', '2025-03-26'] as const
export const supportedVersions: readonly string[] = [modernVersion, ...legacyVersions]

export const tasksExtension = 'io.modelcontextprotocol/tasks'

const prefix = 'io.modelcontextprotocol/'
export const metaKeys = {
  version: `${prefix}protocolVersion`,
  clientInfo: `${prefix}clientInfo`,
  capabilities: `${prefix}clientCapabilities`,
  serverInfo: `${prefix}serverInfo`,
  subscription: `${prefix}subscriptionId`,
} as const

/** The client of a message. It says itself what it is: for display, never for decisions about access. */
export interface McpClient {
  era: Era
  version: string
  name?: string
  /** The client's own version. */
  release?: string
  capabilities: Fields
}

/** The parameter that a proxy routes by, as `Mcp-Name`. */
export const nameSources: Readonly<Record<string, string>> = {
  'tools/call': 'name',
  'prompts/get': 'name',
  'resources/read': 'uri',
  'tasks/get': 'taskId',
  'tasks/update': 'taskId',
  'tasks/cancel': 'taskId',
}

/**
 * The client of a modern message. Undefined: the message is a legacy one. Throws for a modern message that is wrong: `_meta` (-32602), version (-32022),
 * headers (-32020), all with status 400.
 */
export function readModern(message: RpcRequest | RpcNotification, headers: Headers): McpClient | undefined {
  const { method, params } = message
  const given = ownValue(params, '_meta')
  const meta = isObject(given) ? given : {}
  const header = headers.get('mcp-protocol-version')?.trim()
  if (!Object.hasOwn(meta, metaKeys.version)) {
    if (header === undefined || isLegacy(header)) return undefined
    if (header !== modernVersion) throw unsupported(header)
    if (message.kind === 'notification') return { era: 'modern', version: header, capabilities: {} }
    if (method === 'initialize')
      throw mismatch(`MCP-Protocol-Version is ${header}, but initialize belongs to older versions`)
    throw badMeta(`_meta must have "${metaKeys.version}"`)
  }
  const version = meta[metaKeys.version]
  if (typeof version !== 'string') throw badMeta(`_meta["${metaKeys.version}"] must be a string`)
  // A client that speaks several versions may name a legacy one here, too.
  if (method === 'initialize' && version !== modernVersion) return undefined
  const capabilities = ownValue(meta, metaKeys.capabilities)
  const info = ownValue(meta, metaKeys.clientInfo)
  if (message.kind === 'request') {
    if (!isObject(capabilities)) throw badMeta(`_meta must have "${metaKeys.capabilities}", an object`)
    if (info !== undefined && !isObject(info)) throw badMeta(`_meta["${metaKeys.clientInfo}"] must be an object`)
  }
  if (header !== undefined && header !== version)
    throw mismatch(`MCP-Protocol-Version is ${shown(header)}, but _meta says ${shown(version)}`)
  const said = headers.get('mcp-method')?.trim()
  if (said !== undefined && said !== method)
    throw mismatch(`Mcp-Method is ${shown(said)}, but the method is ${shown(method)}`)
  if (version !== modernVersion) throw unsupported(version)
  if (message.kind === 'request') checkHeaders(message, headers)
  return { era: 'modern', version, capabilities: isObject(capabilities) ? capabilities : {}, ...readInfo(info) }
}

/** Name and version, if they can be shown. */
export function readInfo(info: unknown): { name?: string; release?: string } {
  if (!isObject(info)) return {}
  const of = (key: string) => {
    const value = ownValue(info, key)
    return typeof value === 'string'
      ? value
          .replaceAll(/[\p{Cc}\p{Cf}]/gu, '')
          .toWellFormed()
          .slice(0, 100)
      : ''
  }
  const [name, release] = [of('name'), of('version')]
  return { ...(name !== '' && { name }), ...(release !== '' && { release }) }
}

export function isLegacy(version: string): boolean {
  return (legacyVersions as readonly string[]).includes(version)
}

export function declaresTasks({ era, capabilities }: McpClient): boolean {
  const extensions = ownValue(capabilities, 'extensions')
  // The tasks of 2025-11-25 are another protocol.
  return era === 'modern' && isObject(extensions) && isObject(ownValue(extensions, tasksExtension))
}

/** The headers by which proxies route must be there, and say what the body says. */
function checkHeaders({ method, params }: RpcRequest, headers: Headers): void {
  if (!headers.has('mcp-protocol-version')) throw mismatch('the header MCP-Protocol-Version is missing')
  if (!headers.has('mcp-method')) throw mismatch('the header Mcp-Method is missing')
  const source = ownValue(nameSources, method)
  if (source === undefined) return
  const name = ownValue(params, source)
  const header = headers.get('mcp-name')?.trim()
  // Without a name in the body, the method refuses the request.
  if (typeof name !== 'string') return
  if (header === undefined) throw mismatch('the header Mcp-Name is missing')
  const decoded = decodeName(header)
  if (decoded === undefined) throw mismatch('the header Mcp-Name is not valid base64')
  if (decoded !== name) throw mismatch(`Mcp-Name does not match params.${source}`)
}

/** Values that a header cannot carry are sent as `=?base64?…?=`. Undefined if that is not valid. */
function decodeName(header: string): string | undefined {
  const [, base64] = /^=\?base64\?(.*)\?=$/u.exec(header) ?? []
  if (base64 === undefined) return header
  try {
    const bytes = Uint8Array.from(atob(base64), (each) => each.charCodeAt(0))
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return undefined
  }
}

function shown(text: string): string {
  return JSON.stringify(text.slice(0, 60))
}

function badMeta(why: string): RpcError {
  return new RpcError(codes.invalidParams, `Invalid params: ${why}.`, { status: 400 })
}

function mismatch(why: string): RpcError {
  return new RpcError(codes.headerMismatch, `Header mismatch: ${why}.`, { status: 400 })
}

export function unsupported(requested: string): RpcError {
  return new RpcError(codes.unsupportedVersion, `This server does not speak MCP ${shown(requested)}.`, {
    status: 400,
    data: { supported: supportedVersions, requested: requested.slice(0, 60) },
  })
}

export function missingTasks(): RpcError {
  return new RpcError(codes.missingCapability, `The client must declare the extension ${tasksExtension}.`, {
    status: 400,
    data: { requiredCapabilities: { extensions: { [tasksExtension]: {} } } },
  })
}
