/**
 * The view of a run that is stored when the run ends or is suspended, so that its log is not folded again. It leaves out fields that one
 * entry holds: the first entry has the input, and the last has the output, which may be as large as the answer.
 */
import { omitUndefined } from '../part/omit-undefined.ts'
import type { EntryOf } from '../part/entry.ts'
import { MillraceError } from '../part/error.ts'
import { messagesOf, splitInstructions, type Message, type AssistantContent } from '../part/message.ts'
import { actorOf } from '../part/principal.ts'
import { noUsage } from '../part/usage.ts'
import { answerText, startOf, textOf, type RunView, type StepView } from './run-view.ts'
import type { FoldedRun } from './run-fold.ts'
import { sumUsed } from './usage-fold.ts'
import { jsonOf } from '../part/json.ts'
import { replyMessages, withoutAsides, type ModelReply } from './reply-messages.ts'
import type { ToolLoop } from './tool-loop.ts'

/** Increase it when the stored fields change: a view with another version is folded again. */
export const keptVersion = 2

/** The step list of a longer run is not stored; readers fold the log. */
const mostSteps = 1000

/** A request that is no longer open. Its reply is in the entry with this `seq`, unless it was closed. */
export interface EndedRequest {
  requestId: string
  toolCallId: string
  seq: number
  /** Why there is no reply. */
  closed?: string
}

export interface KeptRun extends Omit<RunView, 'input' | 'traceparent' | 'user' | 'text' | 'steps' | 'output'> {
  version: number
  /** Messages of the input: all of them in a new thread, otherwise from the last user message on. */
  asked: Message[]
  steps?: StepView[]
  /** Its last entry has an output. */
  hasOutput?: true
  /** The `seq` of the last `resume`, 0 if there is none. */
  resumedAt: number
  /** The merged inputs of all `resume`s. */
  resumedInput?: Record<string, unknown>
  ended: EndedRequest[]
  /** Ids of client tool calls that have no result from the client. */
  unanswered: string[]
  /** Facts that `memory` steps stored, newest first. */
  facts: string[]
}

/**
 * The current state of a fold, for storing. Throws `store-damaged` if there is no `run-start`: the store has lost or damaged the first
 * entry.
 */
export function toKept(fold: FoldedRun): KeptRun {
  const { start, end, open, steps, usage, cost, resumedAt, resumedInput, ended, facts, summary, answeredBy } = fold
  if (start === undefined) {
    throw new MillraceError('store-damaged', 'The first entry of the run, its run-start, is missing or cannot be read.')
  }
  const { runId, agent, threadId, protocol, parentRunId, previousRunId, labels, input } = start
  // A fork may bring other messages.
  const asked = messagesOf({ ...input, ...resumedInput })
  const messages = answerMessages(fold)
  const used = fold.used.read()
  const { knownCost, unpriced } = sumUsed(used.usageByModel)
  return {
    version: keptVersion,
    runId,
    agent,
    threadId,
    protocol,
    status: end?.outcome ?? (open.suspended ? 'suspended' : 'running'),
    startedAt: startOf(start),
    lastSeq: fold.lastSeq,
    // The instructions are of this run alone: its log has them, once for all runs.
    asked: previousRunId === undefined ? fromLastUser(asked) : splitInstructions(asked).rest,
    messages: withRunId(messages, runId),
    usage: end?.usage ?? usage ?? noUsage,
    ...used,
    ...(unpriced === 0 ? undefined : { knownCost, unpriced }),
    requests: [...open.requests.values()].map((request) => ({ ...request, ...fold.above.field(request.step) })),
    resumedAt,
    ended: [...ended],
    unanswered: [...fold.unanswered.keys()],
    facts: [...facts],
    summary: { ...summary },
    ...summariesOf(fold),
    ...omitUndefined({
      steps: steps.size > mostSteps ? undefined : [...steps.values()],
      parentRunId,
      previousRunId,
      labels: answeredBy === undefined ? labels : { ...labels, answeredBy },
      resumedInput: resumedInput && { ...resumedInput },
      endedAt: end?.timestamp,
      cost: end === undefined ? usage && cost : end.cost,
      error: end?.error,
      hasOutput: end?.output === undefined ? undefined : (true as const),
    }),
  }
}

function summariesOf({ summaries }: FoldedRun): Pick<KeptRun, 'summaries'> {
  const all = [...summaries.values()].map(({ step, seq, upTo, text, before, after, reason, hash }) => {
    return { step, seq, upTo, before, after, reason, hash, ...omitUndefined({ text }) }
  })
  return all.length === 0 ? {} : { summaries: all }
}

function fromLastUser(messages: Message[]): Message[] {
  return messages.slice(
    Math.max(
      0,
      messages.findLastIndex(({ role }) => role === 'user'),
    ),
  )
}

/**
 * Adds the fields that are only in the log: from its first entry, from its last one if it has an output, and the steps if they were not
 * stored.
 */
export function toView(stored: KeptRun, { start, end, steps = stored.steps }: ViewSource): RunView {
  const { runId, agent, threadId, protocol, status, startedAt, lastSeq, messages, usage, requests, summary } = stored
  const { parentRunId, previousRunId, labels, endedAt, cost, error } = stored
  const { usageByModel, usageByStep, usageByAgent, knownCost, unpriced, summaries } = stored
  return {
    runId,
    agent,
    threadId,
    protocol,
    status,
    startedAt,
    lastSeq,
    input: start.input,
    messages,
    text: answerText(messages),
    steps: steps ?? [],
    usage,
    usageByModel,
    usageByStep,
    usageByAgent,
    requests,
    summary,
    ...omitUndefined({ parentRunId, previousRunId, labels, traceparent: start.traceparent, user: actorOf(start.user) }),
    ...omitUndefined({ summaries, endedAt, cost, knownCost, unpriced, output: end?.output, error }),
  }
}

interface ViewSource {
  start: Pick<EntryOf<'run-start'>, 'input' | 'traceparent' | 'user'>
  end?: Pick<EntryOf<'run-end'>, 'output'> | undefined
  steps?: StepView[] | undefined
}

/** The messages that a run adds to the conversation: those of the steps that answer. */
export function answerMessages(fold: FoldedRun): Message[] {
  return answersInOrder(fold).flatMap(({ root, list, early }) => {
    const replies = replyMessages(fold.objects.has(root) ? toObject(list) : list, 'named')
    return early.length === 0 ? replies : [...early, ...replies]
  })
}

/** The first of its messages that is not a person's has the run's id. */
export function withRunId(messages: readonly Message[], runId: string): Message[] {
  const first = messages.findIndex(({ role }) => role !== 'user')
  return messages.map((message, i) => (i === first ? { ...message, id: runId } : message))
}

/** Answers of parallel branches in file order, as on wires with a single text; others in the order in which they started. */
function answersInOrder(fold: FoldedRun): ToolLoop[] {
  const { answers, orders } = fold
  const places = new Map(orders.map(([path, names]) => [path, placesIn(names)]))
  const inOrder = (a: string, b: string) => {
    // For each common parent path, from the root on: compare the names of the two branches below it.
    for (let end = a.indexOf('/'); end >= 0; end = a.indexOf('/', end + 1)) {
      if (!b.startsWith(a.slice(0, end + 1))) return 0
      const names = places.get(a.slice(0, end))
      if (names === undefined) continue
      const [first, second] = [a, b].map((path) => names.get(path.slice(end + 1).split('/', 1)[0]!) ?? -1)
      if (first !== second) return first! - second!
    }
    return 0
  }
  const paths = orders.length === 0 ? [...answers] : [...answers].toSorted(inOrder)
  return paths.map((path) => fold.loopAt(path))
}

function placesIn(names: readonly string[]): Map<string, number> {
  const places = new Map<string, number>()
  for (const [i, name] of names.entries()) if (!places.has(name)) places.set(name, i)
  return places
}

/** The replies of a JSON answer as clients see them: the last one has only the JSON. */
function toObject(list: readonly ModelReply[]): ModelReply[] {
  return withoutAsides(list).map((reply) => {
    const text = textOf({ role: 'assistant', content: reply.content })
    const json = reply.closed && reply.error === undefined ? jsonOf(text) : ''
    if (json === text) return reply
    const at = reply.content.findIndex(({ type }) => type === 'text')
    const content = reply.content.flatMap((part, i): AssistantContent[] => {
      if (part.type !== 'text') return [part]
      return i === at && json !== '' ? [{ ...part, text: json }] : []
    })
    return { ...reply, content }
  })
}
