/**
 * Reads the tools of an MCP server, page by page. The SDK's own `listTools` refuses the whole list because of one tool, and with it all tools of the
 * server. Here a tool that cannot be used is left out, with the reason, and the others work.
 */
import { isDeepText } from '../../part/json.ts'
import { ownValue } from '../../part/own-value.ts'
import { shownText } from '../../part/shown-text.ts'
import { isObject } from '../../pipeline/json-schema/keywords.ts'
import { unsupportedPatterns } from '../../pipeline/json-schema/unsupported-patterns.ts'
import { paramHeaderFault } from './param-headers.ts'
import type { LeftOut, McpTool, McpTools } from './pool.ts'

/** Each page may be as large as one message. */
const mostPages = 200
/** Of all pages. */
const mostTools = 10_000
/** Of a schema, as JSON in UTF-8. */
const mostSchemaBytes = 64 * 1024
/** Levels of objects and lists in a schema. */
const mostSchemaDepth = 64
/** Characters of a description. What stands behind them is cut. */
export const mostDescription = 4000

export interface Listing {
  tools: McpTools
  /** What a call of a tool needs of its definition, by its name. */
  definitions: ReadonlyMap<string, Definition>
  /** Epoch ms until which the list counts as fresh, if the server says so. */
  freshUntil?: number
}

export interface Definition {
  inputSchema: Record<string, unknown>
  outputSchema?: Record<string, unknown>
}

export interface ListOptions {
  /** Arguments of calls are sent as headers too, so `x-mcp-header` must be right. */
  sendsHeaders?: boolean
  /** Tools that run only as tasks of 2025-11-25 are left out: these are not spoken. */
  isLegacy?: boolean
  /** ms for all pages. What is behind them then is not read. */
  within?: number
  /** Epoch ms. */
  now?: () => number
}

/** `page`: asks for one. */
export async function listTools(
  page: (cursor: string | undefined) => Promise<unknown>,
  { sendsHeaders = false, isLegacy = false, within = Infinity, now = Date.now }: ListOptions = {},
): Promise<Listing> {
  const tools: McpTool[] = []
  const leftOut: LeftOut[] = []
  const definitions = new Map<string, Definition>()
  const seen = new Set<string>()
  let cursor: string | undefined
  let pages = 0
  const began = now()
  let ttl: number | undefined
  do {
    const answer = await page(cursor)
    const { tools: listed, nextCursor, ttlMs } = isObject(answer) ? answer : {}
    if (typeof ttlMs === 'number' && ttlMs >= 0) ttl = Math.min(ttl ?? Infinity, ttlMs)
    const given = Array.isArray(listed) ? (listed as unknown[]) : []
    const room = mostTools - tools.length - leftOut.length
    for (const tool of given.slice(0, room)) {
      const name = isObject(tool) && typeof tool['name'] === 'string' && tool['name'] !== '' ? tool['name'] : undefined
      const why = faultOf(tool, name, { sendsHeaders, isLegacy })
      if (why !== undefined) leftOut.push({ name: name ?? `number ${tools.length + leftOut.length + 1}`, why })
      else add(tool as unknown as Valid)
    }
    cursor = typeof nextCursor === 'string' && nextCursor !== '' ? nextCursor : undefined
    pages += 1
    const isCut = given.length > room
    const why = cursor === undefined && !isCut ? undefined : tooMuch()
    if (why === undefined) {
      // A server that names the same page again would do so for ever.
      if (cursor !== undefined && seen.has(cursor)) cursor = undefined
      if (cursor !== undefined) seen.add(cursor)
      continue
    }
    leftOut.push({ why: `its list has ${why}: what is behind them is not read` })
    break
  } while (cursor !== undefined)

  function tooMuch(): string | undefined {
    if (pages >= mostPages) return `more than ${mostPages} pages`
    if (tools.length + leftOut.length >= mostTools) return `more than ${mostTools} tools`
    return now() - began >= within ? `pages for more than ${within} ms` : undefined
  }

  function add({ name, description, inputSchema, outputSchema }: Valid): void {
    const unchecked = [...unsupportedPatterns(inputSchema), ...unsupportedPatterns(outputSchema)]
    const shown = description === undefined ? undefined : shownText(description, mostDescription)
    tools.push({
      name,
      description: shown,
      inputSchema: withoutNeedless(inputSchema),
      ...(unchecked.length === 0 ? undefined : { unchecked }),
    })
    definitions.set(name, { inputSchema, ...(outputSchema !== undefined && { outputSchema }) })
  }

  return {
    tools: leftOut.length === 0 ? tools : Object.assign(tools, { leftOut }),
    definitions,
    ...(ttl !== undefined && { freshUntil: now() + ttl }),
  }
}

interface Valid {
  name: string
  description?: string
  inputSchema: Record<string, unknown>
  outputSchema?: Record<string, unknown>
}

/**
 * Some generators of schemas list a property as required though it has a default: the server takes calls without it, so a call of a model is not refused
 * for that.
 */
function withoutNeedless(schema: Record<string, unknown>): Record<string, unknown> {
  const defaults = defaultsOf(schema)
  if (defaults.length === 0) return schema
  const needless = new Set(defaults.map(([name]) => name))
  return { ...schema, required: (schema['required'] as string[]).filter((name) => !needless.has(name)) }
}

/** Of the properties that are required and have a default. */
export function defaultsOf({ properties, required }: Record<string, unknown>): [name: string, value: unknown][] {
  if (!isObject(properties) || !Array.isArray(required)) return []
  return (required as string[]).flatMap((name) => {
    const property = ownValue(properties, name)
    return isObject(property) && Object.hasOwn(property, 'default') ? [[name, property['default']] as const] : []
  }) as [string, unknown][]
}

/** Why a tool cannot be used. */
function faultOf(
  tool: unknown,
  name: string | undefined,
  { sendsHeaders, isLegacy }: { sendsHeaders: boolean; isLegacy: boolean },
): string | undefined {
  if (!isObject(tool) || name === undefined) return 'it has no name'
  const { description, inputSchema, outputSchema, execution } = tool
  if (isLegacy && isObject(execution) && execution['taskSupport'] === 'required') {
    return 'it runs only as a task of version 2025-11-25, and those tasks are not spoken'
  }
  if (description !== undefined && typeof description !== 'string') {
    return `its description is ${kindOf(description)}, not text`
  }
  if (inputSchema === undefined) return 'it has no inputSchema'
  return (
    schemaFault('inputSchema', inputSchema) ??
    (outputSchema === undefined ? undefined : schemaFault('outputSchema', outputSchema)) ??
    (sendsHeaders ? paramHeaderFault(inputSchema) : undefined)
  )
}

function schemaFault(key: string, schema: unknown): string | undefined {
  if (!isObject(schema)) return `its ${key} is ${kindOf(schema)}, not a schema`
  const { type, properties, required } = schema
  if (type === undefined) return `its ${key} has no type; it must be "object"`
  if (type !== 'object') return `its ${key} is of the type ${JSON.stringify(type).slice(0, 40)}; it must be "object"`
  if (properties !== undefined && !isObject(properties)) return `the properties of its ${key} are ${kindOf(properties)}`
  const isList = Array.isArray(required) && required.every((each) => typeof each === 'string')
  if (required !== undefined && !isList) return `"required" of its ${key} is no list of names`
  const text = textOf(schema)
  if (text === undefined) return `its ${key} is nested deeper than ${mostSchemaDepth} levels`
  const bytes = text.length > mostSchemaBytes ? text.length : new TextEncoder().encode(text).length
  if (bytes > mostSchemaBytes) return `its ${key} has ${bytes} bytes; at most ${mostSchemaBytes} are read`
  if (isDeepText(text, mostSchemaDepth)) return `its ${key} is nested deeper than ${mostSchemaDepth} levels`
  const remote = remoteRef(schema)
  return remote === undefined
    ? undefined
    : `its ${key} refers to another document, ${JSON.stringify(remote.slice(0, 80))}, which is not loaded`
}

/** Undefined if it is so deep that it cannot be written. */
function textOf(schema: object): string | undefined {
  try {
    return JSON.stringify(schema)
  } catch {
    return undefined
  }
}

/** Keywords whose value is data: a `$ref` in it refers to nothing. */
const data: ReadonlySet<string> = new Set(['const', 'enum', 'default', 'examples'])

/** The first reference that leaves the schema. The schema is not deep. */
function remoteRef(schema: unknown): string | undefined {
  if (Array.isArray(schema)) {
    for (const each of schema) {
      const found = remoteRef(each)
      if (found !== undefined) return found
    }
    return undefined
  }
  if (!isObject(schema)) return undefined
  for (const [key, value] of Object.entries(schema)) {
    if (data.has(key)) continue
    if (/^\$(?:dynamic|recursive)?ref$/iu.test(key) && typeof value === 'string') {
      if (!value.startsWith('#')) return value
      continue
    }
    const found = remoteRef(value)
    if (found !== undefined) return found
  }
  return undefined
}

function kindOf(value: unknown): string {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'a list' : `a ${typeof value}`
}
