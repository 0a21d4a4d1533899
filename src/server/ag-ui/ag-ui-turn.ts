/** What a `RunAgentInput` means for the thread: it answers what the thread's run has asked, or begins a turn. */
import { compact } from '../../part/compact.ts'
import { MillraceError } from '../../part/error.ts'
import type { KeptRun } from '../../fold/kept-run.ts'
import type { Message } from '../../part/message.ts'
import type { HistoryPolicy } from '../../pipeline/pipeline.ts'
import type { Turn } from '../../runtime/continue.ts'
import { newMessages } from '../../runtime/history.ts'
import { newestRun } from '../../runtime/late-answer.ts'
import { activeRun } from '../../runtime/resume-turn.ts'
import type { Agent, Runtime } from '../../runtime/runtime.ts'
import type { AgUiMessage } from '../../wire/ag-ui/ag-ui-event.ts'
import { keyOf } from '../../runtime/turn-key.ts'
import { agUiWire } from '../../wire/ag-ui/ag-ui.ts'
import type { AgUiRequest } from './run-input.ts'

export interface AgUiTurn {
  turn: Turn
  /**
   * For the MESSAGES_SNAPSHOT of a run that begins, if the client keeps the history: its own messages. It puts those that it does not
   * know by their ids at the end.
   */
  messages: AgUiMessage[] | undefined
  /** What of the request was ignored. */
  warnings: string[]
}

/**
 * A new message of the user begins a turn, which closes what is open. Any other request has to answer all open interrupts at once, as
 * the protocol demands. Throws `interrupts-open` (409), or `bad-input` (400).
 */
export async function toAgUiTurn(
  { store, redact }: Runtime,
  { id: agentId, pipeline }: Agent,
  asked: AgUiRequest,
  { traceparent, history }: { traceparent?: string | null; history: HistoryPolicy },
): Promise<AgUiTurn> {
  const { threadId, runId, parentRunId, messages, results, resume, input } = asked
  const kept = (await activeRun(store, threadId))?.kept
  // Also of a run that has completed: another client may have been faster.
  const asker = kept ?? (resume.length === 0 ? undefined : (await newestRun(store, threadId))?.kept)
  const known = new Set([...(asker?.requests ?? []), ...(asker?.ended ?? [])].map(({ requestId }) => requestId))
  const answers = resume.filter(({ requestId }) => known.has(requestId))
  const unknown = resume.filter(({ requestId }) => !known.has(requestId))
  const isDropped = saysMore(messages, kept) && kept !== undefined && dropsInterrupts(kept, answers)
  if (!isDropped) checkCoverage(kept, messages, answers)
  const fromServer = (pipeline.history ?? history) === 'server'
  const turn: Turn = {
    agentId,
    threadId,
    messages: fromServer ? await newMessages(store, threadId, messages) : messages,
    answers: isDropped
      ? []
      : [...results.filter(({ toolCallId }) => !isDecided(toolCallId, kept, answers)), ...answers],
    input,
    protocol: agUiWire.name,
    labels: compact({ runId, parentRunId }) as Record<string, string>,
    onBusy: 'interrupt',
    history,
    // The same request again reads the run of the first one. With another question it is another request, whatever its id.
    turnKey: keyOf(
      `run:${runId}`,
      messages.findLast(({ role }) => role === 'user'),
    ),
    ...compact({ traceparent, mcpHeaders: asked.mcpHeaders }),
  }
  const warnings = unknown.map(({ requestId }) => {
    return `resume[] answers the interrupt ${requestId.slice(0, 100)}, which this thread has not asked: ignored.`
  })
  return { turn, messages: fromServer ? undefined : redact(asked.shown), warnings }
}

/**
 * Whether a call waits for approval, or this request approves it: then a tool message is not its result. CopilotKit's `useInterrupt`
 * sends one beside resume[], with the decision in it.
 */
function isDecided(toolCallId: string, kept: KeptRun | undefined, answers: AgUiRequest['resume']): boolean {
  const { requests = [], ended = [] } = kept ?? {}
  if (requests.some((request) => request.kind === 'approval' && request.toolCallId === toolCallId)) return true
  const named = new Set(answers.map(({ requestId }) => requestId))
  return ended.some((request) => request.toolCallId === toolCallId && named.has(request.requestId))
}

/** The user says something that the run has not been told. */
function saysMore(messages: readonly Message[], kept: KeptRun | undefined): boolean {
  const last = messages.at(-1)
  if (last?.role !== 'user') return false
  const told = kept?.asked.findLast(({ role }) => role === 'user')
  return told === undefined || last.id === undefined || last.id !== told.id
}

/** A client must name the interrupts that it drops. One that answers some and says more would lose either. */
function dropsInterrupts({ requests }: KeptRun, answers: AgUiRequest['resume']): boolean {
  if (answers.every(({ isCancelled }) => isCancelled)) return true
  const isOpen = answers.some(({ requestId }) => requests.some((request) => request.requestId === requestId))
  if (!isOpen) return true
  const cure = 'Send the answer first, and the message when that run has finished.'
  throw new MillraceError('bad-input', `resume answers an interrupt, and messages ends with a new message. ${cure}`, {
    status: 400,
  })
}

function checkCoverage(kept: KeptRun | undefined, messages: readonly Message[], answers: AgUiRequest['resume']): void {
  if (kept?.status !== 'suspended') return
  // Without an answer to any of them, the same question again is a new turn, too.
  if (answers.length === 0 && messages.at(-1)?.role === 'user') return
  const covered = new Set(answers.map(({ requestId }) => requestId))
  const open = kept.requests.filter(({ kind, requestId }) => kind !== 'tool' && !covered.has(requestId))
  if (open.length === 0) return
  const ids = open.slice(0, 20).map(({ requestId }) => requestId)
  const cure = 'answer or cancel each of them in resume[], or send a new message of the user, which closes them.'
  throw new MillraceError('interrupts-open', `The thread has open interrupts (${ids.join(', ')}): ${cure}`, {
    status: 409,
  })
}
