/**
 * `/.well-known/oauth-protected-resource/mcp`: where clients of MCP get a token, for a server that accepts those of an issuer.
 * https://datatracker.ietf.org/doc/html/rfc9728
 */
import type { Routes } from '../http/routes.ts'
import type { McpServices } from './settings.ts'

export const metadataPath = '/.well-known/oauth-protected-resource/mcp'

export function mountResourceMetadata(routes: Routes, mcp: McpServices): void {
  const { issuer } = mcp.options
  if (issuer === undefined) return
  routes.get(metadataPath, 'open', (_context, { raw }) =>
    Response.json({
      resource: `${originOf(mcp, raw)}/mcp`,
      authorization_servers: [issuer],
      bearer_methods_supported: ['header'],
    }),
  )
}

/** `WWW-Authenticate` of a 401. */
export function challengeOf(mcp: McpServices, request: Request): string {
  if (mcp.options.issuer === undefined) return 'Bearer'
  return `Bearer resource_metadata="${originOf(mcp, request)}${metadataPath}"`
}

function originOf({ options: { publicUrl } }: McpServices, request: Request): string {
  return publicUrl ?? new URL(request.url).origin
}
