/** Adds entries of a run to the tables. All of its state is in the tables: any process can continue at any entry. */
import { type Entry, type EntryOf, isDelta } from '../../part/entry.ts'
import { messageOf } from '../../part/error.ts'
import { calledAgent, eventNames, placeOf } from '../../fold/stream-events.ts'
import { parentPath } from '../../part/path.ts'
import { respondTool } from '../../part/respond.ts'
import { kindOf } from '../../part/step-kind.ts'
import { decodeLine, type Restore } from '../encode.ts'
import type { HourMarks } from './hours.ts'
import type { TickRow } from '../sqlite/batch-index.ts'
import { isOfEntry, type TextIndex } from './text-index.ts'
import { agentAt, keepStep, stepAt, stopWaiting, type RunState } from './run-state.ts'
import type { Statements } from './statements.ts'
import { tickLines, type TickLine } from './tick-reader.ts'

/** A row of `ticks`. `log` is the number of the run that owns it: a fork shares those of its source. */
export interface Tick extends TickRow {
  log: number
}

/**
 * Adds the entries of a tick that the run does not have yet, up to `end`. Stops between two entries when the time is over; returns whether it has
 * reached the end.
 */
export function fillTick(
  statements: Statements,
  state: RunState,
  tick: Tick,
  {
    end = Infinity,
    isOver,
    texts,
    restore,
    hours,
  }: { end?: number | undefined; isOver: () => boolean; texts: TextIndex; restore: Restore; hours: HourMarks },
): boolean {
  // Of a delta only the time of the first one is needed.
  const lines = tickLines(tick.entries, state.seq, () => state.waiting > 0, placeIn(state, tick))
  const stopAt = ({ seq, from, at }: TickLine): false => {
    state.place = { tick: tick.id, length: tick.entries.length, seq, from, at }
    return false
  }
  for (const line of lines) {
    const { text, from, at, length, seq } = line
    if (seq > end) break
    const [entry] = decodeLine(withoutResult(text), restore)
    if (entry === undefined) continue
    try {
      if (isDelta(entry)) noteFirstToken(statements, state, entry, hours)
      // Thousands of steps may be under it: the next slice continues with the rest.
      else if (entry.type === 'step-reset' && !takeBack(statements, state, entry, isOver)) return stopAt(line)
      else {
        add(statements, state, entry, { tick, from, at, length, texts, hours })
        markHours(statements, state, entry, hours)
      }
    } catch (error) {
      if (!isOfEntry(error)) throw error
    }
    state.seq = seq
    // Not before: reading the tick may have used up the time.
    if (isOver() && seq < Math.min(tick.lastSeq, end)) return stopAt(line)
  }
  state.seq = Math.max(state.seq, Math.min(tick.lastSeq, end))
  return true
}

/** The end of the last slice in this row, unless the row was replaced since. */
function placeIn({ place }: RunState, { id, entries }: Tick): RunState['place'] {
  if (place === undefined || place.tick !== id || place.length !== entries.length) return undefined
  return entries.startsWith(`{"seq":${place.seq},`, place.from) ? place : undefined
}

interface BatchCursor {
  hours: HourMarks
  tick: Tick
  from: number
  at: number
  length: number
  texts: TextIndex
}

/** Marks the hours of what a late entry adds or changes. */
function markHours(statements: Statements, state: RunState, entry: Entry, hours: HourMarks): void {
  const { timestamp, step, type } = entry
  if (timestamp < hours.open) hours.mark(timestamp)
  // What is as new as most are, is in no hour that anybody keeps.
  if (state.startedAt >= hours.open) return
  // Of runs only those that have ended are kept.
  if (type === 'run-end') hours.mark(state.startedAt)
  // The step whose end or whose model it is.
  else if (type === 'step-finish' || type === 'prompt' || type === 'usage')
    hours.mark(stepAt(statements, state, step)?.startedAt ?? Infinity)
}

function noteFirstToken(
  statements: Statements,
  state: RunState,
  { step: path, timestamp }: Entry,
  hours: HourMarks,
): void {
  if (state.waiting === 0) return
  const step = stepAt(statements, state, path)
  if (step?.kind !== 'model-call' || step.waits === false) return
  step.waits = false
  hours.mark(step.startedAt)
  if (statements.firstToken.run(timestamp, state.number, step.seq).changes > 0) state.waiting--
}

function add(
  statements: Statements,
  state: RunState,
  entry: Entry,
  { tick, from, at, length, texts, hours }: BatchCursor,
): void {
  const { number: run } = state
  const { seq, timestamp, step: path, type } = entry
  if (type === 'run-start') beginRun(statements, state, entry)
  else if (type === 'step-start') beginStep(statements, state, entry)
  const agent = agentAt(statements, state, placeOf(entry))
  const step = stepAt(statements, state, path)?.seq ?? 0
  const { eventId = null, toolName = null } = eventNames(entry)
  const counts = isCounted(statements, state, entry) ? 1 : 0
  statements.addEvent.run(run, seq, agent, step, type, eventId, toolName, timestamp, tick.id, at, length, counts)
  switch (type) {
    case 'text-start':
    case 'reasoning-start':
    case 'tool-input-start': {
      const deltas = type.replace('start', 'delta')
      statements.addBlock.run(run, seq, agent, step, deltas, entry.id, toolName, tick.log, tick.firstSeq)
      break
    }
    case 'text-end':
    case 'reasoning-end':
    case 'tool-input-end': {
      const block = statements.lastBlock.get(type.replace('end', 'delta'), entry.id, run)?.seq
      if (block == null) break
      statements.endBlock.run(seq, run, block)
      const place = { row: tick.entries, at: from }
      if (type !== 'tool-input-end') texts.addBlock(run, Number(block), entry, place)
      break
    }
    case 'step-finish':
      endStep(statements, state, entry)
      break
    case 'prompt':
      statements.setPrompt.run(entry.stage, entry.model, seq, run, step)
      statements.setModel.run(entry.model, agent)
      break
    case 'session-info':
      if (entry.model !== undefined) statements.setModel.run(entry.model, agent)
      break
    case 'tool-call':
      statements.addToolCall.run(run, seq, agent, parentPath(path), step, entry.toolCallId, entry.toolName, timestamp)
      break
    case 'tool-result':
      if (entry.preliminary !== true) endToolCall(statements, state, entry, hours)
      break
    case 'request': {
      const call = [entry.toolCallId ?? null, toolName]
      statements.addRequest.run(run, seq, agent, step, entry.requestId, entry.kind, ...call, timestamp, entry.deadline)
      break
    }
    case 'response': {
      const { outcome, reason = null, protocol = null, requestId } = entry
      const request = statements.openRequest.get(run, requestId)?.seq
      if (request != null) statements.endRequest.run(timestamp, outcome, reason, protocol, seq, run, request)
      break
    }
    case 'usage':
      addUsage(statements, state, entry, agent, step)
      break
    case 'suspend':
    case 'resume':
    case 'run-end':
      statements.setThread.run(state.thread, run, timestamp)
      break
    default:
  }
  // Last: an unreadable text must not prevent anything else.
  texts.addEntry(run, entry, length)
}

function beginRun(statements: Statements, state: RunState, entry: EntryOf<'run-start'>): void {
  const { seq, timestamp, agent, parentRunId } = entry
  const execution = parentRunId === undefined ? state.id : executionOf(statements, parentRunId)
  const names = ['', 'run', agent, execution, parentRunId ?? null] as const
  state.agent = beginAgent(statements, state.id, [state.number, state.id, seq, ...names, state.startedAt])
  statements.setThread.run(state.thread, state.number, timestamp)
}

/** Returns its number. An interrupted one begins again. */
function beginAgent(statements: Statements, id: string, rest: (string | number | null)[]): number {
  const known = statements.agentOf.get(id)?.number
  if (known == null) return Number(statements.addAgent.run(id, ...rest).lastInsertRowid)
  statements.restartAgent.run(known)
  return Number(known)
}

/** The root of a run's execution. The parent may be gone, or have been recorded somewhere else. */
function executionOf(statements: Statements, parent: string): string {
  return String(statements.agentOf.get(parent)?.execution_id ?? parent)
}

function beginStep(statements: Statements, state: RunState, entry: EntryOf<'step-start'>): void {
  const { number: run } = state
  const { seq, timestamp, step: path, stepType, attempt, answer, toolCallId = null, toolName = null } = entry
  const kind = kindOf(entry)
  let agent = agentAt(statements, state, parentPath(path))
  let runs = 0
  const called = calledAgent(entry)
  if (called !== undefined) {
    const caller = statements.agentBy.get(agent)
    const parent = String(caller?.id ?? state.id)
    const execution = String(caller?.execution_id ?? state.id)
    const names = [path, stepType, called, execution, parent] as const
    agent = runs = beginAgent(statements, `${state.id}/${path}`, [run, state.id, seq, ...names, timestamp])
  }
  const flag = answer === true ? 1 : 0
  statements.addStep.run(run, seq, path, agent, stepType, kind, attempt, flag, toolCallId, toolName, timestamp)
  keepStep(state, path, { seq, startedAt: timestamp, agent, kind, runs })
  if (kind === 'model-call') {
    statements.addModelCall.run(run, seq)
    state.waiting++
  }
  if ((kind === 'tool-call' || kind === 'client-tool') && toolCallId !== null) {
    const call = statements.openToolCall.get(run, toolCallId, parentPath(path))?.seq
    if (call != null) statements.startToolCall.run(seq, timestamp, run, call)
  }
}

function endStep(statements: Statements, state: RunState, entry: EntryOf<'step-finish'>): void {
  const { timestamp, step: path, duration, finishReason = null } = entry
  const step = stepAt(statements, state, path)
  if (step === undefined) return
  const error = entry.error === undefined ? null : JSON.stringify(entry.error)
  statements.endStep.run(timestamp, duration, finishReason, error, state.number, step.seq)
  stopWaiting(statements, state, step.seq)
  if (step.runs !== 0) statements.endAgent.run(error === null ? 'completed' : 'failed', timestamp, error, step.runs)
}

function endToolCall(statements: Statements, state: RunState, entry: EntryOf<'tool-result'>, hours: HourMarks): void {
  const { seq, timestamp, step: path, toolCallId, isError } = entry
  const call = statements.openToolCall.get(state.number, toolCallId, parentPath(path))?.seq
  if (call == null) return
  if (state.startedAt < hours.open) hours.mark(Number(statements.calledAt.get(state.number, call)?.called_at))
  const outcome = entry.outcome ?? (isError === true ? 'failed' : 'completed')
  statements.endToolCall.run(timestamp, outcome, seq, state.number, call)
  // An agent that a model calls fails as a tool does: its step has no error.
  const runs = isError === true ? (stepAt(statements, state, path)?.runs ?? 0) : 0
  if (runs !== 0) statements.failAgent.run(JSON.stringify({ code: outcome, message: messageOf(entry.result) }), runs)
}

function addUsage(
  statements: Statements,
  state: RunState,
  { seq, timestamp, model, usage, cost }: EntryOf<'usage'>,
  agent: number,
  step: number,
): void {
  const { inputTokens, outputTokens, totalTokens, reasoningTokens, cachedInputTokens, cacheWriteInputTokens } = usage
  // Recordings from elsewhere may lack it.
  const { source = 'reported' } = usage as Partial<typeof usage>
  const counts = [inputTokens, outputTokens, totalTokens, reasoningTokens, cachedInputTokens, cacheWriteInputTokens]
  const values = counts.map((count) => count ?? null)
  const { number: run } = state
  statements.addUsage.run(run, seq, agent, step, model, ...values, source, cost ?? null, timestamp)
  // The model that answered may not be the one that was called first.
  statements.setCallModel.run(model, run, step)
}

/** Whether the summary of the agent counts it: not a partial result or a router's `respond`. */
function isCounted(statements: Statements, state: RunState, entry: Entry): boolean {
  if (entry.type !== 'tool-call' && entry.type !== 'tool-result') return true
  if (entry.type === 'tool-result' && entry.preliminary === true) return false
  return entry.toolName !== respondTool || stepAt(statements, state, parentPath(entry.step))?.kind !== 'router'
}

/* Entries that are too long to be parsed in a slice of the indexer: a tool's result of several MB. */

/** Characters that are parsed in about a ms. */
const bigLine = 256 * 1024

const head =
  /^\{"seq":\d+,"timestamp":[\d.]+,"step":"(?:[^"\\]|\\.)*","type":"tool-result",(?:"(?!result")\w+":(?:"(?:[^"\\]|\\.)*"|\w+),)*/u
const tail = /(?:,"(?:isError|preliminary|dynamic|providerExecuted)":(?:true|false)|,"outcome":"[\w-]+")*\}$/u

/** The JSON of an entry without the long text, for types that may be very long. */
function withoutResult(line: string): string {
  if (line.length < bigLine) return line
  const start = head.exec(line.slice(0, 4096))?.[0]
  if (start === undefined || !line.startsWith('"result":', start.length)) return line
  return `${start}"result":null${tail.exec(line.slice(-400))?.[0] ?? '}'}`
}

/* A reset discards the output of an attempt, row by row, so that any number of rows is processed in slices. */

/**
 * Marks the rows of the attempt under its path. Usage stays: it was paid. Returns false if the time was over before: the tables then show the rest.
 */
function takeBack(
  statements: Statements,
  state: RunState,
  { seq, step: path }: EntryOf<'step-reset'>,
  isOver: () => boolean,
): boolean {
  const { number: run } = state
  const attempt = stepAt(statements, state, path)?.seq
  if (attempt === undefined) return true
  for (let from = `${path}/`; ;) {
    // The range is that of all paths that begin with `path/`.
    const below = statements.stepBelow.get(run, from, `${path}0`, attempt)
    const step = below === undefined ? attempt : Number(below.seq)
    from = String(below?.path ?? path)
    while (takeBackOne(statements, run, step, seq)) if (isOver()) return false
    statements.takeBackStep.run(run, step)
    stopWaiting(statements, state, step)
    if (below === undefined) return true
    if (isOver()) return false
  }
}

/** Marks one row of a step. Returns false if none is left. */
function takeBackOne(statements: Statements, run: number, step: number, seq: number): boolean {
  const event = statements.eventOf.get(run, step)
  if (event !== undefined) {
    if (event.type === 'tool-call') statements.takeBackCall.run(run, event.seq!)
    statements.takeBackEvent.run(run, event.seq!)
    return true
  }
  const block = statements.openBlockOf.get(run, step)?.seq
  if (block != null) {
    statements.endBlock.run(seq, run, block)
    return true
  }
  const request = statements.requestOf.get(run, step)?.seq
  if (request == null) return false
  statements.takeBackRequest.run(run, request)
  return true
}
