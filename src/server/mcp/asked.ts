/** One request of an MCP client, with what every method needs to know of it. */
import type { RequestContext } from '../handler-context.ts'
import { version } from '../version.ts'
import { metaKeys, type McpClient } from './inbound.ts'
import type { Fields, MessageId } from './json-rpc.ts'
import type { Framing } from './call-stream.ts'
import type { McpServices } from './settings.ts'
import type { ToolScope } from './tools.ts'

export interface Asked {
  context: RequestContext
  mcp: McpServices
  client: McpClient
  id: MessageId
  method: string
  params: Fields
  headers: Headers
  scope: ToolScope
  /** How the response may be sent. */
  framing: Framing
  /** The sealed id of a legacy client's session. */
  session?: string | undefined
}

/** Of runs and replies that come by MCP. */
export const protocol = 'mcp'

export const serverInfo = { name: 'millrace', title: 'Millrace', version }

/** Modern results say what they are, and who sends them. */
export function toResult({ era }: McpClient, fields: object, resultType = 'complete'): Fields {
  const { _meta, ...rest } = fields as Fields
  if (era === 'legacy') return fields as Fields
  return { resultType, ...rest, _meta: { ...(_meta as Fields | undefined), [metaKeys.serverInfo]: serverInfo } }
}

/** Lists belong to the caller, and may change at any time. */
export function toListResult(client: McpClient, fields: object): Fields {
  return toResult(client, client.era === 'modern' ? { ...fields, ttlMs: 0, cacheScope: 'private' } : fields)
}
