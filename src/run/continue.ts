/** Continue or start: the one decision behind every route that takes a conversation. */
import type { Message } from '../part/message.ts'
import type { Answer } from '../part/part.ts'
import type { BusyPolicy, HistoryPolicy } from '../pipeline/pipeline.ts'
import { readView, withServerMessages } from './history.ts'
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
async function resumed({ store, answerAll, open }: Runtime, turn: Turn): Promise<Turned | undefined> {
  const { threadId, answers, protocol, labels, input } = turn
  if (threadId === undefined || answers.length === 0 || turn.handOver === true) return undefined
  const row = (await store.runs.list({ threadId, limit: 1 }))[0]
  if (row === undefined || (row.status !== 'suspended' && row.status !== 'running')) return undefined
  const view = await readView(store, row.id)
  const matched = new Map<string, Answer>()
  for (const { requestId, toolCallId } of view?.requests ?? []) {
    const found = answers.find((answer) => answer.toolCallId === toolCallId)
    if (found !== undefined) matched.set(requestId, found.answer)
  }
  if (matched.size === 0) return undefined
  await answerAll(row.id, matched, { protocol, input, ...(labels === undefined ? undefined : { labels }) })
  const run = await open(row.id)
  // A run that had not suspended yet goes on in its own stream; this one begins where it stands.
  const from = row.status === 'suspended' ? row.lastSeq + 1 : 0
  return run && { run, how: row.status === 'suspended' ? 'resumed' : 'joined', from }
}

async function started(runtime: Runtime, turn: Turn): Promise<Turned> {
  const { agentId, threadId, protocol, labels, input, turnKey, handOver, history } = turn
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
  })
  return { run, how: run.joined ? 'joined' : 'started', from: 0 }
}
