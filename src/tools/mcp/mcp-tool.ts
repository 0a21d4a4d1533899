/** Adapts MCP tools to ordinary tools. */
import { omitUndefined } from '../../part/omit-undefined.ts'
import type { ToolContext, ToolImplementation } from '../tool.ts'
import { MillraceError } from '../../part/error.ts'
import type { LeftOut, McpPool, McpTool, McpTools } from './pool.ts'
import { longest } from './server.ts'

/** `server_tool`. Characters that providers do not accept become `_`; names are cut to 64 characters. */
export function toToolName(server: string, tool: string): string {
  return `${server}_${tool}`.replaceAll(/[^A-Za-z0-9_-]/g, '_').slice(0, 64)
}

/** A tool of an MCP server. The engine makes its calls itself: the server may ask, or go on with a task. */
export interface McpToolImplementation extends ToolImplementation {
  mcp: { server: string; tool: string }
  /** See {@link McpTools}. */
  searched?: true
  /** See {@link McpTool}. */
  changed?: true
}

export function toToolImplementation(pool: McpPool, server: string, tool: McpTool): McpToolImplementation {
  const { name, description, inputSchema, changed } = tool
  return omitUndefined({
    description,
    parameters: inputSchema,
    timeout: pool.timeout(server),
    mcp: { server, tool: name },
    changed,
    // The tool runner applies the timeout, which an agent file may raise above the config's, through the signal.
    execute: (input: unknown, { signal, traceparent }: ToolContext) =>
      pool.call(server, name, input, { signal, timeout: longest, forModel: true, ...omitUndefined({ traceparent }) }),
  })
}

/** Notices about a tool for the operator: by its prefixed name, if it is left out. */
export interface McpWarning {
  code: 'pattern-not-checked' | 'mcp-tool-left-out'
  message: string
  leftOut?: string
  /** One of so many that they are told together. */
  isOneOfMany?: true
}

/** Left-out tools that are told one by one. */
const mostTold = 50

function leftOutText(server: string, { name, why }: LeftOut): string {
  if (name === undefined) return `Tools of the MCP server "${server}" are left out: ${why}.`
  return `The tool "${name}" of the MCP server "${server}" is left out: ${why}.`
}

/** Throws `bad-tools` for a tool of the server that is left out because it cannot be used. */
export async function refuseLeftOut(pool: McpPool, server: string, tool: string, signal?: AbortSignal): Promise<void> {
  // Whether the server can be reached is seen by the call.
  const listed = await pool.tools(server, signal).catch((): McpTools => [])
  const found = listed.leftOut?.find(({ name }) => name === tool)
  if (found === undefined || listed.some(({ name }) => name === tool)) return
  throw new MillraceError('bad-tools', `It names a tool that cannot be used. ${leftOutText(server, found)}`)
}

/**
 * The tools of a server by their prefixed names, and in the order of these. Calls `warn` for each schema pattern that is not enforced, and for each tool that is left out
 * because it cannot be used.
 */
export async function readMcpTools(
  pool: McpPool,
  server: string,
  signal?: AbortSignal,
  warn: (warning: McpWarning) => void = () => undefined,
): Promise<Map<string, McpToolImplementation>> {
  const tools = new Map<string, McpToolImplementation>()
  let left = 0
  const leaveOut = (name: string, why: string) => {
    const message = leftOutText(server, { name, why })
    const many = ++left > mostTold ? { isOneOfMany: true as const } : undefined
    warn({ code: 'mcp-tool-left-out', message, leftOut: toToolName(server, name), ...many })
  }
  const listed = await pool.tools(server, signal)
  for (const { name, why } of listed.leftOut ?? []) {
    if (name !== undefined) leaveOut(name, why)
    else warn({ code: 'mcp-tool-left-out', message: leftOutText(server, { why }) })
  }
  for (const tool of listed) {
    const name = toToolName(server, tool.name)
    if (tools.has(name)) {
      leaveOut(tool.name, `another tool of it has the name "${name}" as well`)
      continue
    }
    for (const pattern of tool.unchecked ?? []) {
      const message = `A pattern in a schema of the MCP tool "${name}" is not checked: ${pattern}.`
      warn({ code: 'pattern-not-checked', message })
    }
    const implementation = toToolImplementation(pool, server, tool)
    tools.set(name, listed.searched === true ? { ...implementation, searched: true } : implementation)
  }
  if (left > mostTold) {
    const message = `${left - mostTold} more tools of the MCP server "${server}" are left out.`
    warn({ code: 'mcp-tool-left-out', message })
  }
  // Servers may list them in any order, and providers' caches depend on it.
  return new Map([...tools].toSorted(([a], [b]) => (a < b ? -1 : 1)))
}
