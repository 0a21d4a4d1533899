/** The MCP servers of a config. Connects to each on first use; all runs share the connection. */
import { MillraceError } from '../../part/error.ts'
import type { McpConnection, openConnection } from './connection.ts'
import { createServerTokens, type ServerTokens, type TokenOptions } from './auth/server-tokens.ts'
import { lazySignIns } from './auth/lazy-sign-ins.ts'
import type { SignIns, SignInsOptions } from './auth/sign-ins.ts'
import type { TokenSource } from './auth/token-source.ts'
import { sessionEnded, unlessStopped } from './fault.ts'
import { defaultReadLimits, type ReadLimits } from '../../models/limits/read-limits.ts'
import { secretsIn, withHeaders, type McpHeaders } from './own-headers.ts'
import { callTimeout, checkServer, type McpServer } from './server.ts'

export interface McpTool {
  name: string
  description?: string
  /** JSON Schema of an object. */
  inputSchema: Record<string, unknown>
  /** Patterns in its schemas that are not enforced, each with the reason. */
  unchecked?: string[]
}

/** A tool of a server that cannot be used. Without a name: something about the list itself. */
export interface LeftOut {
  name?: string
  why: string
}

/** The usable tools of a server, and the omitted ones. */
export type McpTools = McpTool[] & { leftOut?: LeftOut[] }

export interface CallOptions {
  signal?: AbortSignal
  /** ms. Default: the server's `timeout`. */
  timeout?: number
  /** The call's place in its trace (W3C Trace Context). */
  traceparent?: string
  /** A model reads the result: it gets pictures as well, where there is structured content. */
  forModel?: boolean
}

/**
 * Methods reject with a `MillraceError`: `unknown-mcp-server`, `mcp-unreachable` (the server does not start or respond),
 * `mcp-unauthorized` (there is no token that it accepts), `mcp-lost` (the connection was lost: the call may or may not have been
 * executed), `mcp-closed`, `timed-out`, `line-too-long` and `body-too-large` (the server sent more than the config allows), `redirect-refused`, `aborted`, and
 * `tool-failed` with the server's message. After a loss, the next use reconnects.
 */
export interface McpPool {
  readonly names: readonly string[]
  /** Timeout in ms for a call to this server. */
  timeout(server: string): number
  /** All tools of a server. Cached until the server reports a change or the connection ends. */
  tools(server: string, signal?: AbortSignal): Promise<McpTools>
  /** Resolves with the structured content, the text, or the list of content blocks. An abort or a timeout cancels the request on the server. */
  call(server: string, tool: string, input: unknown, options?: CallOptions): Promise<unknown>
  /** The servers of the config. */
  readonly servers: ReadonlyMap<string, McpServer>
  /** Of a person's pool: resolves when there is a token for a server. Rejects with `SignInNeeded`, and as a call does. */
  ready?(server: string): Promise<void>
  /** Absent: there is no server to which people sign in. */
  readonly people?: PeoplePool
  /** A pool with connections of its own to these servers, with these headers. It is closed with this one. */
  withHeaders(headers: McpHeaders): McpPool
  /** Ends all calls; resolves when the servers have exited and their child processes are killed. The pool cannot be used again. */
  close(): Promise<void>
}

export interface PoolOptions extends Partial<TokenOptions> {
  secrets?: readonly string[]
  limits?: ReadLimits
  /** Those of the pool whose servers these are. */
  tokens?: ServerTokens
}

/** The servers to which people sign in. */
export interface PeoplePool {
  readonly names: readonly string[]
  /** Keeps their tokens in this store. */
  signIns(keeping: Omit<SignInsOptions, 'environment' | 'fetch'>): SignIns
  /** All servers, with connections of one person's own to those of `names`. It is closed with the whole pool. */
  poolOf(sourceOf: (server: string) => Promise<TokenSource>): McpPool
}

/** Opens no connection yet. `secrets` are removed from server output that errors quote. Throws `bad-config`. */
export function createMcpPool(
  servers: Readonly<Record<string, McpServer>>,
  { secrets = [], limits = defaultReadLimits, environment = {}, now = Date.now, fetch, ...given }: PoolOptions = {},
): McpPool {
  const known = new Map(Object.entries(servers))
  for (const [name, server] of known) checkServer(name, server)
  const tokens = given.tokens ?? createServerTokens({ environment, now, fetch })
  // Connections stay here until they have ended, so that `close` waits for all of them.
  const connections = new Map<string, Promise<McpConnection>>()
  const end = new AbortController()
  const children = new Set<McpPool>()

  function serverOf(name: string): McpServer {
    const server = known.get(name)
    if (server !== undefined) return server
    const names = [...known.keys()].join(', ') || 'none'
    throw new MillraceError('unknown-mcp-server', `There is no MCP server "${name}". Known: ${names}.`)
  }

  function connect(name: string): Promise<McpConnection> {
    const server = serverOf(name)
    end.signal.throwIfAborted()
    const existing = connections.get(name)
    if (existing !== undefined) return existing
    const forget = () => {
      if (connections.get(name) === opening) connections.delete(name)
    }
    const opening = open(name, server, {
      signal: end.signal,
      secrets,
      limits,
      tokens: tokens(name, server),
      onEnd: forget,
    })
    connections.set(name, opening)
    opening.catch(forget)
    return opening
  }

  async function use<T>(name: string, signal: AbortSignal | undefined, work: (c: McpConnection) => Promise<T>) {
    const attempt = async () => work(await unlessStopped(connect(name), signal))
    try {
      return await attempt().catch((error: unknown) => {
        if (error instanceof MillraceError && error.code === sessionEnded) return attempt()
        throw error
      })
    } catch (error) {
      if (!end.signal.aborted || signal?.aborted) throw error
      throw new MillraceError('mcp-closed', `The MCP server "${name}" was closed with its runtime.`, { cause: error })
    }
  }

  function child(all: Readonly<Record<string, McpServer>>, options: PoolOptions): McpPool {
    const pool = createMcpPool(all, { limits, environment, now, ...(fetch && { fetch }), ...options })
    const close = async () => {
      await pool.close()
      children.delete(own)
    }
    const own: McpPool = { ...pool, close }
    children.add(own)
    return own
  }

  const personal = [...known].flatMap(([name, server]) => (isPersonal(server) ? [name] : []))

  const people: PeoplePool = {
    names: personal,
    signIns: (keeping) => lazySignIns(known, { environment, fetch, ...keeping }),
    poolOf(sourceOf) {
      const own = child(servers, {
        secrets,
        tokens: (name, server) => (isPersonal(server) ? sourceOf(name) : tokens(name, server)),
      })
      const of = (name: string) => (personal.includes(name) ? own : pool)
      return {
        ...own,
        people,
        ready: async (name) => void (isPersonal(serverOf(name)) && (await (await sourceOf(name)).token())),
        tools: async (name, signal) => of(name).tools(name, signal),
        call: async (name, tool, input, options) => of(name).call(name, tool, input, options),
      }
    },
  }

  const pool: McpPool = {
    names: [...known.keys()],
    servers: known,
    ...(personal.length > 0 && { people }),
    withHeaders(headers) {
      const changed = Object.entries(headers).map(([name, own]) => [name, withHeaders(serverOf(name), own)] as const)
      const hidden = [...secrets, ...secretsIn(headers)]
      return child(Object.fromEntries(changed), { secrets: hidden, tokens })
    },
    timeout: (name) => callTimeout(serverOf(name)),
    tools: (name, signal) => use(name, signal, (connection) => unlessStopped(connection.tools(), signal)),
    call: (name, tool, input, options = {}) =>
      use(name, options.signal, (connection) => connection.call(tool, input, options)),
    async close() {
      end.abort()
      const open = [...connections.values()].map(async (opening) => (await opening).close())
      await Promise.allSettled([...open, ...[...children].map((each) => each.close())])
    },
  }
  return pool
}

function isPersonal(server: McpServer): boolean {
  return 'url' in server && server.auth !== undefined && 'person' in server.auth
}

// The MCP SDK is slow to load, so it is imported only when a server is used.
async function open(...args: Parameters<typeof openConnection>): Promise<McpConnection> {
  const connection = await import('./connection.ts')
  return connection.openConnection(...args)
}
