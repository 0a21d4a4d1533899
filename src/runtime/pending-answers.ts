/** What waits in the inbox of a run without owner: answers to its open requests, or a stop. */
import { compact } from '../part/compact.ts'
import type { Log } from '../part/log.ts'
import type { Accepted } from './foreign-run.ts'

/** What else the request with an answer brought. It is posted with the answer, for the process that resumes the run. */
export interface Wake {
  protocol?: string
  labels?: Record<string, string>
  input?: Record<string, unknown>
  /** MCP servers for which it brought headers. */
  ownHeaders?: string[]
}

export interface Pending {
  /** The reason of a stop. */
  stop?: string
  /** It was stopped because its thread was closed: nobody will answer. */
  closed?: true
  /** The open requests that are answered or closed. */
  answered: Set<string>
  /** What came with the answers. */
  wake: Wake
  /** With what a foreign run was let go on. */
  accepted?: Accepted
  /** How many messages the inbox had. */
  seen: number
}

export async function pendingAnswers(
  log: Log,
  run: string,
  open: { has(requestId: string): boolean },
): Promise<Pending> {
  const answered = new Set<string>()
  let wake: Wake = {}
  let accepted: Accepted | undefined
  let seen = 0
  for await (const { n, key, message } of log.inbox(run)) {
    seen = n
    if (key === 'stop') {
      const { reason = 'Stopped.', closed } = (message ?? {}) as { reason?: string; closed?: true }
      return { stop: reason, answered, wake, seen, ...compact({ closed }) }
    }
    const requestId = key.startsWith('answer:') ? key.slice('answer:'.length) : undefined
    if (requestId === undefined || !open.has(requestId)) continue
    answered.add(requestId)
    const { protocol, labels, input, ownHeaders } = message as Wake
    accepted = (message as { accepted?: Accepted }).accepted ?? accepted
    wake = { ...wake, ...compact({ protocol, labels, ownHeaders, input: input && { ...wake.input, ...input } }) }
  }
  return { answered, wake, seen, ...compact({ accepted }) }
}
