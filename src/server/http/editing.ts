/** Access control for changes of agents. An agent can start programs, so this requires more than running one. */
import { MillraceError } from '../../part/error.ts'
import { isOtherPage, senderOf } from './origin-check.ts'
import { isSameSecret } from './key.ts'

export interface Editing {
  /** `token`: the server's token is required. */
  readonly state: boolean | 'token'
  /** Throws `forbidden`. */
  check(request: Pick<Request, 'headers'>): void
}

export interface EditingOptions {
  edit?: boolean
  editToken?: string
  /** Requests are not authenticated, so only the server's own page is allowed. */
  ownPageOnly: boolean
}

/** The header that carries the token. */
export const editTokenHeader = 'x-millrace-edit-token'

export function createEditing({ edit = false, editToken, ownPageOnly }: EditingOptions): Editing {
  return {
    state: edit && editToken !== undefined ? 'token' : edit,
    check({ headers }) {
      const fault = faultOf(headers)
      if (fault !== undefined) throw new MillraceError('forbidden', fault)
    },
  }

  function faultOf(headers: Headers): string | undefined {
    if (!edit) {
      const cure = 'It may be without a key on this machine, or with "server.edit: true" in the config.'
      return `Agents may not be edited on this server. ${cure}`
    }
    if (ownPageOnly && isOtherPage(senderOf(headers))) {
      return 'Without a key only the page of this server itself may edit agents. Set MILLRACE_API_KEY to edit them from another one.'
    }
    if (editToken === undefined || isSameSecret(headers.get(editTokenHeader) ?? '', editToken)) return undefined
    const cure =
      'Open the address for editing that "millrace serve" prints, or send "token" of server.json in the data folder'
    return `To edit agents, this server wants its token. ${cure} as the header X-Millrace-Edit-Token.`
  }
}
