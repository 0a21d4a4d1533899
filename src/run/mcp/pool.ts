/** The MCP servers of a config, each connected to on its first use and shared by everyone. */
import { MillraceError } from '../../part/error.ts'
import type { McpConnection, openConnection } from './connection.ts'
import { sessionEnded, unlessStopped } from './fault.ts'
import { defaultReadLimits, type ReadLimits } from '../outside/read-limits.ts'
import { callTimeout, checkServer, type McpServer } from './server.ts'

export interface McpTool {
  name: string
  description?: string
  /** JSON Schema of an object. */
  inputSchema: Record<string, unknown>
  /** Patterns of its schemas that are not enforced, each with the reason. */
  unchecked?: string[]
}

export interface CallOptions {
  signal?: AbortSignal
  /** ms; default: the server's. */
  timeout?: number
}

/**
 * Everything rejects with a `MillraceError`: `unknown-mcp-server`, `mcp-unreachable` (it does not start, or nothing
 * answers), `mcp-lost` (it went away meanwhile: the call may or may not have been done), `mcp-closed`, `timed-out`,
 * `line-too-long` and `body-too-large` (it sent more than the config allows), `redirect-refused`, `aborted`, and `tool-failed` with what the server said. After a loss the next use connects again.
 */
export interface McpPool {
  readonly names: readonly string[]
  /** ms that a call of this server may take. */
  timeout(server: string): number
  /** All of them; kept until the server says that they have changed, or is gone. */
  tools(server: string, signal?: AbortSignal): Promise<McpTool[]>
  /** The structured content, or the text, or the list of content blocks. Stopping or timing out tells the server. */
  call(server: string, tool: string, input: unknown, options?: CallOptions): Promise<unknown>
  /** Ends what runs; resolves when the servers have ended and what they started has been killed. Nothing connects again. */
  close(): Promise<void>
}

/** Connects to nothing yet. `secrets` are found in nothing that errors tell of a server's output. Throws `bad-config`. */
export function createMcpPool(
  servers: Readonly<Record<string, McpServer>>,
  { secrets = [], limits = defaultReadLimits }: { secrets?: readonly string[]; limits?: ReadLimits } = {},
): McpPool {
  const known = new Map(Object.entries(servers))
  for (const [name, server] of known) checkServer(name, server)
  // Each until it is gone, so that closing waits for all that is left.
  const connections = new Map<string, Promise<McpConnection>>()
  const end = new AbortController()

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
    const opening = open(name, server, { signal: end.signal, secrets, limits, onEnd: forget })
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
      throw new MillraceError('mcp-closed', `The MCP server "${name}" was closed by us.`, { cause: error })
    }
  }

  return {
    names: [...known.keys()],
    timeout: (name) => callTimeout(serverOf(name)),
    tools: (name, signal) => use(name, signal, (connection) => unlessStopped(connection.tools(), signal)),
    call: (name, tool, input, options = {}) =>
      use(name, options.signal, (connection) => connection.call(tool, input, options)),
    async close() {
      end.abort()
      await Promise.allSettled([...connections.values()].map(async (opening) => (await opening).close()))
    },
  }
}

// The MCP SDK takes its time to load: only who uses a server pays for it.
async function open(...args: Parameters<typeof openConnection>): Promise<McpConnection> {
  const connection = await import('./connection.ts')
  return connection.openConnection(...args)
}
