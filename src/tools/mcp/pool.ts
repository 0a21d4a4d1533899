/** The MCP servers of a config. Connects to each on first use; all runs share the connection. */
import { MillraceError } from '../../part/error.ts'
import { createServerTokens, type ServerTokens, type TokenOptions } from './auth/server-tokens.ts'
import { lazySignIns } from './auth/lazy-sign-ins.ts'
import type { SignIns, SignInsOptions } from './auth/sign-ins.ts'
import type { TokenSource } from './auth/token-source.ts'
import type { McpAnswer, McpQuestion, McpReply, McpTaskState } from './answer.ts'
import type { McpConnection, OpenOptions, openConnection } from './connection.ts'
import { sessionEnded, unlessStopped } from './fault.ts'
import { defaultReadLimits, type ReadLimits } from '../../models/limits/read-limits.ts'
import { secretsIn, withHeaders, type McpHeaders } from './own-headers.ts'
import { callTimeout, checkServer, type McpServer } from './server.ts'

export interface McpTool {
  name: string
  description?: string
  /** Its description is another one than when this process first saw the tool. */
  changed?: true
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
export type McpTools = McpTool[] & {
  leftOut?: LeftOut[]
  /** They stand for themselves in a recording in which a model has found them. */
  searched?: true
}

export interface CallOptions {
  signal?: AbortSignal
  /** ms. Default: the server's `timeout`. */
  timeout?: number
  /** The call's place in its trace (W3C Trace Context). */
  traceparent?: string
  /** A model reads the result: it gets pictures as well, where there is structured content. */
  forModel?: boolean
}

/** A call whose server may ask, or go on after its answer. */
export interface ExchangeOptions extends CallOptions {
  /** Somebody can be asked, and the server's config allows it. */
  asks?: boolean
  /** The call may become a task. */
  tasks?: boolean
  /** Gets what the server says meanwhile: short, in words for people, and as often as it says something. */
  progress?: (words: string) => void
  /** The call is sent again: with the replies to what the server asked, and its state, unchanged. */
  retry?: { inputResponses?: Record<string, McpReply>; requestState?: string }
  /** A legacy server asks in the middle of the call, which stays open: this answers. Rejects if the call is to fail. */
  answer?: (question: McpQuestion) => Promise<McpReply>
  /** The run of the call: a legacy server that asks gets a connection for each run. See `endRun`. */
  run?: string
}

/** A request about a task. `tool`: whose result is read. */
export interface TaskUse {
  method: 'tasks/get' | 'tasks/update' | 'tasks/cancel'
  params?: { inputResponses: Record<string, McpReply> }
  tool: string
}

export type TaskOptions = Pick<CallOptions, 'signal' | 'timeout' | 'forModel'>

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
  /** The same for a call whose server may ask, or go on after its answer. */
  exchange(server: string, tool: string, input: unknown, options: ExchangeOptions): Promise<McpAnswer>
  /** Asks for the state of a task, sends replies to its questions, or cancels it. Only `tasks/get` resolves with a state. */
  task(server: string, id: string, use: TaskUse, options?: TaskOptions): Promise<McpTaskState | undefined>
  /** Closes the connections that this run alone has had. */
  endRun(run: string): Promise<void>
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
  /** Servers that were legacy when they were asked last. */
  const legacy = new Set<string>()
  /** The first description of each tool: by server and name. */
  const described = new Map<string, string | undefined>()
  const end = new AbortController()
  const children = new Set<McpPool>()

  function serverOf(name: string): McpServer {
    const server = known.get(name)
    if (server !== undefined) return server
    const names = [...known.keys()].join(', ') || 'none'
    throw new MillraceError('unknown-mcp-server', `There is no MCP server "${name}". Known: ${names}.`)
  }

  /** `run`: the connection is for this run alone, and its people can be asked. */
  function connect(name: string, run?: string): Promise<McpConnection> {
    const server = serverOf(name)
    end.signal.throwIfAborted()
    const key = run === undefined ? name : `${name} ${run}`
    const existing = connections.get(key)
    if (existing !== undefined) return existing
    const forget = () => {
      if (connections.get(key) === opening) connections.delete(key)
    }
    const own: OpenOptions = {
      signal: end.signal,
      secrets,
      limits,
      tokens: tokens(name, server),
      isLegacy: legacy.has(name),
      asks: run !== undefined,
      onEnd: forget,
    }
    const opening = open(name, server, own)
    connections.set(key, opening)
    opening.then(
      ({ era }) => (era === 'legacy' ? legacy.add(name) : legacy.delete(name)),
      () => {
        legacy.delete(name)
        forget()
      },
    )
    return opening
  }

  async function use<T>(
    name: string,
    signal: AbortSignal | undefined,
    work: (c: McpConnection) => Promise<T>,
    run?: string,
  ): Promise<T> {
    const attempt = async () => work(await unlessStopped(connect(name, run), signal))
    try {
      return await attempt().catch((error: unknown) => {
        if (!(error instanceof MillraceError) || error.code !== sessionEnded) throw error
        // Whoever was started anew may speak another version.
        legacy.delete(name)
        return attempt()
      })
    } catch (error) {
      if (!end.signal.aborted || signal?.aborted) throw error
      throw new MillraceError('mcp-closed', `The MCP server "${name}" was closed with its runtime.`, { cause: error })
    }
  }

  async function exchange(name: string, tool: string, input: unknown, options: ExchangeOptions): Promise<McpAnswer> {
    const { signal, run, asks = false, answer } = options
    const send = (connection: McpConnection) => connection.exchange(tool, input, options)
    if (!asks || run === undefined || answer === undefined) return use(name, signal, send)
    const era = legacy.has(name) ? 'legacy' : await use(name, signal, async (connection) => connection.era)
    return use(name, signal, send, era === 'legacy' ? run : undefined)
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
        exchange: async (name, tool, input, options) => of(name).exchange(name, tool, input, options),
        task: async (name, id, use, options) => of(name).task(name, id, use, options),
        endRun: async (run) => void (await Promise.all([own.endRun(run), pool.endRun(run)])),
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
    async tools(name, signal) {
      const tools = await use(name, signal, (connection) => unlessStopped(connection.tools(), signal))
      for (const tool of tools) {
        const key = `${name} ${tool.name}`
        if (!described.has(key)) described.set(key, tool.description)
        else if (described.get(key) !== tool.description) tool.changed = true
      }
      return tools
    },
    async call(name, tool, input, options = {}) {
      const answer = await exchange(name, tool, input, options)
      // It was told that nobody can be asked, and that nobody waits for a task.
      if (answer.kind !== 'result')
        throw new MillraceError('tool-failed', `The MCP server "${name}" did not answer ${tool}.`)
      return answer.value
    },
    exchange,
    task: (name, id, request, options = {}) =>
      use(name, options.signal, (connection) => connection.task(id, request, options)),
    async endRun(run) {
      // Names have no spaces.
      const own = (key: string) => key.includes(' ') && key.slice(key.indexOf(' ') + 1) === run
      const ending = [...connections].filter(([key]) => own(key)).map(([, opening]) => opening)
      await Promise.allSettled(ending.map(async (opening) => (await opening).close()))
    },
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
