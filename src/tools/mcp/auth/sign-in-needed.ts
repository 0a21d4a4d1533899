import { MillraceError } from '../../../part/error.ts'

/** Nobody has signed in to this server for the caller, or the sign-in has ended. The request was not carried out. */
export class SignInNeeded extends MillraceError {
  readonly server: string

  constructor(server: string) {
    super('mcp-unauthorized', `The MCP server "${server}" needs somebody to sign in.`)
    this.server = server
  }
}
