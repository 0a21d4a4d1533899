/** Decides, for every route that accepts a conversation, whether a request continues a run or starts one. */
import { compact } from '../part/compact.ts'
import { MillraceError } from '../part/error.ts'
import { keptOf, readInput } from '../fold/read-view.ts'
import { hasEnded } from '../part/log.ts'
import type { Message } from '../part/message.ts'
import type { Answer } from '../part/request-part.ts'
import type { CallSettings } from '../part/settings.ts'
import type { BusyPolicy, HistoryPolicy } from '../pipeline/pipeline.ts'
import { answerTo } from './answer-to.ts'
import { checkRunInput } from './check-run-input.ts'
import { withServerMessages } from './history.ts'
import type { Run, Runtime } from './runtime.ts'

export interface Turn {
  agentId: string
  /** Without it the run gets its own thread. */
  threadId?: string
  messages: Message[]
  /** Tool results and approvals in the request. */
  answers: { toolCallId: string; answer: Answer }[]
  /** All other keys of the request, as `$input.…`. */
  input: Record<string, unknown>
  /** Identifies this turn in its thread: a request with a key seen before joins its run instead of starting another. */
  turnKey?: string
  protocol: string
  labels?: Record<string, string>
  /** The header of the request. */
  traceparent?: string | null
  /** The protocol's policies, unless the agent sets others. */
  onBusy: BusyPolicy
  history: HistoryPolicy
  handOver?: boolean
  /** Settings of the request for the answering model. */
  settings?: CallSettings
}

export interface Turned {
  run: Run
  how: 'started' | 'resumed' | 'joined'
  /** The `seq` of the `resume` where this turn's part of the answer starts; 0 if it starts with the run. */
  from: number
}

export async function continueOrStart(runtime: Runtime, turn: Turn): Promise<Turned> {
  return (await resumed(runtime, turn)) ?? started(runtime, turn)
}

/** Only requests of this thread can be answered. With the call id alone, one client could answer for another. */
async function resumed({ agents, store, answerAll, open, redact }: Runtime, turn: Turn): Promise<Turned | undefined> {
  const { threadId, protocol, labels, input } = turn
  // Redacted like the stored ones, so that a repeated answer compares equal.
  const answers = redact(turn.answers)
  if (threadId === undefined || answers.length === 0 || turn.handOver === true) return undefined
  const row = (await store.runs.list({ threadId, limit: 1 }))[0]
  if (row === undefined || hasEnded(row.status)) return undefined
  const [kept, run] = [await keptOf(store, row), await open(row.id)]
  if (kept === undefined || run === undefined) return undefined
  const waiting = new Map(
    kept.requests.flatMap(({ kind, toolCallId, requestId }) =>
      kind === 'input' ? [] : [[toolCallId, requestId] as const],
    ),
  )
  const matched = new Map<string, Answer>()
  let again = false
  let contrary: string | undefined
  for (const { toolCallId, answer } of answers) {
    const requestId = waiting.get(toolCallId)
    const before = requestId === undefined ? await answerTo(store, kept, toolCallId) : undefined
    if (requestId !== undefined) matched.set(requestId, answer)
    else if (before !== undefined && isSame(before, answer)) again = true
    else if (before !== undefined) contrary = toolCallId
  }
  if (matched.size > 0) {
    const pipeline = agents.get(row.agent)?.pipeline
    // Input that comes with an answer is merged into the run's input, so the result is checked before the run continues.
    if (pipeline !== undefined) {
      const before = { ...(await readInput(store.log, row.id)), ...kept.resumedInput }
      checkRunInput(pipeline, { ...before, ...input })
    }
    const counted = await answerAll(row.id, matched, {
      protocol,
      input,
      ...compact({ labels }),
    })
    // If two clients answer at the same time, the first answer counts and the other client gets a 409.
    for (const [toolCallId, requestId] of waiting) {
      const given = matched.get(requestId)
      const winner = counted.get(requestId)
      if (given !== undefined && winner !== undefined && !isSame(given, winner)) throw conflict(toolCallId)
    }
    // A run that was not suspended yet continues in its own stream; this response starts at its current position.
    return { run, how: kept.status === 'suspended' ? 'resumed' : 'joined', from: kept.lastSeq + 1 }
  }
  if (contrary !== undefined) throw conflict(contrary)
  // A repeated answer, from a client that retries or from another tab, must not interrupt the run that it resumed.
  return again ? { run, how: 'joined', from: kept.resumedAt } : undefined
}

function isSame(a: Answer, b: Answer): boolean {
  return JSON.stringify(a) === JSON.stringify(b)
}

function conflict(toolCallId: string): MillraceError {
  const message = `Tool call ${toolCallId} already has a different answer.`
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
    traceparent: turn.traceparent,
    ...compact({ threadId, labels, handOver, turnKey, settings }),
  })
  return { run, how: run.joined ? 'joined' : 'started', from: 0 }
}
