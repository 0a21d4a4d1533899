/** MCP tools as tools like any other. */
import { MillraceError } from '../../part/error.ts'
import type { ToolImplementation } from '../ports.ts'
import type { McpPool, McpTool } from './pool.ts'
import { longest } from './server.ts'

/** `server_tool`. What providers do not take in a name becomes `_`, and beyond 64 characters it is cut. */
export function toToolName(server: string, tool: string): string {
  return `${server}_${tool}`.replaceAll(/[^A-Za-z0-9_-]/g, '_').slice(0, 64)
}

export function toToolImplementation(pool: McpPool, server: string, tool: McpTool): ToolImplementation {
  const { name, description, inputSchema } = tool
  return {
    ...(description === undefined ? undefined : { description }),
    parameters: inputSchema,
    timeout: pool.timeout(server),
    // Who runs the tool sets its time (a file may give more than the config) and ends it by the signal.
    execute: (input, { signal }) => pool.call(server, name, input, { signal, timeout: longest }),
  }
}

/** All tools of a server under their prefixed names; `warn` is told what is not enforced. Throws `bad-tools` when two of them come out with one name. */
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
      throw new MillraceError('bad-tools', `Two tools of the MCP server "${server}" would be called "${name}".`)
    }
    for (const pattern of tool.unchecked ?? []) {
      warn(`A pattern in a schema of the MCP tool "${name}" is not checked: ${pattern}.`)
    }
    tools.set(name, toToolImplementation(pool, server, tool))
  }
  return tools
}
