/** Adapts MCP tools to ordinary tools. */
import { compact } from '../../part/compact.ts'
import { MillraceError } from '../../part/error.ts'
import type { ToolImplementation } from '../tool.ts'
import type { McpPool, McpTool } from './pool.ts'
import { longest } from './server.ts'

/** `server_tool`. Characters that providers do not accept become `_`; names are cut to 64 characters. */
export function toToolName(server: string, tool: string): string {
  return `${server}_${tool}`.replaceAll(/[^A-Za-z0-9_-]/g, '_').slice(0, 64)
}

export function toToolImplementation(pool: McpPool, server: string, tool: McpTool): ToolImplementation {
  const { name, description, inputSchema } = tool
  return compact({
    description,
    parameters: inputSchema,
    timeout: pool.timeout(server),
    // The tool runner applies the timeout, which an agent file may raise above the config's, through the signal.
    execute: (input, { signal, traceparent }) =>
      pool.call(server, name, input, { signal, timeout: longest, ...compact({ traceparent }) }),
  })
}

/** All tools of a server by their prefixed names. Calls `warn` for each schema pattern that is not enforced. Throws `bad-tools` if two names collide. */
export async function readMcpTools(
  pool: McpPool,
  server: string,
  signal?: AbortSignal,
  warn: (message: string) => void = () => undefined,
): Promise<Map<string, ToolImplementation>> {
  const tools = new Map<string, ToolImplementation>()
  for (const tool of await pool.tools(server, signal)) {
    const name = toToolName(server, tool.name)
    if (tools.has(name)) {
      throw new MillraceError('bad-tools', `Two tools of the MCP server "${server}" would get the name "${name}".`)
    }
    for (const pattern of tool.unchecked ?? []) {
      warn(`A pattern in a schema of the MCP tool "${name}" is not checked: ${pattern}.`)
    }
    tools.set(name, toToolImplementation(pool, server, tool))
  }
  return tools
}
