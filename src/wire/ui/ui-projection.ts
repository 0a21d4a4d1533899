/** A run's entries as chunks of the AI SDK UI message stream. The mapping is in `ui.ts`. */
import { isDelta, type Entry, type EntryOf } from '../../part/entry.ts'
import type { ErrorValue } from '../../part/error.ts'
import { isUnder, parentPath } from '../../part/path.ts'
import { hasRole } from '../../part/principal.ts'
import type { Usage } from '../../part/usage.ts'
import { kindOf } from '../../part/step-kind.ts'
import { createAgentsAbove } from '../../fold/agents-above.ts'
import { createAnswering } from '../../fold/answering.ts'
import { begunAgain, errorText, type Projection, type Sink, type WireContext } from '../wire.ts'
import { createHeldText } from '../held-text.ts'
import { shownMessage, turnAt, turnMessageId } from '../turn-end.ts'
import { createScriptCalls, scriptCallName } from '../script-calls.ts'
import { toFileUrl, toFinishReason, type UiChunk, type UiOptions } from './ui-chunk.ts'
import { createUiAgents, type UiAgents } from './ui-agents.ts'
import { createShown } from './ui-shown.ts'
import { createUiSteps, type UiSteps } from './ui-steps.ts'
import { createUiTools, type UiTools } from './ui-tools.ts'

export function projectUi(
  sink: Sink<UiChunk>,
  { resumedAt = 0, joinedAt = 0, roles }: WireContext,
  { ui7 = false }: Partial<UiOptions>,
): Projection {
  return new UiProjection(sink, { resumedAt, joinedAt, roles, ui7 })
}

interface UiContext extends Required<Pick<WireContext, 'resumedAt' | 'joinedAt'>> {
  roles: WireContext['roles']
  ui7: boolean
}

/** A class, not closures: one for each open stream. `private` and not `#`: see decisions/0028. */
class UiProjection implements Projection {
  state: Projection['state'] = 'open'
  private readonly sink: Sink<UiChunk>
  private readonly resumedAt: number
  private readonly roles: WireContext['roles']
  private readonly ui7: boolean
  private readonly answering = createAnswering()
  private readonly tools: UiTools
  private readonly agents: UiAgents
  private readonly above = createAgentsAbove()
  private readonly scripts = createScriptCalls()
  /** Requests of called agents that wait for a step of their own. */
  private asked: EntryOf<'request'>[] | undefined = undefined
  private readonly shown = createShown()
  private readonly steps: UiSteps
  private readonly held = createHeldText()
  private runId = ''
  private joins: number

  constructor(sink: Sink<UiChunk>, { resumedAt, joinedAt, roles, ui7 }: UiContext) {
    this.sink = sink
    this.roles = roles
    this.resumedAt = resumedAt
    this.ui7 = ui7
    this.tools = createUiTools(sink, ui7)
    this.agents = createUiAgents(sink)
    this.steps = createUiSteps({ sink, tools: this.tools, shown: this.shown, ui7 })
    this.joins = joinedAt
  }

  apply(entry: Entry): void {
    if (this.joins !== 0 && entry.seq >= this.joins) {
      this.joins = 0
      if (entry.type !== 'resume') this.join()
    }
    const due = this.held.take(entry)
    if (due === undefined) this.encode(entry)
    else for (const each of due) this.encode(each)
  }

  /** Sends the start of the message and of its open items: clients fail on a delta without its start. */
  private join(messageId = this.runId): void {
    this.sink.send({ type: 'start', messageId })
    this.steps.reopen()
    this.tools.reopen()
    this.agents.reopen()
  }

  private add(path: string, chunk: UiChunk): void {
    this.shown.add(path)
    this.sink.send(chunk)
  }

  private encode(entry: Entry): void {
    if (this.state !== 'open') return
    // Deltas of the answer pass nothing that is about agents, as long as none is called.
    if (!isDelta(entry)) this.above.apply(entry)
    if (this.agents.isOpen || !isDelta(entry)) this.agents.apply(entry, this.isShown)
    switch (entry.type) {
      case 'text-delta':
      case 'reasoning-delta':
        return this.steps.delta(entry)
      case 'tool-input-delta':
        return this.tools.inputDelta(entry)
      case 'run-start':
        this.runId = entry.runId
        return this.sink.send({ type: 'start', messageId: this.runId })
      case 'resume':
        this.sink.send({ type: 'start', messageId: this.runId })
        return this.agents.reopen()
      case 'step-start':
        this.answering.note(entry)
        if (kindOf(entry) === 'model-call' && this.answering.has(entry.step)) this.steps.startCall(entry.step)
        return
      case 'step-finish':
        this.tools.forgetInputs(entry.step)
        return this.steps.finishCall(entry.step)
      case 'step-reset':
        if (!this.steps.retract(entry.step)) this.endWithError(begunAgain)
        return
      case 'text-end':
      case 'reasoning-end':
        return this.steps.endBlock(entry)
      case 'tool-result':
        this.tools.result(entry)
        return this.showScriptCall(entry)
      case 'prompt':
        return this.tools.prompt(entry)
      case 'request':
        return this.request(entry)
      case 'response':
        this.asked = this.asked?.filter(({ requestId }) => requestId !== entry.requestId)
        return this.tools.response(entry)
      case 'data':
        return this.addData(entry)
      case 'message':
        return this.hear(entry)
      case 'answer-end':
        return this.finish(toFinishReason(entry.finishReason, this.ui7), entry.usage)
      case 'suspend':
        for (const request of this.asked ?? []) this.ask(request)
        this.asked = undefined
        this.agents.flush()
        if (entry.seq >= this.resumedAt) this.finish('tool-calls')
        return
      case 'run-end':
        return this.endRun(entry)
      default:
        if (entry.type === 'tool-call' && entry.via === 'script') return this.showScriptCall(entry)
        if (this.answering.has(entry.step)) this.applyAnswer(entry)
    }
  }

  private showScriptCall(entry: EntryOf<'tool-call' | 'tool-result'>): void {
    const data = this.scripts.apply(entry)
    if (data === undefined || isUnder(entry.step, 'after') || this.agents.around(entry.step) !== undefined) return
    this.sink.send({ type: `data-${scriptCallName}`, id: data.toolCallId, data })
  }

  /** The call in the conversation whose agent or script makes this request. */
  private parentOf({ step, toolCallId }: EntryOf<'request'>): string | undefined {
    const inScript = toolCallId === undefined ? undefined : this.scripts.parentOf(step, toolCallId)
    return this.agents.around(step)?.toolCallId ?? inScript
  }

  /** Entries that are sent only for steps of the answer. */
  private applyAnswer(entry: Exclude<Entry, { type: Handled }>): void {
    switch (entry.type) {
      case 'text-start':
        return this.steps.startBlock('text', entry)
      case 'reasoning-start':
        return this.steps.startBlock('reasoning', entry)
      case 'tool-input-start':
        this.shown.add(entry.step)
        return this.tools.inputStart(entry)
      case 'tool-call':
        this.shown.add(entry.step)
        this.tools.call(entry)
        return this.steps.settle()
      case 'source': {
        const { step, id: sourceId, title, providerMetadata } = entry
        if (entry.sourceType === 'url') {
          return this.add(step, { type: 'source-url', sourceId, url: entry.url, title, providerMetadata })
        }
        const { mediaType, filename } = entry
        return this.add(step, { type: 'source-document', sourceId, mediaType, title, filename, providerMetadata })
      }
      case 'file':
      case 'reasoning-file': {
        const { type, step, mediaType, data, providerMetadata } = entry
        if (type === 'reasoning-file' && !this.ui7) return
        return this.add(step, { type, url: toFileUrl(mediaType, data), mediaType, providerMetadata })
      }
      case 'custom': {
        const { type, step, kind, providerMetadata } = entry
        if (this.ui7) this.add(step, { type, kind, providerMetadata })
        return
      }
      case 'tool-input-end':
      case 'stream-start':
      case 'response-metadata':
      case 'finish':
      case 'raw':
      case 'error':
      case 'tool-approval-request':
      case 'usage':
      case 'retry':
      case 'warning':
      case 'session-info':
      case 'summarized':
      case 'cli-output':
        return
      default:
        entry satisfies never
    }
  }

  /** Whether the loop of a call belongs to the answer. */
  private readonly isShown = (path: string): boolean => this.answering.has(parentPath(path))

  /**
   * `useChat` sends answers by itself once all calls of the last step have one. The call of the agent that asks has none, so what the agent asks begins
   * a step, at the latest when the run is suspended.
   */
  private request(entry: EntryOf<'request'>): void {
    const isInner = entry.kind !== 'input' && this.parentOf(entry) !== undefined
    if (!isInner || !hasRole(this.roles, entry.roles) || this.tools.knows(entry) || this.steps.beginInner())
      this.ask(entry)
    else (this.asked ??= []).push(entry)
  }

  private ask(entry: EntryOf<'request'>): void {
    const isOffered = hasRole(this.roles, entry.roles)
    // `request` sends an unknown call of an earlier step, which adds a part to the message.
    if (isOffered && entry.kind !== 'input' && !this.tools.knows(entry)) this.shown.add(entry.step)
    const parentToolCallId = this.parentOf(entry)
    const parent = parentToolCallId === undefined ? undefined : { parentToolCallId }
    this.tools.request(entry, isOffered, { ...this.above.field(entry.step), ...parent })
  }

  private hear(entry: EntryOf<'message'>): void {
    const turn = turnAt(entry, this.resumedAt)
    if (turn === 'end') return this.finish('stop')
    if (turn === 'begin') return this.join(turnMessageId(this.runId, entry))
    const { id } = entry
    this.sink.send({
      type: 'data-message',
      id,
      data: shownMessage(entry),
      transient: entry.outcome === undefined ? undefined : true,
    })
  }

  private addData({ step, name, id, data, transient }: EntryOf<'data'>): void {
    if (isUnder(step, 'after')) return
    const chunk = { type: `data-${name}`, id, data, transient }
    // Data with an id is replaced by later data with the same id, so a second attempt corrects it.
    if (transient || id !== undefined) this.sink.send(chunk)
    else this.add(step, chunk)
  }

  private end(chunk: UiChunk): void {
    this.state = 'complete'
    this.sink.send(chunk)
    this.sink.end()
  }

  private finish(finishReason: string, usage?: Usage): void {
    this.steps.closeBlocks()
    this.tools.flush()
    this.steps.close()
    this.end({ type: 'finish', finishReason, messageMetadata: { usage, runId: this.runId } })
  }

  // After an error, clients would leave open parts `streaming`.
  private endWithError(text: string): void {
    this.agents.fail()
    this.steps.closeBlocks()
    this.tools.flush()
    this.tools.closeInputs()
    this.end({ type: 'error', errorText: text })
  }

  private endRun({ outcome, output, usage, error }: EntryOf<'run-end'>): void {
    if (outcome === 'completed') {
      if (!this.answering.started && output !== undefined) this.sendOutput(output)
      return this.finish('stop', usage)
    }
    if (outcome !== 'aborted')
      return this.endWithError(error === undefined ? `The run ended: ${outcome}.` : errorText(error))
    this.agents.fail()
    this.steps.closeBlocks()
    // AI SDK 6.0 does not know `reason`.
    this.end({ type: 'abort', reason: this.ui7 ? error?.message : undefined })
  }

  private sendOutput(output: unknown): void {
    this.sink.send({ type: 'data-output', data: output })
    if (typeof output !== 'string') return
    const id = `${this.runId}-output`
    this.sink.send({ type: 'text-start', id })
    this.sink.send({ type: 'text-delta', id, delta: output })
    this.sink.send({ type: 'text-end', id })
  }

  fail(error: ErrorValue): void {
    this.endWithError(errorText(error))
  }
}

type Handled =
  | 'text-delta'
  | 'reasoning-delta'
  | 'tool-input-delta'
  | 'run-start'
  | 'resume'
  | 'step-start'
  | 'prompt'
  | 'step-finish'
  | 'step-reset'
  | 'text-end'
  | 'reasoning-end'
  | 'tool-result'
  | 'request'
  | 'response'
  | 'data'
  | 'message'
  | 'answer-end'
  | 'suspend'
  | 'run-end'
