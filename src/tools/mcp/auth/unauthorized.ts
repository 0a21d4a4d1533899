import { MillraceError } from '../../../part/error.ts'

/** There is no token that an MCP server accepts. `who`: the server by its name. `detail`: for the log only. */
export function unauthorized(who: string, why: string, detail?: string): MillraceError {
  return new MillraceError('mcp-unauthorized', `${who} cannot be used: ${why}.`, detail === undefined ? {} : { detail })
}
