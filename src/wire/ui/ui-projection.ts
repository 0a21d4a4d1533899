/** A run's entries as chunks of the AI SDK UI message stream. The mapping is in `ui.ts`. */
import type { Entry, EntryOf } from '../../part/entry.ts'
import type { ErrorValue } from '../../part/error.ts'
import { isUnder } from '../../part/path.ts'
import type { Usage } from '../../part/usage.ts'
import { kindOf } from '../../part/step-kind.ts'
import { createAnswering } from '../../fold/answering.ts'
import { begunAgain, errorText } from '../error-text.ts'
import { createHeldText } from '../held-text.ts'
import type { Projection, Sink, WireContext } from '../wire.ts'
import { toFileUrl, toFinishReason, type UiChunk, type UiOptions } from './ui-chunk.ts'
import { createShown } from './ui-shown.ts'
import { createUiSteps } from './ui-steps.ts'
import { createUiTools } from './ui-tools.ts'

export function projectUi(
  sink: Sink<UiChunk>,
  { resumedAt = 0, joinedAt = 0 }: WireContext,
  { ui7 = false }: Partial<UiOptions>,
): Projection {
  const answering = createAnswering()
  const tools = createUiTools(sink, ui7)
  const shown = createShown()
  const steps = createUiSteps({ sink, tools, shown, ui7 })
  const held = createHeldText()
  let runId = ''
  let joins = joinedAt

  function take(entry: Entry): void {
    if (joins !== 0 && entry.seq >= joins) {
      joins = 0
      if (entry.type !== 'resume') join()
    }
    const due = held.take(entry)
    if (due === undefined) apply(entry)
    else for (const each of due) apply(each)
  }

  /** Begins the message and what is open in it: clients fail on a delta without its start. */
  function join(): void {
    sink.send({ type: 'start', messageId: runId })
    steps.reopen()
    tools.reopen()
  }

  function add(path: string, chunk: UiChunk): void {
    shown.add(path)
    sink.send(chunk)
  }

  function apply(entry: Entry): void {
    if (projection.state !== 'open') return
    switch (entry.type) {
      case 'text-delta':
      case 'reasoning-delta':
        return steps.delta(entry)
      case 'tool-input-delta':
        return tools.inputDelta(entry)
      case 'run-start':
        runId = entry.runId
        return sink.send({ type: 'start', messageId: runId })
      case 'resume':
        return sink.send({ type: 'start', messageId: runId })
      case 'step-start':
        answering.note(entry)
        if (kindOf(entry) === 'model-call' && answering.has(entry.step)) steps.startCall(entry.step)
        return
      case 'step-finish':
        tools.forgetInputs(entry.step)
        return steps.finishCall(entry.step)
      case 'step-reset':
        if (!steps.retract(entry.step)) endWithError(begunAgain)
        return
      case 'text-end':
      case 'reasoning-end':
        return steps.endBlock(entry)
      case 'tool-result':
        return tools.result(entry)
      case 'prompt':
        return tools.prompt(entry)
      case 'request':
        // `request` sends an unknown call of an earlier step, which adds a part to the message.
        if (entry.kind !== 'input' && !tools.knows(entry)) shown.add(entry.step)
        return tools.request(entry)
      case 'response':
        return tools.response(entry)
      case 'data':
        return addData(entry)
      case 'answer-end':
        return finish(toFinishReason(entry.finishReason, ui7), entry.usage)
      case 'suspend':
        if (entry.seq >= resumedAt) finish('tool-calls')
        return
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
        return steps.startBlock('text', entry)
      case 'reasoning-start':
        return steps.startBlock('reasoning', entry)
      case 'tool-input-start':
        shown.add(entry.step)
        return tools.inputStart(entry)
      case 'tool-call':
        shown.add(entry.step)
        tools.call(entry)
        return steps.settle()
      case 'source': {
        const { step, id: sourceId, title, providerMetadata } = entry
        if (entry.sourceType === 'url') {
          return add(step, { type: 'source-url', sourceId, url: entry.url, title, providerMetadata })
        }
        const { mediaType, filename } = entry
        return add(step, { type: 'source-document', sourceId, mediaType, title, filename, providerMetadata })
      }
      case 'file':
      case 'reasoning-file': {
        const { type, step, mediaType, data, providerMetadata } = entry
        if (type === 'reasoning-file' && !ui7) return
        return add(step, { type, url: toFileUrl(mediaType, data), mediaType, providerMetadata })
      }
      case 'custom': {
        const { type, step, kind, providerMetadata } = entry
        if (ui7) add(step, { type, kind, providerMetadata })
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
      case 'cli-output':
        return
      default:
        entry satisfies never
    }
  }

  function addData({ step, name, id, data, transient }: EntryOf<'data'>): void {
    if (isUnder(step, 'after')) return
    const chunk = { type: `data-${name}`, id, data, transient }
    // Data with an id is replaced by later data with the same id, so a second attempt corrects it.
    if (transient || id !== undefined) sink.send(chunk)
    else add(step, chunk)
  }

  function end(chunk: UiChunk): void {
    projection.state = 'complete'
    sink.send(chunk)
    sink.end()
  }

  function finish(finishReason: string, usage?: Usage): void {
    steps.closeBlocks()
    tools.flush()
    steps.close()
    end({ type: 'finish', finishReason, messageMetadata: { usage, runId } })
  }

  // After an error, clients would leave open parts `streaming`.
  function endWithError(text: string): void {
    steps.closeBlocks()
    tools.flush()
    tools.closeInputs()
    end({ type: 'error', errorText: text })
  }

  function endRun({ outcome, output, usage, error }: EntryOf<'run-end'>): void {
    if (outcome === 'completed') {
      if (!answering.started && output !== undefined) sendOutput(output)
      return finish('stop', usage)
    }
    if (outcome !== 'aborted')
      return endWithError(error === undefined ? `The run ended: ${outcome}.` : errorText(error))
    steps.closeBlocks()
    // AI SDK 6.0 does not know `reason`.
    end({ type: 'abort', reason: ui7 ? error?.message : undefined })
  }

  function sendOutput(output: unknown): void {
    sink.send({ type: 'data-output', data: output })
    if (typeof output !== 'string') return
    const id = `${runId}-output`
    sink.send({ type: 'text-start', id })
    sink.send({ type: 'text-delta', id, delta: output })
    sink.send({ type: 'text-end', id })
  }

  const projection = {
    state: 'open' as Projection['state'],
    apply: take,
    fail: (error: ErrorValue) => endWithError(errorText(error)),
  }
  return projection
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
  | 'answer-end'
  | 'suspend'
  | 'run-end'
