/** `mcp-tool`: one call of an MCP server's tool, with no model in between. */
import { z } from 'zod'
import { check, child } from '../check.ts'
import { lazily } from '../lazily.ts'
import { checkServer } from '../names.ts'
import type { McpToolConfig } from '../pipeline.ts'
import { checkReferences, type StepContext } from '../reader.ts'
import { duration, map, name, nameOf } from '../scalars.ts'
import { isMapOrReference, toTemplate } from '../template.ts'
import type { Node } from '../tree.ts'

export const mcpToolConfig = lazily(() =>
  map({
    server: nameOf('mcpServers').describe('Name of an MCP server in the config.'),
    tool: name.describe('Name of the tool on the server.'),
    input: z
      .unknown()
      .refine(isMapOrReference, 'must be a map, or a reference to one')
      .optional()
      .describe('Arguments of the tool: a map, or a reference to one.'),
    timeout: duration(1).optional().describe('Time limit of the call.'),
  }),
)

export function readMcpTool(node: Node, { reader, place }: StepContext) {
  checkReferences(node, place, reader)
  const parsed = check(mcpToolConfig(), node, reader.faults, 'the config of an mcp-tool step')
  checkServer(child(node, 'server'), reader.known, reader.faults)
  if (parsed === undefined) return undefined
  const { server, tool, timeout } = parsed
  const input = child(node, 'input')
  const config: McpToolConfig = { server, tool, input: input ? toTemplate(input) : {} }
  if (timeout !== undefined) config.timeout = timeout
  return { type: 'mcp-tool' as const, config }
}
