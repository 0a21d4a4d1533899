/** A run's entries as AG-UI events. The mapping is in `ag-ui.ts`. */
import { isDelta, type Entry, type EntryOf } from '../../part/entry.ts'
import type { ErrorValue } from '../../part/error.ts'
import { omitUndefined } from '../../part/omit-undefined.ts'
import { messagesOf } from '../../part/message.ts'
import { isUnder, parentPath } from '../../part/path.ts'
import { hasRole } from '../../part/principal.ts'
import { createAgentsAbove } from '../../fold/agents-above.ts'
import { createAnswering } from '../../fold/answering.ts'
import { LazySet, LazyMap } from '../../fold/lazy-map.ts'
import { begunAgain, errorText, type Projection, type Sink, type WireContext } from '../wire.ts'
import { createHeldText } from '../held-text.ts'
import { shownMessage, turnAt } from '../turn-end.ts'
import { createScriptCalls, scriptCallName } from '../script-calls.ts'
import { createPrompts } from '../openai/openai-prompts.ts'
import { createAgUiBlocks } from './ag-ui-blocks.ts'
import type { AgUiEvent, AgUiEventOf, AgUiOptions } from './ag-ui-event.ts'
import { createAgUiCallNames, createAgUiIds } from './ag-ui-ids.ts'
import { conversation, createAgUiRun, type AgUiOutcome } from './ag-ui-run.ts'
import { createAgUiInterrupts } from './ag-ui-interrupts.ts'
import { createAgUiSteps } from './ag-ui-steps.ts'
import { createAgUiSubagents, noSubagents } from './ag-ui-subagents.ts'
import { createAgUiTools } from './ag-ui-tools.ts'

export function projectAgUi(
  sink: Sink<AgUiEvent>,
  { resumedAt = 0, history = [], roles }: WireContext,
  { old = false, live = false, liveFrom = 0, joins = false, messages, warnings, traces = false }: Partial<AgUiOptions>,
): Projection {
  const run = createAgUiRun(sink, warnings)
  const answering = createAnswering()
  const subagents = old ? noSubagents : createAgUiSubagents(run)
  const subagentAt = (path: string) => subagents.idAt(path)
  const above = createAgentsAbove()
  const ids = createAgUiIds(subagentAt)
  const names = createAgUiCallNames()
  const scripts = createScriptCalls()
  const blocks = createAgUiBlocks(sink, run, { ids, subagentAt })
  const steps = createAgUiSteps(run, { isShown, subagentAt })
  /** Calls of subagents and scripts are no part of the conversation. */
  const name = (path: string, id: string) => {
    const isInner = subagentAt(path) !== undefined || scripts.parentOf(path, id) !== undefined
    return isInner ? names.inner(id, start?.runId ?? '') : names.next(id)
  }
  const tools = createAgUiTools(sink, run, { subagentAt, ids, name, old, showsAnswers: live || joins })
  const interrupts = createAgUiInterrupts()
  const held = createHeldText()
  const prompts = traces ? createPrompts() : undefined
  /** Open approvals that this client may not give. */
  const waiting = new LazyMap<string, { path: string; about: object }>()
  /** Paths that have sent permanent events. */
  const shown = new LazySet<string>()
  let start: EntryOf<'run-start'> | undefined

  /** Whether output of this path is sent: that of the answer, and that of the agents which it calls. */
  function isShown(path: string): boolean {
    return answering.has(path) || subagentAt(path) !== undefined
  }

  /** Notes an event that stays. A subagent's does not bind us: it may begin again, because it is not the answer. */
  function show(path: string): void {
    if (subagentAt(path) === undefined) shown.add(path)
  }

  function take(entry: Entry): void {
    // In a stream time does not go back, whatever a recording says.
    if (entry.timestamp > run.timestamp) run.timestamp = entry.timestamp
    const due = held.take(entry)
    if (due === undefined) apply(entry)
    else for (const each of due) apply(each)
  }

  function apply(entry: Entry): void {
    if (projection.state !== 'open') return
    prompts?.apply(entry)
    if (!isDelta(entry)) above.apply(entry)
    switch (entry.type) {
      case 'text-delta':
      case 'reasoning-delta':
        return blocks.delta(entry)
      case 'tool-input-delta':
        return tools.inputDelta(entry)
      case 'run-start':
        start = entry
        ids.begin(entry.runId)
        subagents.begin(entry.runId)
        names.apply(history)
        names.apply(messagesOf(entry.input))
        return run.start(entry, () => messages ?? conversation(history, entry))
      case 'resume':
        return run.resume(entry, () => subagents.resume(), messages && (() => messages))
      case 'step-start':
        answering.note(entry)
        if (entry.answer === true) blocks.startAnswer(entry.step)
        if (entry.handoff === true) blocks.handOver(entry.step)
        if (isShown(parentPath(entry.step)))
          subagents.start(entry, ({ path, toolCallId }) => tools.parentOf(path, toolCallId))
        return steps.start(entry)
      case 'step-finish':
        tools.close(entry.step)
        ids.end(entry.step)
        steps.finish(entry)
        return subagents.end(entry.step)
      case 'step-reset':
        return reset(entry.step)
      case 'text-end':
      case 'reasoning-end':
        return blocks.end(entry)
      case 'tool-result':
        endCall(entry)
        return showScriptCall(entry)
      case 'request':
        if (entry.kind === 'input') return interrupts.request(entry, placeOf(entry.step))
        if (!hasRole(roles, entry.roles)) return waits(entry, tools.request(entry, false))
        show(entry.step)
        return interrupts.request(entry, { ...placeOf(entry.step), toolCallId: tools.request(entry, true) })
      case 'response':
        interrupts.response(entry)
        sendWaiting(entry.requestId, entry.outcome)
        return tools.response(entry)
      case 'data':
        if (isUnder(entry.step, 'after')) return
        // Clients replace data with an id, so a second attempt corrects it.
        if (entry.transient !== true && entry.id === undefined) show(entry.step)
        return run.send({ ...toCustom(entry), subagentRunId: subagentAt(entry.step) })
      case 'prompt':
        tools.prompt(entry)
        return trace(entry)
      case 'usage':
        return run.addUsage(entry)
      case 'message':
        return hear(entry)
      case 'answer-end':
        return finish(success(), blocks.finalText())
      case 'suspend':
        return suspend(entry)
      case 'run-end':
        return endRun(entry)
      default:
        if (entry.type === 'tool-call' && entry.via === 'script') return showScriptCall(entry)
        if (isShown(entry.step)) applyAnswer(entry)
    }
  }

  function showScriptCall(entry: EntryOf<'tool-call' | 'tool-result'>): void {
    const value = scripts.apply(entry)
    if (value === undefined || isUnder(entry.step, 'after')) return
    run.send({ type: 'CUSTOM', name: scriptCallName, value, subagentRunId: subagentAt(entry.step) })
  }

  /** The agents that lead to a path, where it is not the run's own alone, and the subagent that works there. */
  function placeOf(path: string): { agents?: string[]; subagentRunId: string | undefined } {
    return { ...above.field(path), subagentRunId: subagentAt(path) }
  }

  /** Before the result of a subagent everything in it is closed, also where the run is stopped and its steps end later. */
  function endCall(entry: EntryOf<'tool-result'>): void {
    const call = entry.preliminary === true ? undefined : subagents.at(entry.step)
    if (call?.toolCallId === entry.toolCallId) {
      closeUnder(entry.step)
      subagents.finish(call, entry)
    }
    tools.result(entry)
  }

  /** Entries that are sent only for steps of the answer and for subagents. */
  function applyAnswer(entry: Exclude<Entry, { type: Handled }>): void {
    switch (entry.type) {
      case 'text-start':
        show(entry.step)
        return blocks.startText(entry)
      case 'reasoning-start':
        show(entry.step)
        return blocks.startReasoning(entry)
      case 'tool-input-start':
        show(entry.step)
        return tools.inputStart(entry)
      case 'tool-call':
        show(entry.step)
        return tools.call(entry)
      case 'source':
      case 'file':
      case 'reasoning-file':
      case 'custom':
      case 'cli-output':
        show(entry.step)
        return run.send({ ...toExtra(entry), subagentRunId: subagentAt(entry.step) })
      case 'tool-input-end':
      case 'stream-start':
      case 'response-metadata':
      case 'finish':
      case 'raw':
      case 'error':
      case 'tool-approval-request':
      case 'retry':
      case 'warning':
      case 'session-info':
      case 'summarized':
        return
      default:
        entry satisfies never
    }
  }

  function trace(prompt: EntryOf<'prompt'>): void {
    if (prompts === undefined || isUnder(prompt.step, 'after')) return
    const { stage, model, tools: offered } = prompt
    const value = omitUndefined({
      stage,
      model,
      messages: prompts.messages(prompt),
      tools: offered,
    })
    run.send({ type: 'CUSTOM', name: 'prompt', value, subagentRunId: subagentAt(prompt.step) })
  }

  /** Somebody else must approve. `toolCallId`: the client's id of the call, if it has it. */
  function waits({ step: path, requestId, toolName, roles: needed }: EntryOf<'request'>, toolCallId?: string): void {
    const about = omitUndefined({ requestId, toolCallId, toolName, roles: needed, ...above.field(path) })
    waiting.set(requestId, { path, about })
    sendWaiting(requestId)
  }

  function sendWaiting(requestId: string, outcome?: string): void {
    const known = waiting.get(requestId)
    if (known === undefined) return
    if (outcome !== undefined) waiting.delete(requestId)
    const value = { ...known.about, ...omitUndefined({ outcome }) }
    run.send({ type: 'CUSTOM', name: 'waiting', value, subagentRunId: subagentAt(known.path) })
  }

  /** Sent output of a superseded attempt cannot be retracted. That of a subagent is closed, and other output follows. */
  function reset(path: string): void {
    for (const at of shown) if (isUnder(at, path)) return fail({ code: 'interrupted', message: begunAgain })
    if (subagentAt(path) !== undefined || subagents.at(path) !== undefined) {
      closeUnder(path)
      tools.interrupt(path)
      subagents.fail({ code: 'interrupted', message: 'The server was interrupted and begins this again.' }, path)
    }
    blocks.forget(path)
    tools.forget(path)
    interrupts.forget(path)
    for (const [id, each] of waiting) if (isUnder(each.path, path)) waiting.delete(id)
    ids.end(path)
    steps.close(path)
  }

  function closeUnder(path: string): void {
    blocks.close(path)
    tools.close(path)
    steps.close(path)
  }

  /** Everything but the subagents. */
  function close(): void {
    closeUnder('')
  }

  function success(): AgUiOutcome {
    const pendingToolCallIds = old ? [] : tools.pending()
    return pendingToolCallIds.length > 0 ? { type: 'success', pendingToolCallIds } : { type: 'success' }
  }

  function finish(outcome: AgUiOutcome, result?: unknown): void {
    close()
    subagents.fail({ code: outcome.type === 'cancelled' ? 'cancelled' : 'failed', message: 'The run has ended.' })
    run.finish(outcome, result)
    projection.state = 'complete'
    sink.end()
  }

  function fail(error: ErrorValue): void {
    close()
    subagents.fail({ code: error.code, message: errorText(error) })
    run.fail(error)
    projection.state = 'complete'
    sink.end()
  }

  function hear(entry: EntryOf<'message'>): void {
    const turn = turnAt(entry, resumedAt)
    if (turn === 'end' && !live) return finish(success(), blocks.finalText())
    if (turn === 'begin') return run.turn(entry, close, messages && (() => messages))
    run.send({ type: 'CUSTOM', name: 'message', value: shownMessage(entry) })
  }

  function suspend({ seq }: EntryOf<'suspend'>): void {
    const pending = interrupts.pending()
    if (pending.length === 0 && live && seq >= liveFrom) return
    const outcome: AgUiOutcome = pending.length > 0 ? { type: 'interrupt', interrupts: pending } : success()
    close()
    subagents.suspend((id) => pending.flatMap((each) => (each.subagentRunId === id ? [each.id] : [])))
    if (seq >= resumedAt) return finish(outcome)
    // The client had this end, and asked again.
    run.finish(outcome)
  }

  function endRun({ outcome, output, error }: EntryOf<'run-end'>): void {
    if (outcome === 'completed') {
      if (answering.started || output === undefined) return finish(success(), blocks.finalText())
      if (typeof output === 'string') sendOutput(output)
      return finish(success(), output)
    }
    if (outcome !== 'aborted') return fail(error ?? { code: outcome, message: `The run ended: ${outcome}.` })
    if (old) return fail({ code: 'cancelled', message: error?.message ?? 'The run was stopped.' })
    finish({ type: 'cancelled' })
  }

  function sendOutput(delta: string): void {
    const messageId = ids.next('')
    run.send({ type: 'TEXT_MESSAGE_START', messageId, role: 'assistant' })
    if (delta !== '') run.send({ type: 'TEXT_MESSAGE_CONTENT', messageId, delta })
    run.send({ type: 'TEXT_MESSAGE_END', messageId })
  }

  const projection = { state: 'open' as Projection['state'], apply: take, fail }
  return projection
}

type Handled =
  | 'text-delta'
  | 'reasoning-delta'
  | 'tool-input-delta'
  | 'run-start'
  | 'resume'
  | 'message'
  | 'step-start'
  | 'step-finish'
  | 'step-reset'
  | 'text-end'
  | 'reasoning-end'
  | 'tool-result'
  | 'request'
  | 'response'
  | 'data'
  | 'prompt'
  | 'usage'
  | 'answer-end'
  | 'suspend'
  | 'run-end'

/** Parts without an AG-UI event, sent as CUSTOM and RAW. */
type Extra = 'source' | 'file' | 'reasoning-file' | 'custom' | 'cli-output'

/** A part of the answer. */
function toExtra(entry: Extract<Entry, { type: Extra }>): AgUiEventOf<'CUSTOM'> | AgUiEventOf<'RAW'> {
  if (entry.type === 'cli-output') {
    const { stream, raw } = entry
    return { type: 'RAW', event: { stream, raw }, source: 'cli' }
  }
  const { type: name, seq: _, timestamp: __, step: ___, ...value } = entry
  return { type: 'CUSTOM', name, value: omitUndefined(value) }
}

/** An event of a step. */
function toCustom({ name, id, data, transient }: EntryOf<'data'>): AgUiEventOf<'CUSTOM'> {
  const isMarked = id !== undefined || transient !== undefined
  const metadata = isMarked ? omitUndefined({ id, transient }) : undefined
  // `value` is required: null stands for nothing in JSON.
  return { type: 'CUSTOM', name, value: data ?? null, metadata }
}
