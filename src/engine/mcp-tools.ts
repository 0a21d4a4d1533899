/** Tools of MCP servers, as a loop offers them. */
import type { ToolUse } from '../pipeline/pipeline.ts'
import type { McpToolImplementation } from '../tools/mcp/mcp-tool.ts'
import { LostCall, runMcpCall } from './mcp-call.ts'
import { Suspended } from './scope.ts'
import { toFault, type ToolRun, unavailable } from './tool-call.ts'

/** How the engine runs a call of the tool `name`. */
export function mcpRun(name: string, { mcp, timeout }: McpToolImplementation, use: ToolUse | undefined): ToolRun {
  return async (scope, path, { given, resumed, toolCallId }) => {
    const call = { toolCallId, toolName: name }
    const work = { ...mcp, input: given, timeout: use?.timeout ?? timeout, forModel: true, call, resumed }
    try {
      return { result: await runMcpCall(scope, path, work), isError: false }
    } catch (error) {
      if (error instanceof Suspended || scope.signal.aborted) throw error
      return error instanceof LostCall ? unavailable() : toFault(scope, path, name, error)
    }
  }
}
