import { MillraceError } from '../part/error.ts'
import type { McpPool } from '../tools/mcp/pool.ts'
import type { Scope } from './scope.ts'

/** The MCP servers of the config; throws when there are none. */
export function mcpOf({ mcp }: Scope): McpPool {
  if (mcp !== undefined) return mcp
  throw new MillraceError('unknown-mcp-server', 'The config has no MCP servers. Add `mcpServers` to it.')
}
