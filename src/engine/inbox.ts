/** A run's inbox: messages that are posted for the run, and how its owner copies them into the log. */
import { MillraceError } from '../part/error.ts'
import type { InboxMessage, Log } from '../part/log.ts'
import type { Part } from '../part/part.ts'
import type { Actor } from '../part/principal.ts'
import type { Reply } from '../part/request-part.ts'
import type { Scope } from './scope.ts'

/** Delivers the messages after number `n` and resolves with the last number. Without a signal it reads only existing messages. */
export async function readInbox(
  log: Log,
  run: string,
  n: number,
  signal: AbortSignal | undefined,
  receive: (message: InboxMessage) => void,
): Promise<number> {
  let last = n
  try {
    for await (const message of log.inbox(run, { after: n, signal })) {
      last = message.n
      receive(message)
    }
  } catch {
    // A store that cannot be read cannot be written either: the next append fails the run.
  }
  return last
}

/** Handles `stop` and `answer:<request>`. Only this function copies inbox messages into the log. */
export function receive({ key, message }: InboxMessage, scope: Scope, controller: AbortController): void {
  if (key === 'stop') {
    const reason = (message as { reason?: string } | null)?.reason ?? 'Stopped.'
    controller.abort(new MillraceError('aborted', reason))
    return
  }
  const requestId = key.startsWith('answer:') ? key.slice('answer:'.length) : undefined
  const request = requestId === undefined ? undefined : scope.state.open.requests.get(requestId)
  if (request === undefined || requestId === undefined) return
  scope.emit(request.step, toResponse(requestId, message as PostedAnswer))
}

/** The message of `answer:<request>`: the reply, or the reason why there is none. */
export type PostedAnswer =
  | {
      answer: Reply
      protocol: string
      by?: Actor
      labels?: Record<string, string>
      input?: Record<string, unknown>
      ownHeaders?: string[]
      /** The accepted continuation of a run that was recorded elsewhere. */
      accepted?: object
    }
  | { closed: string }

function toResponse(requestId: string, message: PostedAnswer): Extract<Part, { type: 'response' }> {
  if ('closed' in message) return { type: 'response', requestId, outcome: 'closed', reason: message.closed }
  const { answer, protocol, by } = message
  return { type: 'response', requestId, outcome: 'answered', answer, protocol, ...(by !== undefined && { by }) }
}
