/** A run's entries as AG-UI events. The mapping is in `ag-ui.ts`. */
import type { Entry, EntryOf } from '../../part/entry.ts'
import type { ErrorValue } from '../../part/error.ts'
import { omitUndefined } from '../../part/omit-undefined.ts'
import { messagesOf } from '../../part/message.ts'
import { isUnder } from '../../part/path.ts'
import { hasRole } from '../../part/principal.ts'
import { createAnswering, type Answering } from '../../fold/answering.ts'
import { LazySet, LazyMap } from '../../fold/lazy-map.ts'
import { begunAgain, type Projection, type Sink, type WireContext } from '../wire.ts'
import { createHeldText } from '../held-text.ts'
import { createPrompts } from '../openai/openai-prompts.ts'
import { createAgUiBlocks } from './ag-ui-blocks.ts'
import type { AgUiEvent, AgUiOptions, AgUiOut } from './ag-ui-event.ts'
import { createAgUiCallNames, createAgUiIds } from './ag-ui-ids.ts'
import { conversation, createAgUiRun, type AgUiOutcome } from './ag-ui-run.ts'
import { createAgUiTools } from './ag-ui-tools.ts'
import type { Interrupt } from '@ag-ui/core'
import { kindOf, type StepKind } from '../../part/step-kind.ts'

export function projectAgUi(
  sink: Sink<AgUiEvent>,
  { resumedAt = 0, history = [], roles }: WireContext,
  { old = false, live = false, liveFrom = 0, joins = false, messages, warnings, traces = false }: Partial<AgUiOptions>,
): Projection {
  const run = createAgUiRun(sink, warnings)
  const answering = createAnswering()
  const ids = createAgUiIds()
  const names = createAgUiCallNames()
  const blocks = createAgUiBlocks(sink, run, ids)
  const steps = createAgUiSteps(run, answering)
  const tools = createAgUiTools(sink, run, { ids, names, old, showsAnswers: live || joins })
  const interrupts = createAgUiInterrupts()
  const held = createHeldText()
  const prompts = traces ? createPrompts() : undefined
  /** Open approvals that this client may not give. */
  const waiting = new LazyMap<string, { path: string; about: object }>()
  /** Paths that have sent permanent events. */
  const shown = new LazySet<string>()

  function take(entry: Entry): void {
    run.timestamp = entry.timestamp
    const due = held.take(entry)
    if (due === undefined) apply(entry)
    else for (const each of due) apply(each)
  }

  function apply(entry: Entry): void {
    if (projection.state !== 'open') return
    prompts?.apply(entry)
    switch (entry.type) {
      case 'text-delta':
      case 'reasoning-delta':
        return blocks.delta(entry)
      case 'tool-input-delta':
        return tools.inputDelta(entry)
      case 'run-start':
        ids.begin(entry.runId)
        names.apply(history)
        names.apply(messagesOf(entry.input))
        return run.start(entry, () => messages ?? conversation(history, entry))
      case 'resume':
        return run.resume(entry, messages && (() => messages))
      case 'step-start':
        answering.note(entry)
        if (entry.answer === true) blocks.startAnswer(entry.step)
        return steps.start(entry)
      case 'step-finish':
        tools.close(entry.step)
        ids.end(entry.step)
        return steps.finish(entry)
      case 'step-reset':
        return reset(entry.step)
      case 'text-end':
      case 'reasoning-end':
        return blocks.end(entry)
      case 'tool-result':
        return tools.result(entry)
      case 'request':
        if (entry.kind === 'input') return interrupts.request(entry)
        if (!hasRole(roles, entry.roles)) return waits(entry, tools.request(entry, false))
        shown.add(entry.step)
        return interrupts.request(entry, tools.request(entry, true))
      case 'response':
        interrupts.response(entry)
        sendWaiting(entry.requestId, entry.outcome)
        return tools.response(entry)
      case 'data':
        if (isUnder(entry.step, 'after')) return
        // Clients replace data with an id, so a second attempt corrects it.
        if (entry.transient !== true && entry.id === undefined) shown.add(entry.step)
        return run.send(toCustom(entry))
      case 'prompt':
        tools.prompt(entry)
        return trace(entry)
      case 'usage':
        return run.addUsage(entry)
      case 'answer-end':
        return finish(success(), blocks.finalText())
      case 'suspend':
        return suspend(entry)
      case 'run-end':
        return endRun(entry)
      default:
        if (answering.has(entry.step)) applyAnswer(entry)
    }
  }

  /** Entries that are sent only for steps of the answer. */
  function applyAnswer(entry: Exclude<Entry, { type: Handled }>): void {
    switch (entry.type) {
      case 'text-start':
        shown.add(entry.step)
        return blocks.startText(entry)
      case 'reasoning-start':
        shown.add(entry.step)
        return blocks.startReasoning(entry)
      case 'tool-input-start':
        shown.add(entry.step)
        return tools.inputStart(entry)
      case 'tool-call':
        shown.add(entry.step)
        return tools.call(entry)
      case 'source':
      case 'file':
      case 'reasoning-file':
      case 'custom':
      case 'cli-output':
        shown.add(entry.step)
        return run.send(toExtra(entry))
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
    run.send({ type: 'CUSTOM', name: 'prompt', value })
  }

  /** Somebody else must approve. `toolCallId`: the client's id of the call, if it has it. */
  function waits({ step: path, requestId, toolName, roles: needed }: EntryOf<'request'>, toolCallId?: string): void {
    waiting.set(requestId, { path, about: omitUndefined({ requestId, toolCallId, toolName, roles: needed }) })
    sendWaiting(requestId)
  }

  function sendWaiting(requestId: string, outcome?: string): void {
    const about = waiting.get(requestId)?.about
    if (about === undefined) return
    if (outcome !== undefined) waiting.delete(requestId)
    run.send({ type: 'CUSTOM', name: 'waiting', value: { ...about, ...omitUndefined({ outcome }) } })
  }

  /** Sent output of a superseded attempt cannot be retracted. */
  function reset(path: string): void {
    for (const at of shown) if (isUnder(at, path)) return fail({ code: 'interrupted', message: begunAgain })
    blocks.forget(path)
    tools.forget(path)
    interrupts.forget(path)
    for (const [id, each] of waiting) if (isUnder(each.path, path)) waiting.delete(id)
    ids.end(path)
    steps.close(path)
  }

  function close(): void {
    blocks.close()
    tools.close()
    steps.close()
  }

  function success(): AgUiOutcome {
    const pendingToolCallIds = old ? [] : tools.pending()
    return pendingToolCallIds.length > 0 ? { type: 'success', pendingToolCallIds } : { type: 'success' }
  }

  function finish(outcome: AgUiOutcome, result?: unknown): void {
    close()
    run.finish(outcome, result)
    projection.state = 'complete'
    sink.end()
  }

  function fail(error: ErrorValue): void {
    close()
    run.fail(error)
    projection.state = 'complete'
    sink.end()
  }

  function suspend({ seq }: EntryOf<'suspend'>): void {
    const pending = interrupts.pending()
    if (pending.length === 0 && live && seq >= liveFrom) return
    const outcome: AgUiOutcome = pending.length > 0 ? { type: 'interrupt', interrupts: pending } : success()
    if (seq >= resumedAt) return finish(outcome)
    // The client had this end, and asked again.
    close()
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
    const messageId = ids.next()
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
function toExtra(entry: Extract<Entry, { type: Extra }>): AgUiEvent {
  if (entry.type === 'cli-output') {
    const { stream, raw } = entry
    return { type: 'RAW', event: { stream, raw }, source: 'cli' }
  }
  const { type: name, seq: _, timestamp: __, step: ___, ...value } = entry
  return { type: 'CUSTOM', name, value: omitUndefined(value) }
}

/** An event of a step. */
function toCustom({ name, id, data, transient }: EntryOf<'data'>): AgUiEvent {
  const isMarked = id !== undefined || transient !== undefined
  const metadata = isMarked ? omitUndefined({ id, transient }) : undefined
  // `value` is required: null stands for nothing in JSON.
  return { type: 'CUSTOM', name, value: data ?? null, metadata }
}

/** Requests to persons, as interrupts: approvals, and questions of a step. */
interface AgUiInterrupts {
  /** `toolCallId`: the client's id of the call. */
  request(entry: EntryOf<'request'>, toolCallId?: string): void
  response(entry: EntryOf<'response'>): void
  /** The open interrupts. */
  pending(): Interrupt[]
  forget(path: string): void
}

/** The schema of a reply to an approval. */
const approvalSchema = {
  type: 'object',
  properties: {
    approved: { type: 'boolean' },
    reason: { type: 'string' },
    editedArgs: { type: 'object', description: 'Other arguments for the tool, if it is approved.' },
  },
  required: ['approved'],
}

function createAgUiInterrupts(): AgUiInterrupts {
  const open = new LazyMap<string, { path: string; interrupt: Interrupt }>()
  return {
    request(entry, toolCallId) {
      if (entry.kind === 'tool') return
      open.set(entry.requestId, { path: entry.step, interrupt: toInterrupt(entry, toolCallId) })
    },
    response({ requestId }) {
      open.delete(requestId)
    },
    pending: () => Array.from(open.values(), ({ interrupt }) => interrupt),
    forget(root) {
      for (const [id, { path }] of open) if (isUnder(path, root)) open.delete(id)
    },
  }
}

function toInterrupt(entry: EntryOf<'request'>, toolCallId: string | undefined): Interrupt {
  const { requestId: id, deadline } = entry
  const expiresAt = Number.isFinite(deadline) && deadline > 0 ? toIso(deadline) : undefined
  if (entry.kind === 'input') {
    const { reason = 'input_required', message, schema: responseSchema, metadata } = entry
    return omitUndefined({ id, reason, message, responseSchema, expiresAt, metadata })
  }
  const { toolName, input } = entry
  const message = `The tool ${toolName} needs an approval.`
  // The client may not have the call: it gets those of its own tools only after approval.
  const metadata = { toolName, input }
  return omitUndefined({
    id,
    reason: 'tool_call',
    message,
    toolCallId,
    responseSchema: approvalSchema,
    expiresAt,
    metadata,
  })
}

function toIso(time: number): string | undefined {
  const date = new Date(time)
  return Number.isNaN(date.getTime()) ? undefined : date.toISOString()
}

/** The steps of the pipeline, and the model calls of the answer. Steps inside a tool belong to the tool. */
interface AgUiSteps {
  /** Call it after the entry was noted as answering. */
  start(entry: EntryOf<'step-start'>): void
  finish(entry: EntryOf<'step-finish'>): void
  /** Ends the open steps at and under this path, inner ones first. Default: all. */
  close(path?: string): void
}

const calls: ReadonlySet<StepKind> = new Set(['tool-call', 'client-tool', 'approval'])

function createAgUiSteps(out: AgUiOut, answering: Answering): AgUiSteps {
  const open = new Set<string>()
  const tools = new LazySet<string>()

  function isInTool(path: string): boolean {
    for (const tool of tools) if (isUnder(path, tool)) return true
    return false
  }

  return {
    start(entry) {
      const { step } = entry
      const kind = kindOf(entry)
      if (calls.has(kind)) return void tools.add(step)
      if (isUnder(step, 'after')) return
      if (!answering.has(step) && (kind === 'model-call' || isInTool(step))) return
      open.add(step)
      out.send({ type: 'STEP_STARTED', stepName: nameOf(step) })
    },
    finish({ step, usage, finishReason }) {
      tools.delete(step)
      if (!open.delete(step)) return
      const isKnown = usage !== undefined || finishReason !== undefined
      const metadata = isKnown ? omitUndefined({ usage, finishReason }) : undefined
      out.send({ type: 'STEP_FINISHED', stepName: nameOf(step), metadata })
    },
    close(path = '') {
      for (const step of [...open].reverse()) {
        if (!isUnder(step, path)) continue
        open.delete(step)
        out.send({ type: 'STEP_FINISHED', stepName: nameOf(step) })
      }
    },
  }
}

/** All steps that clients see are below `main`. */
function nameOf(step: string): string {
  return step.startsWith('main/') ? step.slice('main/'.length) : step
}
