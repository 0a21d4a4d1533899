/** The tool calls of one run in its stream to one client: which of them the client may answer, and how. */
import type { Entry, EntryOf } from '../../part/entry.ts'
import { MillraceError } from '../../part/error.ts'
import type { Log } from '../../part/log.ts'
import { awaitEntry } from '../../runtime/await-entry.ts'

export interface ClientCalls {
  /** Takes an entry of the run, in order. */
  note(entry: Entry): void
  has(toolCallId: string): boolean
  /** Whether a client is asked to run this call. */
  isOpen(toolCallId: string): boolean
  /**
   * The request for the result of this call. A client may be faster than the run: it has seen the whole call while the model still makes others.
   * Then this waits for the request. Rejects if none comes.
   */
  requestOf(toolCallId: string): Promise<string>
}

export interface ClientCallsOptions {
  log: Log
  runId: string
  signal: AbortSignal
  /** +1 when a result begins to wait for its request, -1 when it ends. */
  onWaiting(change: 1 | -1): void
}

interface ClientCall {
  /** The `seq` after which the run makes the request for the result. */
  seq: number
  requestId?: string
  /** The request for approval of the call. */
  approval?: string
  isOpen: boolean
  /** Why it cannot be answered (now). */
  fault?: MillraceError
  asked?: Promise<string>
}

export function createClientCalls({ log, runId, signal, onWaiting }: ClientCallsOptions): ClientCalls {
  const calls = new Map<string, ClientCall>()

  function note(entry: Entry): void {
    switch (entry.type) {
      case 'tool-call':
        calls.set(entry.toolCallId, { seq: entry.seq, isOpen: false })
        break
      case 'request': {
        const call = entry.kind === 'input' ? undefined : calls.get(entry.toolCallId)
        if (call === undefined) break
        if (entry.kind === 'approval') {
          Object.assign(call, { approval: entry.requestId, fault: notApproved(entry.toolCallId!) })
        } else Object.assign(call, { requestId: entry.requestId, isOpen: true, fault: undefined })
        break
      }
      case 'response':
        for (const call of calls.values()) {
          if (call.requestId === entry.requestId) call.isOpen = false
          // The client sees the call now, and may be faster than the run again.
          if (call.approval === entry.requestId && isApproved(entry)) {
            Object.assign(call, { seq: entry.seq, fault: undefined, asked: undefined })
          }
        }
        break
      case 'tool-result': {
        if (entry.preliminary === true) break
        const call = calls.get(entry.toolCallId)
        // A client tool call is kept, to report its outcome after a late reply.
        if (call !== undefined && call.requestId === undefined) calls.delete(entry.toolCallId)
        break
      }
      default:
    }
  }

  async function awaitRequest(toolCallId: string, { seq }: ClientCall): Promise<string> {
    onWaiting(1)
    try {
      const isFate = (entry: Entry) =>
        (entry.type === 'request' || (entry.type === 'tool-result' && entry.preliminary !== true)) &&
        entry.toolCallId === toolCallId
      const outcome = await awaitEntry(log, runId, isFate, { after: seq, signal })
      if (outcome?.type !== 'request') throw notAsked(toolCallId)
      if (outcome.kind !== 'tool') throw notApproved(toolCallId)
      return outcome.requestId
    } finally {
      onWaiting(-1)
    }
  }

  return {
    note,
    has: (toolCallId) => calls.has(toolCallId),
    isOpen: (toolCallId) => calls.get(toolCallId)?.isOpen === true,
    async requestOf(toolCallId) {
      const call = calls.get(toolCallId)
      if (call === undefined) throw notAsked(toolCallId)
      if (call.requestId !== undefined) return call.requestId
      if (call.fault !== undefined) throw call.fault
      return (call.asked ??= awaitRequest(toolCallId, call))
    },
  }
}

function isApproved({ answer }: EntryOf<'response'>): boolean {
  return answer?.kind === 'approval' && answer.approved
}

export function notAsked(toolCallId: string): MillraceError {
  const cure = 'A result can be sent for a call of a run that this socket has started or watches.'
  return new MillraceError(
    'unknown-call',
    `No client is asked for the result of "${toolCallId.slice(0, 200)}". ${cure}`,
  )
}

function notApproved(toolCallId: string): MillraceError {
  return new MillraceError('not-approved', `The call "${toolCallId}" is not approved, so no result is asked for yet.`)
}
