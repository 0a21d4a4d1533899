/**
 * `initialize` of legacy versions. The id of the session is what the client said in it, sealed: every instance reads it, and none keeps it.
 * https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle
 */
import { timeOf } from '../../part/log.ts'
import { ownValue } from '../../part/own-value.ts'
import type { RequestContext } from '../handler-context.ts'
import { serverInfo } from './asked.ts'
import { isLegacy, legacyVersions, readInfo, unsupported, type McpClient } from './inbound.ts'
import { codes, invalidParams, isObject, RpcError, type Fields } from './json-rpc.ts'
import type { McpServices } from './settings.ts'

export const sessionHeader = 'mcp-session-id'

/** ms. Clients begin anew when one has expired. */
const lifetime = 7 * 86_400_000
/** Of what a client says that it can. */
const longestCapabilities = 16_384

export async function initialize(
  { runtime, principal }: RequestContext,
  { tokens }: McpServices,
  params: Fields,
  capabilities: Fields,
): Promise<{ result: Fields; session: string }> {
  const asked = ownValue(params, 'protocolVersion')
  const can = ownValue(params, 'capabilities')
  if (typeof asked !== 'string') throw invalidParams('params.protocolVersion must be a string.')
  if (!isObject(can) || JSON.stringify(can).length > longestCapabilities)
    throw invalidParams(`params.capabilities must be an object of at most ${longestCapabilities} characters.`)
  // A client that does not speak the version of the answer disconnects.
  const version = isLegacy(asked) ? asked : legacyVersions[0]
  const said = { version, capabilities: can, ...readInfo(ownValue(params, 'clientInfo')) }
  const session = await tokens.seal('session', said, principal, timeOf(runtime.store) + lifetime)
  return { result: { protocolVersion: version, capabilities, serverInfo }, session }
}

/** The client of a legacy request. Without a session it can nothing. Throws 404 for a session that does not count, and 400 for a version. */
export async function readLegacy(
  { principal }: RequestContext,
  { tokens }: McpServices,
  headers: Headers,
): Promise<McpClient> {
  const header = headers.get('mcp-protocol-version')?.trim()
  if (header !== undefined && !isLegacy(header)) throw unsupported(header)
  const session = headers.get(sessionHeader)
  // Clients of 2025-03-26 do not send their version.
  if (session === null) return { era: 'legacy', version: header ?? '2025-03-26', capabilities: {} }
  const said = await tokens.open('session', session, principal)
  if (said === undefined)
    throw new RpcError(codes.invalidRequest, 'There is no such session. Send initialize again.', { status: 404 })
  return { era: 'legacy', ...(said as Omit<McpClient, 'era'>) }
}
