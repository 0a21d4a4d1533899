/** Continue or start: the one decision behind every route that takes a conversation. */
import type { Entry } from '../part/entry.ts'
import { MillraceError } from '../part/error.ts'
import { hasEnded, type Store } from '../part/log.ts'
import type { Message } from '../part/message.ts'
import type { Answer } from '../part/part.ts'
import type { CallSettings } from '../part/settings.ts'
import type { BusyPolicy, HistoryPolicy } from '../pipeline/pipeline.ts'
import { checkRunInput } from './check-run-input.ts'
import { withServerMessages } from './history.ts'
import type { Run, Runtime } from './runtime.ts'

export interface Turn {
  agentId: string
  /** Absent: a thread of its own. */
  threadId?: string
  messages: Message[]
  /** Tool results and approvals that the request carries. */
  answers: { toolCallId: string; answer: Answer }[]
  /** Every other key of the request: `$input.…`. */
  input: Record<string, unknown>
  /** Identifies this turn in its thread: a request with a key seen before joins its run instead of starting another. */
  turnKey?: string
  protocol: string
  labels?: Record<string, string>
  /** What the protocol does unless the agent says otherwise. */
  onBusy: BusyPolicy
  history: HistoryPolicy
  handOver?: boolean
  /** What the request asks of the answering model. */
  settings?: CallSettings
}

export interface Turned {
  run: Run
  how: 'started' | 'resumed' | 'joined'
  /** The `seq` of the `resume` from which this turn's part of the answer begins; 0 when it begins with the run. */
  from: number
}

export async function continueOrStart(runtime: Runtime, turn: Turn): Promise<Turned> {
  return (await resumed(runtime, turn)) ?? started(runtime, turn)
}

/** Only requests of this thread can be answered: a call id alone would let one client answer for another. */
async function resumed({ agents, store, answerAll, open, redact }: Runtime, turn: Turn): Promise<Turned | undefined> {
  const { threadId, protocol, labels, input } = turn
  // As they are kept, so that the same answer given again is known for the same.
  const answers = redact(turn.answers)
  if (threadId === undefined || answers.length === 0 || turn.handOver === true) return undefined
  const row = (await store.runs.list({ threadId, limit: 1 }))[0]
  if (row === undefined || hasEnded(row.status)) return undefined
  const asked = await readRequests(store, row.id)
  const run = await open(row.id)
  if (run === undefined) return undefined
  const matched = new Map<string, Answer>()
  let again = false
  let contrary: string | undefined
  for (const { toolCallId, answer } of answers) {
    const requestId = asked.open.get(toolCallId)
    const before = asked.answered.get(toolCallId)
    if (requestId !== undefined) matched.set(requestId, answer)
    else if (before !== undefined && isSame(before, answer)) again = true
    else if (before !== undefined) contrary = toolCallId
  }
  if (matched.size > 0) {
    const pipeline = agents.get(row.agent)?.pipeline
    // What comes with an answer is laid over the run's input: it has to fit before anything goes on.
    if (pipeline !== undefined) checkRunInput(pipeline, { ...asked.input, ...input })
    const counted = await answerAll(row.id, matched, {
      protocol,
      input,
      ...(labels === undefined ? undefined : { labels }),
    })
    // Two clients may answer at the same moment: the first answer counts, and the other client is told.
    for (const [toolCallId, requestId] of asked.open) {
      const given = matched.get(requestId)
      const winner = counted.get(requestId)
      if (given !== undefined && winner !== undefined && !isSame(given, winner)) throw conflict(toolCallId)
    }
    // A run that had not suspended yet goes on in its own stream; this one begins where it stands.
    return { run, how: asked.suspended ? 'resumed' : 'joined', from: asked.lastSeq + 1 }
  }
  if (contrary !== undefined) throw conflict(contrary)
  // The same answer again, by a client that sends twice or from another tab, must not interrupt what it has woken.
  return again ? { run, how: 'joined', from: asked.resumedAt } : undefined
}

/** What a run has asked its clients: by tool call, what is open and how the rest was answered. */
async function readRequests({ log }: Store, run: string) {
  const open = new Map<string, string>()
  const answered = new Map<string, Answer>()
  const calls = new Map<string, string>()
  let last: Entry | undefined
  let resumedAt = 0
  let input: Record<string, unknown> = {}
  for await (const batch of log.read(run)) {
    for (const entry of batch) {
      last = entry
      if (entry.type === 'run-start' || entry.type === 'resume') input = { ...input, ...entry.input }
      if (entry.type === 'resume') resumedAt = entry.seq
      else if (entry.type === 'request') {
        open.set(entry.toolCallId, entry.requestId)
        calls.set(entry.requestId, entry.toolCallId)
      } else if (entry.type === 'response') {
        const toolCallId = calls.get(entry.requestId) ?? ''
        open.delete(toolCallId)
        if (entry.answer !== undefined) answered.set(toolCallId, entry.answer)
      }
    }
  }
  return { open, answered, input, resumedAt, lastSeq: last?.seq ?? 0, suspended: last?.type === 'suspend' }
}

function isSame(a: Answer, b: Answer): boolean {
  return JSON.stringify(a) === JSON.stringify(b)
}

function conflict(toolCallId: string): MillraceError {
  const message = `Tool call ${toolCallId} was answered before, and differently.`
  return new MillraceError('answer-conflict', message, { status: 409 })
}

async function started(runtime: Runtime, turn: Turn): Promise<Turned> {
  const { agentId, threadId, protocol, labels, input, turnKey, handOver, history, settings } = turn
  const { store, agents } = runtime
  const fromServer = (agents.get(agentId)?.pipeline.history ?? history) === 'server'
  const messages =
    threadId === undefined || fromServer ? turn.messages : await withServerMessages(store, threadId, turn.messages)
  const run = await runtime.start(agentId, messages.length === 0 ? input : { ...input, messages }, {
    protocol,
    onBusy: turn.onBusy,
    history,
    ...(threadId === undefined ? undefined : { threadId }),
    ...(labels === undefined ? undefined : { labels }),
    ...(handOver === undefined ? undefined : { handOver }),
    ...(turnKey === undefined ? undefined : { turnKey }),
    ...(settings === undefined ? undefined : { settings }),
  })
  return { run, how: run.joined ? 'joined' : 'started', from: 0 }
}
