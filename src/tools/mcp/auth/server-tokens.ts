/** The tokens for the servers of a config, by their names. All connections to a server share them. */
import type { McpServer } from '../server.ts'
import type { CredentialsOptions } from './client-credentials.ts'
import { SignInNeeded } from './sign-in-needed.ts'
import { createTokenSource, type TokenSource } from './token-source.ts'

/** Undefined for a server without `auth`. */
export type ServerTokens = (name: string, server: McpServer) => Promise<TokenSource> | undefined

export type TokenOptions = Pick<CredentialsOptions, 'environment' | 'now' | 'fetch'>

export function createServerTokens(options: TokenOptions): ServerTokens {
  const sources = new Map<string, Promise<TokenSource>>()
  return (name, server) => {
    if (!('url' in server) || server.auth === undefined) return undefined
    const { url, auth } = server
    if ('person' in auth)
      return Promise.resolve(createTokenSource(() => Promise.reject(new SignInNeeded(name)), Date.now))
    const known = sources.get(name)
    if (known !== undefined) return known
    // It loads libraries that most servers do not need.
    const source = import('./client-credentials.ts').then(({ createClientCredentials }) =>
      createClientCredentials(auth.clientCredentials, { ...options, url, who: `The MCP server "${name}"` }),
    )
    sources.set(name, source)
    return source
  }
}
