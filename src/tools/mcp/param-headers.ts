/**
 * Arguments that a server wants as headers of the HTTP request, too: `x-mcp-header` at a property of the schema. The SDK sends them; a client must not
 * offer a tool whose declarations are wrong.
 */
import { isObject } from '../../pipeline/json-schema/keywords.ts'

const key = 'x-mcp-header'
/** A field name of RFC 9110. */
const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/u
const types: ReadonlySet<unknown> = new Set(['string', 'integer', 'boolean'])

/** Why the declarations of a schema cannot be followed. */
export function paramHeaderFault(inputSchema: unknown): string | undefined {
  const names = new Set<string>()
  return lookAt(inputSchema, { names, isReachable: false })
}

interface Place {
  names: Set<string>
  /** A property that only `properties` lead to: it has one place in the arguments. */
  isReachable: boolean
}

function lookAt(schema: unknown, { names, isReachable }: Place, isRoot = true): string | undefined {
  if (!isObject(schema)) return undefined
  if (key in schema) {
    const fault = faultOf(schema, names, isReachable)
    if (fault !== undefined) return fault
  }
  for (const [keyword, value] of Object.entries(schema)) {
    const isChain = keyword === 'properties' && (isRoot || isReachable)
    for (const inner of innerSchemas(keyword, value)) {
      const fault = lookAt(inner, { names, isReachable: isChain }, false)
      if (fault !== undefined) return fault
    }
  }
  return undefined
}

function faultOf(schema: Record<string, unknown>, names: Set<string>, isReachable: boolean): string | undefined {
  const name = schema[key]
  if (typeof name !== 'string' || !token.test(name)) {
    return `an ${key} of its inputSchema, ${JSON.stringify(name).slice(0, 80)}, is not the name of a header`
  }
  const what = `the ${key} "${name.slice(0, 80)}" of its inputSchema`
  if (!isReachable) return `${what} does not stand at a property that only "properties" lead to`
  if (!types.has(schema['type'])) return `${what} stands at a property that is not a string, integer or boolean`
  if (names.has(name.toLowerCase())) return `${what} is there twice`
  names.add(name.toLowerCase())
  return undefined
}

const maps: ReadonlySet<string> = new Set([
  'properties',
  'patternProperties',
  'dependentSchemas',
  '$defs',
  'definitions',
])
const data: ReadonlySet<string> = new Set(['const', 'enum', 'default', 'examples'])

function innerSchemas(keyword: string, value: unknown): readonly unknown[] {
  if (data.has(keyword)) return []
  if (Array.isArray(value)) return value as unknown[]
  if (!isObject(value)) return []
  return maps.has(keyword) ? Object.values(value) : [value]
}
