import type { DeliveryContext } from '../../delivery/open-delivery.ts'
import type { AgentEditor } from '../../project/agent-editor.ts'
import type { MillraceError } from '../../part/error.ts'
import type { Handler } from '../handler-context.ts'
import type { Access } from '../access/access.ts'
import type { Admission } from '../http/admission.ts'

/** The runtime of the Socket.IO binding, its access rules, and its limits. As for {@link HandlerOptions}. */
export interface SocketOptions extends Omit<DeliveryContext, 'keepAliveMs'> {
  /** Says who each client is, by `auth.token` or by its cookies. */
  access: Access
  /** Whether clients prove who they are. Otherwise pages of other sites are refused. */
  asksWho: boolean
  localOnly: boolean
  allowedOrigins?: readonly string[]
  /** The HTTP routes, with the same key and the same limits. */
  handler: Handler
  /** The maximum size of a message. */
  maxBodyBytes?: number
  /** The same object as the handler's. */
  admission?: Admission
  /** As for the handler. */
  edit?: boolean
  editToken?: string
  agentEditor?: AgentEditor
  /** As for the handler: messages are refused while it returns an error. */
  draining?: () => MillraceError | undefined
}
