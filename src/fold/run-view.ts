/**
 * Computes the state of a run from its log: messages, answer, usage, open requests, and the steps with their times.
 * Folds take entries one at a time, so they never need an array of all entries.
 */
import type { Entry, EntryOf } from '../part/entry.ts'
import { compact } from '../part/compact.ts'
import type { ErrorValue } from '../part/error.ts'
import type { RunStatus } from '../part/log.ts'
import type { AssistantContent, AssistantMessage, Message, ToolMessage } from '../part/message.ts'
import { createOpenItems } from './open-items.ts'
import { isUnder, parentPath } from '../part/path.ts'
import { jsonOf } from '../part/read-json.ts'
import { respondTool } from '../part/respond.ts'
import { turnMessages, withoutAsides } from './turn-messages.ts'
import { createTurns, type Turn, type Turns } from './turns.ts'
import { addUsage, noUsage, type Usage } from '../part/usage.ts'

/** One step of a run. Times are epoch ms, durations ms. */
export interface StepView {
  path: string
  stepType: string
  attempt: number
  answer?: true
  toolName?: string
  startedAt: number
  duration?: number
  finishReason?: string
  usage?: Usage
  error?: ErrorValue
}

/** The state of a run: its status, messages, usage and cost. */
export interface RunView {
  runId: string
  agent: string
  threadId: string
  parentRunId?: string
  previousRunId?: string
  protocol: string
  status: RunStatus
  startedAt: number
  endedAt?: number
  lastSeq: number
  input: Record<string, unknown>
  labels?: Record<string, string>
  /** The messages that the run added to the conversation: assistant and tool messages of the answer. The first has the run's id. */
  messages: Message[]
  /** The answer's text. */
  text: string
  steps: StepView[]
  usage: Usage
  /** In USD, so far while the run is active; absent when no model was called or a price is unknown. */
  cost?: number
  requests: EntryOf<'request'>[]
  output?: unknown
  error?: ErrorValue
  summary: Summary
}

/** Counts of finished items, named as in the Smithers document. A router's `respond` does not count as a tool call. */
export interface Summary {
  textBlocks: number
  reasoningBlocks: number
  toolCalls: number
  toolResults: number
  errors: number
}

/** Apply entries in order; read the view at any time. */
export interface RunFold {
  apply(entry: Entry): void
  view(): RunView
}

/** A fold over one run. `view()` throws a `TypeError` before the `run-start`. */
export function createRunFold(): RunFold {
  const open = createOpenItems()
  const steps = new Map<string, StepView>()
  const answers = new Map<string, Turns>()
  /** Paths of answers that are JSON. */
  const objects = new Set<string>()
  const orders: [path: string, names: string[]][] = []
  const summary: Summary = { textBlocks: 0, reasoningBlocks: 0, toolCalls: 0, toolResults: 0, errors: 0 }
  let start: EntryOf<'run-start'> | undefined
  let end: EntryOf<'run-end'> | undefined
  let usage: Usage | undefined
  let cost: number | undefined = 0
  const routers = new Set<string>()
  let lastSeq = 0

  function apply(entry: Entry): void {
    open.apply(entry)
    lastSeq = entry.seq
    for (const [path, turns] of answers) if (isUnder(entry.step, path)) turns.apply(entry)
    switch (entry.type) {
      case 'run-start':
        start = entry
        break
      case 'run-end':
        end = entry
        break
      case 'usage':
        usage = addUsage(usage, entry.usage)
        cost = cost === undefined || entry.cost === undefined ? undefined : cost + entry.cost
        break
      case 'text-end':
        summary.textBlocks++
        break
      case 'reasoning-end':
        summary.reasoningBlocks++
        break
      case 'tool-call':
        if (!isHandover(entry)) summary.toolCalls++
        break
      case 'tool-result':
        if (entry.preliminary !== true && !isHandover(entry)) summary.toolResults++
        break
      case 'error':
        summary.errors++
        break
      case 'step-start': {
        const { step, stepType, attempt, answer, toolName, timestamp } = entry
        const view: StepView = { path: step, stepType, attempt, startedAt: timestamp }
        if (answer) view.answer = answer
        if (toolName !== undefined) view.toolName = toolName
        if (stepType === 'router') routers.add(step)
        steps.set(step, view)
        if (entry.order !== undefined) orders.push([step, entry.order])
        if (entry.object === true) objects.add(step)
        if (answer && !answers.has(step)) answers.set(step, createTurns(step))
        break
      }
      case 'step-finish': {
        const { duration, finishReason, usage: spent, error } = entry
        const view = steps.get(entry.step)
        if (view) Object.assign(view, compact({ duration, finishReason, usage: spent, error }))
        break
      }
      default:
    }
  }

  function isHandover({ step, toolName }: EntryOf<'tool-call' | 'tool-result'>): boolean {
    return toolName === respondTool && routers.has(parentPath(step))
  }

  function inOrder({ root: a }: Turns, { root: b }: Turns): number {
    for (const [path, names] of orders) {
      if (!isUnder(a, path) || !isUnder(b, path)) continue
      const place = (root: string) => names.indexOf(root.slice(path.length + 1).split('/')[0]!)
      if (place(a) !== place(b)) return place(a) - place(b)
    }
    return 0
  }

  function view(): RunView {
    if (start === undefined) throw new TypeError('a run view needs a log that begins with run-start')
    const { runId, agent, threadId, protocol, parentRunId, previousRunId, labels, input, timestamp } = start
    // Parallel branches are sorted in file order, as on wires with a single text.
    const sorted = orders.length === 0 ? answers.values() : [...answers.values()].toSorted(inOrder)
    const messages = [...sorted].flatMap(({ root, list }) => turnMessages(objects.has(root) ? toObject(list) : list))
    return {
      runId,
      agent,
      threadId,
      protocol,
      status: end?.outcome ?? (open.suspended ? 'suspended' : 'running'),
      startedAt: timestamp,
      lastSeq,
      input,
      messages: messages.map((message, i) => (i === 0 ? { ...message, id: runId } : message)),
      text: messages.map(textOf).join(''),
      steps: [...steps.values()],
      usage: end?.usage ?? usage ?? noUsage,
      requests: [...open.requests.values()],
      summary,
      ...compact({
        parentRunId,
        previousRunId,
        labels,
        endedAt: end?.timestamp,
        cost: end === undefined ? usage && cost : end.cost,
        output: end?.output,
        error: end?.error,
      }),
    }
  }

  return { apply, view }
}

/** The turns of a JSON answer as clients see them: the last one has only the JSON. */
function toObject(list: readonly Turn[]): Turn[] {
  return withoutAsides(list).map((turn) => {
    const text = textOf({ role: 'assistant', content: turn.content })
    const json = turn.closed && turn.error === undefined ? jsonOf(text) : ''
    if (json === text) return turn
    const at = turn.content.findIndex(({ type }) => type === 'text')
    const content = turn.content.flatMap((part, i): AssistantContent[] => {
      if (part.type !== 'text') return [part]
      return i === at && json !== '' ? [{ ...part, text: json }] : []
    })
    return { ...turn, content }
  })
}

/** The text of a message: all its text parts, joined. */
export function textOf(message: Message): string {
  if (typeof message.content === 'string') return message.content
  let text = ''
  for (const part of message.content as (AssistantContent | AssistantMessage | ToolMessage['content'][number])[]) {
    if ('type' in part && part.type === 'text') text += part.text
  }
  return text
}
