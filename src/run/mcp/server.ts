/** An MCP server as a config names it. */
import { MillraceError } from '../../part/error.ts'

interface Limits {
  /** ms for one call; default 60,000. */
  timeout?: number
  /** ms until the server must be ready for calls; default 10,000. Raise it for a command that first downloads itself. */
  connectTimeout?: number
}

/** A program of this machine that speaks MCP on its stdin and stdout. */
export interface McpStdioServer extends Limits {
  command: string
  args?: readonly string[]
  /**
   * What the program sees besides PATH, HOME and the like: names of our own variables to hand on, or names with values.
   * Never the whole environment, because that is where the keys are.
   */
  env?: readonly string[] | Readonly<Record<string, string>>
  /** Default: ours. */
  cwd?: string
}

/** A server that speaks MCP over streamable HTTP. */
export interface McpHttpServer extends Limits {
  url: string
  headers?: Readonly<Record<string, string>>
}

/** An MCP server: a command to start, or the URL of one that runs. */
export type McpServer = McpStdioServer | McpHttpServer

/** ms; timers take no more: what is beyond fires at once. */
export const longest = 2 ** 31 - 1

export function callTimeout(server: McpServer): number {
  return server.timeout ?? 60_000
}

export function connectTimeout(server: McpServer): number {
  return server.connectTimeout ?? 10_000
}

/** Throws `bad-config`, naming the server and the cure. */
export function checkServer(name: string, server: McpServer): void {
  const fail = (message: string) => new MillraceError('bad-config', `mcpServers.${name}: ${message}`)
  if (!/^[A-Za-z0-9_-]+$/.test(name)) throw fail('a name is made of letters, digits, "-" and "_".')
  const { command, url } = server as Partial<McpStdioServer & McpHttpServer>
  if ((command === undefined) === (url === undefined)) {
    throw fail('give either a command (and args), or a url.')
  }
  if (command === '') throw fail('the command is empty.')
  if (url !== undefined && !/^https?:$/.test(URL.parse(url)?.protocol ?? '')) {
    throw fail('the url must be an http:// or https:// address.')
  }
  // fetch would refuse them, in an error that repeats them.
  if (url !== undefined && /^https?:\/\/[^/?#]*@/.test(url)) {
    throw fail('the url holds a name or password: say them in headers.authorization.')
  }
  for (const [header, value] of Object.entries((server as Partial<McpHttpServer>).headers ?? {})) {
    if (!/^[\w!#$%&'*+.^`|~-]+$/.test(header)) throw fail(`"${header}" cannot be the name of a header.`)
    if (/[^\t\x20-\x7e\x80-\xff]/.test(String(value).trim())) {
      throw fail(`the header ${header} holds a line break or another character that no header may hold.`)
    }
  }
  for (const key of ['timeout', 'connectTimeout'] as const) {
    const value = server[key]
    if (value !== undefined && !(value > 0 && value <= longest)) {
      throw fail(`${key} must be a number of milliseconds between 1 and ${longest}.`)
    }
  }
}
