/**
 * Headers that a request brings for MCP servers: the credentials of its user. They belong to one run: its connections to those servers
 * are its own, and closed when it ends or waits. They are in memory only.
 */
import { MillraceError } from '../../part/error.ts'
import { didYouMean } from '../../pipeline/nearest.ts'
import type { McpPool } from './pool.ts'
import { headerFault, type McpServer } from './server.ts'

/** Server → header → value. */
export type McpHeaders = Readonly<Record<string, Readonly<Record<string, string>>>>

const mostHeaders = 20
const longestValue = 8192
/** Headers that belong to the transport. */
const reserved: ReadonlySet<string> = new Set([
  'host',
  'connection',
  'content-length',
  'content-type',
  'transfer-encoding',
  'accept',
  'upgrade',
  'te',
  'expect',
  'mcp-session-id',
  'mcp-protocol-version',
  'last-event-id',
])

/** Checks the headers of a client. Errors name the server and the header, never a value. Throws `bad-input` (400). */
export function toMcpHeaders(
  value: unknown,
  servers: ReadonlyMap<string, McpServer>,
  place = 'mcpHeaders',
): McpHeaders | undefined {
  if (value === undefined || value === null) return undefined
  const headers = new Map<string, Readonly<Record<string, string>>>()
  for (const [name, given] of entriesOf(value, place)) {
    const server = servers.get(name)
    if (server === undefined) {
      const known = [...servers.keys()]
      const hint = didYouMean(name.slice(0, 60), known)
      throw bad(place, `names the MCP server "${name.slice(0, 60)}", which is not in the config${hint}.`)
    }
    const at = `${place}.${name}`
    if (!('url' in server)) throw bad(at, 'is a local program in the config: only servers with a url have headers.')
    const list = entriesOf(given, at)
    if (list.length > mostHeaders) throw bad(at, `has ${list.length} headers; at most ${mostHeaders} are allowed.`)
    const own = new Map<string, string>()
    for (const [header, text] of list) {
      if (typeof text !== 'string') throw bad(at, `has a header "${header.slice(0, 60)}" that is not a string.`)
      const fault = headerFault(header.slice(0, 200), text)
      if (fault !== undefined) throw bad(at, `has a fault: ${fault}`)
      if (reserved.has(header.toLowerCase())) throw bad(at, `must not set ${header}: the connection sets it.`)
      if (text.length > longestValue) throw bad(at, `has a header ${header} with more than ${longestValue} characters.`)
      own.set(header, text.trim())
    }
    headers.set(name, Object.fromEntries(own))
  }
  return headers.size === 0 ? undefined : Object.fromEntries(headers)
}

/** The texts that must not be recorded: each value, and the part after its scheme (`Bearer …`). */
export function secretsIn(headers: McpHeaders): string[] {
  const values = Object.values(headers).flatMap((own) => Object.values(own))
  return [...new Set(values.flatMap((value) => [value, value.replace(/^\S+\s+/u, '')]))]
}

/** A server with the headers of a request, which replace those of the config with the same name. `Authorization` also replaces `auth`. */
export function withHeaders<S extends McpServer>(server: S, own: Readonly<Record<string, string>>): S {
  const names = new Set(Object.keys(own).map((name) => name.toLowerCase()))
  const { headers = {}, auth, ...others } = server as S & { headers?: Record<string, string>; auth?: unknown }
  const remaining = Object.entries(headers).filter(([name]) => !names.has(name.toLowerCase()))
  const kept = names.has('authorization') || auth === undefined ? undefined : { auth }
  return { ...(others as unknown as S), ...kept, headers: { ...Object.fromEntries(remaining), ...own } }
}

/**
 * The servers as one run has them. `names`: those for which its requests brought headers. Without these in memory a call fails,
 * because it must not be made with the server's own rights.
 */
export function ownPool(pool: McpPool, names: Iterable<string>, headers: McpHeaders): McpPool {
  const own = pool.withHeaders(headers)
  const ownNames = new Set(Object.keys(headers))
  const lost = new Set([...names].filter((name) => !ownNames.has(name)))
  const of = (server: string) => {
    if (ownNames.has(server)) return own
    if (!lost.has(server)) return pool
    const why = 'They are not stored, so they are gone since the server was restarted'
    const cure = 'Send them again (mcpHeaders) with the request that continues the run, or start a new one'
    const message = `The MCP server "${server}" needs the headers that came with the request. ${why}. ${cure}.`
    throw new MillraceError('mcp-headers-missing', message)
  }
  return {
    ...pool,
    ...(pool.ready && {
      ready: async (server: string) => {
        // Otherwise the request says who calls.
        if (own.people?.names.includes(server) === true || !ownNames.has(server)) await pool.ready!(server)
      },
    }),
    tools: async (server, signal) => of(server).tools(server, signal),
    call: async (server, tool, input, options) => of(server).call(server, tool, input, options),
    exchange: async (server, tool, input, options) => of(server).exchange(server, tool, input, options),
    task: async (server, id, use, options) => of(server).task(server, id, use, options),
    close: () => own.close(),
  }
}

function entriesOf(value: unknown, place: string): [string, unknown][] {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return Object.entries(value)
  throw bad(place, 'must be an object.')
}

function bad(place: string, words: string): MillraceError {
  return new MillraceError('bad-input', `${place} ${words}`, { status: 400 })
}
