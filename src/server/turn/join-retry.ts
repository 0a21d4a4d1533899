/**
 * A request that a coding CLI repeats, because its connection broke or the answer failed. Its second request is the first one with what it has got
 * of the answer; a second run would repeat the side effects of the first. The id of the turn alone does not tell: all requests of a turn's tool
 * loop have it.
 */
import { MillraceError, type ErrorValue } from '../../part/error.ts'
import { entryAt } from '../../fold/read-view.ts'
import { hasEnded, type RunRow, type Store } from '../../part/log.ts'
import type { Message } from '../../part/message.ts'
import type { Turned } from '../../runtime/continue.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import type { SentMessage } from '../../wire/sent-message.ts'
import { hasActed } from '../openai/acted.ts'
import { isOnlyReminder } from './reminders.ts'
import { keysOf, prefixesOf, readRunKeys, type Reading, type RunKeys } from './run-keys.ts'

/** The label that has the id of a client's turn. */
export const turnLabel = 'turnId'

/** Maximum number of runs of the thread that are compared, newest first. */
const mostRuns = 20

export interface RetryRequest {
  agentId: string
  /** As in the log. */
  threadId: string
  turnId: string
  sent: readonly SentMessage[]
  reading: Reading
}

/**
 * The run that the request repeats. One that is open or completed is joined from its start. Throws the error of one that has failed, was stopped or
 * ran over its budget: to run it again would not be better. Undefined if it was interrupted, or refused before it did anything.
 */
export async function joinRetry(runtime: Runtime, asked: RetryRequest): Promise<Turned | undefined> {
  const { store, redact } = runtime
  const { reading } = asked
  const keys = asked.sent.map(({ message }) => keysOf(redact(message), reading))
  for (const row of await store.runs.list({ threadId: asked.threadId, limit: mostRuns })) {
    if (row.agent !== asked.agentId || !(await isOfTurn(store, row, asked.turnId))) continue
    const run = await readRunKeys(store, row, reading)
    if (run === undefined) continue
    const { at, messages } = prefixesOf(keys)
    if (at[run.asked.length]?.hash !== run.asked.hash) continue
    const rest = asked.sent.slice(behindQuestion(asked.sent, messages[run.asked.length]!))
    if (!(await isProducedBy(store, row, rest))) continue
    if (rest.length > 1 && (await isWhole(runtime, row, run, rest[0]!.message))) continue
    return joined(runtime, row)
  }
  return undefined
}

/** Blocks of the answer that only name their run have no key, and stand behind the question all the same. */
function behindQuestion(sent: readonly SentMessage[], count: number): number {
  let at = count
  while (at > 0 && sent[at - 1]!.message.role === 'assistant') at--
  return at
}

async function isOfTurn({ log }: Store, { id }: RunRow, turnId: string): Promise<boolean> {
  const start = await entryAt(log, id, 1)
  return start?.type === 'run-start' && start.labels?.[turnLabel] === turnId
}

/** Whether a run has sent this: its answer, or the beginning of it. */
async function isProducedBy(store: Store, row: RunRow, rest: readonly SentMessage[]): Promise<boolean> {
  if (rest.length === 0) return true
  const [{ message }, ...more] = rest as [SentMessage, ...SentMessage[]]
  // A result of a call, or a new question, goes on. A CLI may say that the answer was cut off.
  if (message.role !== 'assistant' || more.length > 1 || !more.every((each) => isOnlyReminder(each.message)))
    return false
  const { text, calls } = await sentBy(store, row)
  const parts =
    typeof message.content === 'string' ? [{ type: 'text' as const, text: message.content }] : message.content
  const said = parts.map((part) => (part.type === 'text' ? part.text : '')).join('')
  return text.includes(said) && parts.every((part) => part.type !== 'tool-call' || calls.has(part.toolCallId))
}

/** Whether the client has all that the run says: what follows is another turn. */
async function isWhole({ redact }: Runtime, row: RunRow, { answer }: RunKeys, said: Message): Promise<boolean> {
  return row.status === 'completed' && keysOf(redact(said), 'spoken')[0] === answer
}

/** The texts that a run has sent so far, and its calls. */
async function sentBy({ log }: Store, { id, lastSeq }: RunRow): Promise<{ text: string; calls: Set<string> }> {
  let text = ''
  const calls = new Set<string>()
  for await (const batch of log.read(id, { before: lastSeq + 1, types: ['text-delta', 'tool-call'] })) {
    for (const entry of batch) {
      if (entry.type === 'text-delta') text += entry.delta
      else if (entry.type === 'tool-call') calls.add(entry.toolCallId)
    }
  }
  return { text, calls }
}

async function joined(runtime: Runtime, { id, status }: RunRow): Promise<Turned | undefined> {
  const { log } = runtime.store
  if (hasEnded(status) && status !== 'completed') {
    if (status === 'interrupted') return undefined
    const error = await errorOf(runtime.store, id, status)
    if (error.code === 'rate-limited' && !(await hasActed(log, id))) return undefined
    throw failedBefore(error)
  }
  const run = await runtime.open(id)
  return run && { run, how: 'joined', from: 0 }
}

async function errorOf({ log }: Store, run: string, status: string): Promise<ErrorValue> {
  for await (const batch of log.read(run, { types: ['run-end'] })) {
    for (const entry of batch) if (entry.type === 'run-end' && entry.error !== undefined) return entry.error
  }
  return { code: status, message: `The run ended: ${status}.` }
}

/** With a status after which no client asks again. */
function failedBefore(error: ErrorValue): MillraceError {
  return new MillraceError('run-failed', `${error.message} (${error.code})`, { status: 400 })
}
