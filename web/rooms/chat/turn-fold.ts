/** Folds the entries of a run into the turn of a chat. Items that have not changed stay the same objects. */
import type { Entry, EntryOf } from '../../../src/part/entry.ts'
import { messagesOf, type Message } from '../../../src/part/message.ts'
import type { PartType } from '../../../src/part/part.ts'
import { isUnder, parentPath } from '../../../src/part/path.ts'
import { kindOf } from '../../../src/part/step-kind.ts'
import { addUsage } from '../../../src/part/usage.ts'
import { createAgentCalls } from '../../../src/fold/agent-calls.ts'
import { createAgentsAbove } from '../../../src/fold/agents-above.ts'
import { summaryWords } from '../../../src/fold/summary-words.ts'
import { createAnswering } from '../../../src/fold/answering.ts'
import { answerUnder, foldCall } from './tool-items.ts'
import type { Item, QuestionItem, StepItem, TextItem, ToolItem, ChatTurn } from './turn.ts'

/** What a turn is made of: others change nothing, so that they need not be read. */
export const turnTypes: readonly PartType[] = [
  ...(['run-start', 'run-end', 'step-start', 'step-finish', 'step-reset', 'suspend', 'resume', 'request'] as const),
  ...([
    'response',
    'retry',
    'usage',
    'source',
    'file',
    'message',
    'summarized',
    'text-start',
    'text-delta',
    'text-end',
  ] as const),
  ...(['reasoning-start', 'reasoning-delta', 'reasoning-end', 'tool-input-start', 'tool-input-delta'] as const),
  ...(['tool-input-end', 'tool-call', 'tool-result'] as const),
]

export interface TurnFold {
  /** Entries in order; one that was applied before changes nothing. */
  apply(entry: Entry): void
  /** Undefined before the `run-start`. */
  read(): ChatTurn | undefined
}

export function createTurnFold(): TurnFold {
  const answering = createAnswering()
  const above = createAgentsAbove()
  const calls = createAgentCalls()
  /** The work of agents that are called as tools, by the path of the call: turns of their own. */
  const inner = new Map<string, TurnFold>()
  let items: Item[] = []
  /** Where an open block stands, by its id. */
  const blocks = new Map<string, number>()
  /** Where the last step of a path stands. */
  const steps = new Map<string, number>()
  let turn: ChatTurn | undefined
  let shown: ChatTurn | undefined
  /** When its own work began. */
  let begunAt = 0
  let isFork = false
  let suspendedAt: number | undefined
  let suspendedMs = 0

  function endSuspend(at: number): void {
    if (suspendedAt !== undefined) suspendedMs += Math.max(0, at - Math.max(suspendedAt, begunAt))
    suspendedAt = undefined
  }

  function change<I extends Item>(at: number, next: Partial<I>): void {
    items[at] = { ...items[at]!, ...next } as Item
  }

  function keep(isKept: (item: Item) => boolean): void {
    const left = items.filter(isKept)
    if (left.length === items.length) return
    const places = new Map(left.map((item, at) => [item, at]))
    for (const [id, at] of blocks) {
      const now = places.get(items[at]!)
      if (now === undefined) blocks.delete(id)
      else blocks.set(id, now)
    }
    items = left
    steps.clear()
    for (const [at, item] of items.entries()) if (item.kind === 'step') steps.set(item.path, at)
  }

  const find = (matches: (item: Item) => boolean) => items.findLastIndex(matches)

  function apply(entry: Entry): void {
    if (turn !== undefined && entry.seq <= turn.lastSeq) return
    if (entry.type === 'run-start') {
      turn = begun(entry)
      begunAt = entry.forkedFrom?.at ?? entry.timestamp
      isFork = entry.forkedFrom !== undefined
    }
    if (turn === undefined) return
    turn.lastSeq = entry.seq
    shown = undefined
    above.apply(entry)
    if (!foldInner(entry)) step(turn, entry)
    if (entry.type === 'step-finish') calls.end(entry.step)
  }

  /** Returns whether the entry is of a called agent alone. Its questions are asked beside the answer, where they are seen; its usage counts. */
  function foldInner(entry: Entry): boolean {
    const { type, step: path } = entry
    if (type === 'step-reset') {
      for (const call of calls.under(path)) {
        calls.end(call.path)
        inner.delete(call.path)
      }
    }
    // The outermost one, whose turn folds the others.
    let call = calls.around(path)
    while (call?.parent !== undefined) call = call.parent
    const fold = call && inner.get(call.path)
    if (type === 'step-start' && call === undefined) startAgent(entry)
    else if (type === 'step-start') calls.start(entry)
    if (fold === undefined || type === 'request' || type === 'response' || type === 'usage') return false
    fold.apply(entry)
    const at = find((item) => item.kind === 'tool' && item.callId === call!.toolCallId)
    const { agent } = at < 0 ? {} : (items[at] as ToolItem)
    if (agent !== undefined) change<ToolItem>(at, { agent: { ...agent, items: fold.read()?.items ?? [] } })
    return true
  }

  function startAgent(entry: EntryOf<'step-start'>): void {
    const call = calls.start(entry)
    const at = call === undefined ? -1 : find((item) => item.kind === 'tool' && item.callId === call.toolCallId)
    if (call === undefined || at < 0) return
    const fold = createTurnFold()
    inner.set(call.path, fold)
    const { step: path, timestamp, seq } = entry
    const input = { messages: [] }
    const names = { runId: turn!.runId, agent: call.agent, pipeline: '', threadId: '', protocol: '' }
    fold.apply({ type: 'run-start', seq: seq - 0.5, timestamp, step: '', ...names, input })
    // All that it does is shown in its own turn.
    fold.apply({ type: 'step-start', seq, timestamp, step: path, stepType: 'call-agent', attempt: 1, answer: true })
    change<ToolItem>(at, { agent: { id: call.agent, items: [] } })
  }

  function step(now: ChatTurn, entry: Entry): void {
    const { step: path, timestamp, seq } = entry
    switch (entry.type) {
      case 'text-delta':
      case 'reasoning-delta': {
        const at = blocks.get(entry.id)
        const item = at === undefined ? undefined : (items[at] as TextItem)
        if (item === undefined) return
        // Of deltas that were merged only the last one's time is known.
        now.firstTokenAt ??= entry.firstSeq === undefined ? timestamp : item.startedAt
        return change<TextItem>(at!, { text: item.text + entry.delta })
      }
      case 'text-start':
      case 'reasoning-start': {
        if (!answering.has(path)) return
        const kind = entry.type === 'text-start' ? 'text' : 'reasoning'
        blocks.set(entry.id, items.length)
        items.push({ kind, key: `b${seq}`, path, text: '', isOpen: true, startedAt: timestamp })
        return
      }
      case 'text-end':
      case 'reasoning-end': {
        const at = blocks.get(entry.id)
        blocks.delete(entry.id)
        if (at !== undefined) change<TextItem>(at, { isOpen: false, endedAt: timestamp })
        return
      }
      case 'tool-input-start':
      case 'tool-input-delta':
      case 'tool-input-end':
      case 'tool-call':
      case 'tool-result':
        foldCall(items, entry, answering.has(path))
        return
      case 'request': {
        const request = { ...entry, ...above.field(path) }
        if (entry.kind !== 'input' && answerUnder(items, request)) return
        items.push({ kind: 'question', key: `q${seq}`, path, ask: { request } })
        return
      }
      case 'response': {
        const at = find((item) => 'ask' in item && item.ask?.request.requestId === entry.requestId)
        if (at < 0) return
        const { ask } = items[at] as QuestionItem
        const { answer, reason, by } = entry
        return change<QuestionItem>(at, {
          ask: { ...ask, response: { ...(answer && { answer }), ...(reason && { reason }), ...(by && { by }) } },
        })
      }
      case 'step-start':
        return startStep(entry)
      case 'step-finish': {
        const at = steps.get(path)
        if (at !== undefined)
          change<StepItem>(at, { duration: entry.duration, ...(entry.error && { error: entry.error }) })
        return
      }
      case 'step-reset':
        keep((item) => !isUnder(item.path, path))
        return
      case 'retry':
        if (!answering.has(path)) return
        // What was said in the wrong form is no answer.
        if (entry.error.code === 'bad-output') keep((item) => item.path !== path || item.kind !== 'text')
        items.push({ kind: 'note', key: `n${seq}`, path, text: `Tried again: ${entry.error.message}` })
        return
      case 'source':
        if (!answering.has(path)) return
        items.push({
          kind: 'source',
          key: `s${seq}`,
          path,
          title: entry.title ?? (entry.sourceType === 'url' ? entry.url : (entry.filename ?? 'document')),
          ...(entry.sourceType === 'url' && { url: entry.url }),
        })
        return
      case 'file': {
        if (!answering.has(path)) return
        const data = typeof entry.data === 'string' ? entry.data : entry.data.url
        items.push({ kind: 'file', key: `f${seq}`, path, mediaType: entry.mediaType, data })
        return
      }
      case 'message': {
        const { id: messageId, content, by, sentAt, outcome } = entry
        // It stands in the turn that it begins.
        if (outcome === 'next') return
        now.told = [...(now.told ?? []), messageId]
        // One that was taken back was never here.
        if (outcome === 'withdrawn') return
        const waitedMs = Math.max(0, timestamp - sentAt)
        const how = { ...(by && { by }), ...(outcome && { isDropped: true as const }) }
        items.push({ kind: 'said', key: `m${seq}`, path, messageId, content, waitedMs, ...how })
        return
      }
      case 'summarized':
        if (!answering.has(path)) return
        items.push({ kind: 'note', key: `n${seq}`, path, text: `Summarized: ${summaryWords(entry)}` })
        return
      case 'usage':
        now.usage = addUsage(now.usage, entry.usage)
        return
      case 'suspend':
        now.status = 'suspended'
        suspendedAt = timestamp
        return
      case 'resume':
        now.status = 'running'
        endSuspend(timestamp)
        if (isFork) askAgain(now, entry)
        return
      case 'run-end':
        now.status = entry.outcome
        now.endedAt = timestamp
        endSuspend(timestamp)
        now.workedMs = Math.max(0, timestamp - begunAt - suspendedMs)
        now.usage = entry.usage
        if (entry.cost !== undefined) now.cost = entry.cost
        if (entry.output !== undefined) now.output = entry.output
        if (entry.error !== undefined) now.error = entry.error
        items = items.map((item) => (isOpenText(item) ? { ...item, isOpen: false, endedAt: timestamp } : item))
        return
      default:
    }
  }

  function startStep(entry: EntryOf<'step-start'>): void {
    const { step: path, stepType, timestamp, seq, toolCallId } = entry
    answering.note(entry)
    // What leads to the answer is not beside it.
    if (entry.answer === true && isInSteps(path)) keep((item) => item.kind !== 'step' || !isUnder(path, item.path))
    if (toolCallId !== undefined && kindOf(entry) === 'tool-call') {
      const call = find((item) => item.kind === 'tool' && item.callId === toolCallId)
      if (call >= 0) return change(call, { startedAt: timestamp } as Partial<Item>)
    }
    const parent = parentPath(path)
    if (answering.has(path) || (parent !== 'main' && parent !== 'after')) return
    const name = path.slice(parent.length + 1)
    steps.set(path, items.length)
    items.push({ kind: 'step', key: `p${seq}`, path, name, stepType, startedAt: timestamp })
  }

  /** Whether the step itself or one around it is shown as a step. */
  function isInSteps(path: string): boolean {
    for (let at = path; at !== ''; at = parentPath(at)) if (steps.has(at)) return true
    return false
  }

  function read(): ChatTurn | undefined {
    if (turn !== undefined) shown ??= { ...turn, items: [...items] }
    return shown
  }

  return { apply, read }
}

function begun(start: EntryOf<'run-start'>): ChatTurn {
  const { runId, agent, input, previousRunId, pipeline, ownPipeline, timestamp, seq } = start
  const { messages: _, ...rest } = input
  return {
    runId,
    agent,
    status: 'running',
    asked: newMessages(messagesOf(input)),
    input: rest,
    ...(previousRunId !== undefined && { previousRunId }),
    ...(ownPipeline === true && { yaml: pipeline }),
    items: [],
    startedAt: timestamp,
    lastSeq: seq,
  }
}

/** A fork may be asked something else than its source, and answer as another agent. */
function askAgain(turn: ChatTurn, { input = {}, agent, pipeline, ownPipeline }: EntryOf<'resume'>): void {
  const { messages: _, ...rest } = input
  const asked = newMessages(messagesOf(input))
  if (asked.length > 0) turn.asked = asked
  turn.input = { ...turn.input, ...rest }
  if (agent === undefined) return
  turn.agent = agent
  if (ownPipeline === true && pipeline !== undefined) turn.yaml = pipeline
  else delete turn.yaml
}

/** A client that keeps the conversation sends all of it: new is what stands behind the last answer. */
function newMessages(messages: readonly Message[]): Message[] {
  const last = messages.findLastIndex(({ role }) => role === 'assistant' || role === 'tool')
  return messages.slice(last + 1).filter(({ role }) => role === 'user')
}

function isOpenText(item: Item): item is TextItem {
  return (item.kind === 'text' || item.kind === 'reasoning') && item.isOpen
}
