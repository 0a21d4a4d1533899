/** The config of an MCP server. */
import { MillraceError } from '../../part/error.ts'
import { authFault, type McpAuth } from './auth/auth-config.ts'

interface Limits {
  /** Timeout for one call in ms. Default 60,000. */
  timeout?: number
  /** ms until the server must be ready for calls. Default 10,000, for a command 30,000. Raise it for one that downloads much first. */
  connectTimeout?: number
  /** Its questions are put to the people of a run. Default false: it is told that nobody can be asked. */
  elicitation?: boolean
  /**
   * Its tools are found by the model, with the tool `find_tools`, instead of standing in every prompt. Default: if a step offers more than 64 tools of servers,
   * or more than 60,000 characters of them. false: never.
   */
  search?: boolean
  /** How long a task of this server may take, without the time for which the run waits for a person: ms, or a text such as `2h`. Default: the limits of the run. */
  taskTimeout?: number | string
}

/** A local program that speaks MCP on its stdin and stdout. */
export interface McpStdioServer extends Limits {
  command: string
  args?: readonly string[]
  /**
   * Environment variables in addition to PATH, HOME and the like: names of variables to pass on, or names with values.
   * The program never gets the whole environment, because that contains your API keys.
   */
  env?: readonly string[] | Readonly<Record<string, string>>
  /** Working directory. Default: that of this process. */
  cwd?: string
}

/** A server that speaks MCP over streamable HTTP. */
export interface McpHttpServer extends Limits {
  url: string
  headers?: Readonly<Record<string, string>>
  /** OAuth: how tokens for it are obtained. */
  auth?: McpAuth
}

/** An MCP server: a command to start, or the URL of a running server. */
export type McpServer = McpStdioServer | McpHttpServer

/** Maximum timer delay in ms. Longer delays fire at once. */
export const longest = 2 ** 31 - 1

export function callTimeout(server: McpServer): number {
  return server.timeout ?? 60_000
}

const units: ReadonlyMap<string, number> = new Map([
  ['ms', 1],
  ['s', 1000],
  ['m', 60_000],
  ['h', 3_600_000],
  ['d', 86_400_000],
])

/** ms; undefined for no limit, NaN for what is no duration. */
export function taskTimeout({ taskTimeout: given }: McpServer): number | undefined {
  if (typeof given !== 'string') return given
  const [, count, unit = 'ms'] = /^(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)?$/u.exec(given) ?? []
  return count === undefined ? Number.NaN : Number(count) * units.get(unit)!
}

export function connectTimeout(server: McpServer): number {
  // The first `npx` of a package downloads it.
  return server.connectTimeout ?? ('command' in server ? 30_000 : 10_000)
}

/** Why a header cannot be sent. Never quotes its value. */
export function headerFault(header: string, value: string): string | undefined {
  if (!/^[\w!#$%&'*+.^`|~-]+$/.test(header)) return `"${header}" is not a valid header name.`
  if (!/[^\t\x20-\x7e\x80-\xff]/.test(value.trim())) return undefined
  return `the header ${header} contains a line break or another character that is not allowed in a header.`
}

/** Throws `bad-config` with the server's name and the cure. */
export function checkServer(name: string, server: McpServer): void {
  const fail = (message: string) => new MillraceError('bad-config', `mcpServers.${name}: ${message}`)
  if (!/^[A-Za-z0-9_-]+$/.test(name)) throw fail('a name may contain only letters, digits, "-" and "_".')
  const { command, url } = server as Partial<McpStdioServer & McpHttpServer>
  if ((command === undefined) === (url === undefined)) {
    throw fail('set either a command (with args) or a url.')
  }
  if (command === '') throw fail('the command is empty.')
  if (url !== undefined && !/^https?:$/.test(URL.parse(url)?.protocol ?? '')) {
    throw fail('the url must be an http:// or https:// address.')
  }
  // `fetch` would reject credentials with an error that quotes them.
  if (url !== undefined && /^https?:\/\/[^/?#]*@/.test(url)) {
    throw fail('the url contains a user name or password: send them in headers.authorization instead.')
  }
  for (const [header, value] of Object.entries((server as Partial<McpHttpServer>).headers ?? {})) {
    const fault = headerFault(header, String(value))
    if (fault !== undefined) throw fail(fault)
  }
  const { headers, auth } = server as Partial<McpHttpServer>
  const authProblem = authFault(url, headers, auth)
  if (authProblem !== undefined) throw fail(authProblem)
  for (const key of ['elicitation', 'search'] as const) {
    if (server[key] !== undefined && typeof server[key] !== 'boolean') throw fail(`${key} must be true or false.`)
  }
  const limit = taskTimeout(server)
  if (limit !== undefined && !(limit > 0 && limit <= longest)) {
    throw fail('taskTimeout must be a number of milliseconds, or a duration such as 30m or 2h, at most 24d.')
  }
  for (const key of ['timeout', 'connectTimeout'] as const) {
    const value = server[key]
    if (value !== undefined && !(value > 0 && value <= longest)) {
      throw fail(`${key} must be a number of milliseconds between 1 and ${longest}.`)
    }
  }
}
