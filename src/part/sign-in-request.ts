/** The question of a run whose person must sign in to an MCP server. Its `metadata` has the `server`, and as `url` the path where that is done. */

/** `reason` of the request. */
export const signInReason = 'mcp-sign-in'

/** Where a person signs in, at the server that runs the agent. */
export function connectPath(requestId: string): string {
  return `/mcp/connect/${encodeURIComponent(requestId)}`
}
