/**
 * Reads the tools of an MCP server, page by page. The SDK's own `listTools` refuses the whole list because of one tool, and with it all tools
 * of the server.
 */
import { isObject } from '../../pipeline/json-schema/keywords.ts'
import { unsupportedPatterns } from '../../pipeline/json-schema/unsupported-patterns.ts'
import type { LeftOut, McpTool, McpTools } from './pool.ts'

/** Each page may be as large as one message. */
const mostPages = 200

export interface Listing {
  tools: McpTools
  /** The tools that have an output schema, as the SDK wants them for a call. */
  definitions: ReadonlyMap<string, Definition>
}

type Definition = { name: string; inputSchema: { type: 'object' }; outputSchema: Record<string, unknown> }

/** `page`: asks for one. */
export async function listTools(page: (cursor: string | undefined) => Promise<unknown>): Promise<Listing> {
  const tools: McpTool[] = []
  const leftOut: LeftOut[] = []
  const definitions = new Map<string, Definition>()
  const seen = new Set<string>()
  let cursor: string | undefined
  let pages = 0
  do {
    const answer = await page(cursor)
    const { tools: listed, nextCursor } = isObject(answer) ? answer : {}
    for (const tool of Array.isArray(listed) ? (listed as unknown[]) : []) {
      const name = isObject(tool) && typeof tool['name'] === 'string' && tool['name'] !== '' ? tool['name'] : undefined
      const why = faultOf(tool, name)
      if (why !== undefined) leftOut.push({ name: name ?? `number ${tools.length + leftOut.length + 1}`, why })
      else add(tool as unknown as Valid)
    }
    cursor = typeof nextCursor === 'string' && nextCursor !== '' ? nextCursor : undefined
    pages += 1
    if (cursor === undefined || pages < mostPages) {
      // A server that names the same page again would do so for ever.
      if (cursor !== undefined && seen.has(cursor)) cursor = undefined
      if (cursor !== undefined) seen.add(cursor)
      continue
    }
    leftOut.push({ why: `its list has more than ${mostPages} pages: those behind them are not read` })
    break
  } while (cursor !== undefined)

  function add({ name, description, inputSchema, outputSchema }: Valid): void {
    const unchecked = [...unsupportedPatterns(inputSchema), ...unsupportedPatterns(outputSchema)]
    tools.push({ name, description, inputSchema, ...(unchecked.length === 0 ? undefined : { unchecked }) })
    if (outputSchema !== undefined) definitions.set(name, { name, inputSchema: { type: 'object' }, outputSchema })
  }

  return { tools: leftOut.length === 0 ? tools : Object.assign(tools, { leftOut }), definitions }
}

interface Valid {
  name: string
  description?: string
  inputSchema: Record<string, unknown>
  outputSchema?: Record<string, unknown>
}

/** Why a tool cannot be used. */
function faultOf(tool: unknown, name: string | undefined): string | undefined {
  if (!isObject(tool) || name === undefined) return 'it has no name'
  const { description, inputSchema, outputSchema } = tool
  if (description !== undefined && typeof description !== 'string') {
    return `its description is ${kindOf(description)}, not text`
  }
  if (inputSchema === undefined) return 'it has no inputSchema'
  return (
    schemaFault('inputSchema', inputSchema) ??
    (outputSchema === undefined ? undefined : schemaFault('outputSchema', outputSchema))
  )
}

function schemaFault(key: string, schema: unknown): string | undefined {
  if (!isObject(schema)) return `its ${key} is ${kindOf(schema)}, not a schema`
  const { type, properties, required } = schema
  if (type === undefined) return `its ${key} has no type; it must be "object"`
  if (type !== 'object') return `its ${key} is of the type ${JSON.stringify(type).slice(0, 40)}; it must be "object"`
  if (properties !== undefined && !isObject(properties)) return `the properties of its ${key} are ${kindOf(properties)}`
  const isList = Array.isArray(required) && required.every((each) => typeof each === 'string')
  return required === undefined || isList ? undefined : `"required" of its ${key} is no list of names`
}

function kindOf(value: unknown): string {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'a list' : `a ${typeof value}`
}
