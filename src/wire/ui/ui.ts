/**
 * AI SDK UI message stream v1 over SSE, as `useChat` of `ai` 6 and 7 reads it. One assistant message per run, with the run's
 * id. Version 6 fails on unknown chunk types and keys, so chunks that only version 7 knows (marked 7) are sent only with
 * `ui7`.
 *
 * | part | chunk |
 * |---|---|
 * | `run-start`, `resume` | `start` with the run's id, at once; a second one with the same id changes nothing |
 * | `step-start`, `step-finish` of a model call of the answer | `start-step`, `finish-step`; calls that overlap (parallel answers) share one step, because the clients look for open parts in the current step only |
 * | `text-*`, `reasoning-*` of the answer | the same; citations on `text-end`: 7. Structured output comes as one text block when it is complete and valid (`held-text.ts`); until then `data-output` shows the partial value |
 * | `tool-input-start`, `-delta`; `-end` | the same; dropped: `tool-call` implies it |
 * | `tool-call` | `tool-input-available`, or `tool-input-error` when the arguments are not valid JSON |
 * | `tool-result` of a call that was sent | `tool-output-available`, `-error` or `-denied`; dropped when handed over: the client provides it |
 * | `request` approval; tool | `tool-approval-request`; dropped: the client answers calls without output. For a step before the answer (a router) the call is sent first, as `tool-input-available` |
 * | `response` to an approval | `tool-approval-response`: 7; dropped for 6, the outcome follows |
 * | `source`, `file` of the answer | `source-url` or `source-document`, `file` with a URL or data URL |
 * | `reasoning-file`, `custom` of the answer | the same: 7; dropped for 6 |
 * | `data` of any step before `after` | `data-<name>` |
 * | `answer-end` | `finish` with usage, `[DONE]`: the terminal frame |
 * | `suspend` (not resumed since) | `finish` `tool-calls`, `[DONE]`: the terminal frame |
 * | `run-end` before `answer-end` | completed: `finish`; if no step answered, preceded by the output as `data-output`, and a string also as text; aborted: `abort`; else: `error`; then `[DONE]` |
 * | `step-reset` of sent output | `reset-step` (7) if it retracts exactly that; else `error`, `[DONE]`: never a second version |
 * | `stream-start`, `response-metadata`, `finish`, `raw`, `error`, `tool-approval-request` of a model | dropped: not for clients; a failure that ends the run is in `run-end`, an approval that can be answered in `request` |
 * | `prompt`, `usage`, `retry`, `warning`, `session-info`, `cli-output` | dropped: they are for monitoring |
 * | everything but `data` outside the answer | dropped |
 */
import type { Entry, EntryOf } from '../../part/entry.ts'
import type { ErrorValue } from '../../part/error.ts'
import { errorText } from '../error-text.ts'
import { isUnder } from '../../part/path.ts'
import type { Usage } from '../../part/usage.ts'
import { createAnswering } from '../answering.ts'
import { deltaEnd, deltaStart, doneFrame, toFileUrl, toFinishReason, toFrame, type UiChunk } from './ui-chunk.ts'
import { createHeldText } from '../held-text.ts'
import { createShown } from './ui-shown.ts'
import { createUiTools } from './ui-tools.ts'
import type { Encoder, EncoderOptions, Wire } from '../wire.ts'

export const uiWire: Wire = {
  name: 'ui',
  contentType: 'text/event-stream',
  headers: { 'x-vercel-ai-ui-message-stream': 'v1' },
  keepAlive: ': keep-alive\n\n',
  createEncoder: createUiEncoder,
}

interface Block {
  kind: 'text' | 'reasoning'
  path: string
  /** The frame of its next delta up to the text. */
  delta: string
}

function createUiEncoder({ resumedAt = 0, ui7 = false }: EncoderOptions = {}): Encoder {
  const answering = createAnswering()
  const tools = createUiTools(ui7)
  const shown = createShown()
  const held = createHeldText()
  /** Open blocks that were sent to the client. */
  const blocks = new Map<string, Block>()
  /** Model calls that run in the client's current step. */
  const calls = new Set<string>()
  let stepOpen = false
  let runId = ''
  let muted = false

  const send = (chunk: UiChunk): string => (muted ? '' : toFrame(chunk))
  const take = (entry: Entry): string => held.take(entry)?.map(advance).join('') ?? advance(entry)
  const add = (path: string, chunk: UiChunk): string => {
    shown.add(path)
    return send(chunk)
  }

  function advance(entry: Entry): string {
    if (encoder.state !== 'open') return ''
    switch (entry.type) {
      case 'text-delta':
      case 'reasoning-delta': {
        const block = blocks.get(entry.id)
        if (block === undefined || muted) return ''
        const { type, id, delta, providerMetadata } = entry
        if (providerMetadata) return send({ type, id, delta, providerMetadata })
        return block.delta + JSON.stringify(delta) + deltaEnd
      }
      case 'tool-input-delta':
        return muted ? '' : tools.inputDelta(entry)
      case 'run-start':
        runId = entry.runId
        return send({ type: 'start', messageId: runId })
      case 'resume':
        return send({ type: 'start', messageId: runId })
      case 'step-start':
        answering.note(entry)
        return entry.stepType === 'model-call' && answering.speaks(entry.step) ? startStep(entry.step) : ''
      case 'step-finish':
        tools.forgetInputs(entry.step)
        calls.delete(entry.step)
        return finishStep()
      case 'step-reset':
        return reset(entry.step)
      case 'text-end':
      case 'reasoning-end':
        return blocks.delete(entry.id) ? endBlock(entry) + finishStep() : ''
      case 'tool-result':
        return tools.result(entry, send)
      case 'request':
        // `request` sends an unknown call of an earlier step, which adds a part to the message.
        if (!tools.knows(entry)) shown.add(entry.step)
        return tools.request(entry, send)
      case 'response':
        return tools.response(entry, send)
      case 'data': {
        if (isUnder(entry.step, 'after')) return ''
        const { name, id, data, transient } = entry
        const chunk = { type: `data-${name}`, id, data, transient }
        // Data with an id is replaced by later data with the same id, so a second attempt corrects it.
        return transient || id !== undefined ? send(chunk) : add(entry.step, chunk)
      }
      case 'answer-end':
        return finish(toFinishReason(entry.finishReason, ui7), entry.usage)
      case 'suspend':
        return entry.seq >= resumedAt ? finish('tool-calls') : ''
      case 'run-end':
        return endRun(entry)
      default:
        return answering.speaks(entry.step) ? advanceAnswer(entry) : ''
    }
  }

  /** Entries that are sent only for steps of the answer. */
  function advanceAnswer(entry: Exclude<Entry, { type: Handled }>): string {
    switch (entry.type) {
      case 'text-start':
      case 'reasoning-start': {
        const { type, id, step, providerMetadata } = entry
        const kind = type === 'text-start' ? 'text' : 'reasoning'
        blocks.set(id, { kind, path: step, delta: deltaStart(`${kind}-delta`, 'id', id, 'delta') })
        return add(step, { type, id, providerMetadata })
      }
      case 'tool-input-start':
        shown.add(entry.step)
        return tools.inputStart(entry, send)
      case 'tool-call':
        shown.add(entry.step)
        return tools.call(entry, send) + finishStep()
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
        if (type === 'reasoning-file' && !ui7) return ''
        return add(step, { type, url: toFileUrl(mediaType, data), mediaType, providerMetadata })
      }
      case 'custom': {
        const { type, step, kind, providerMetadata } = entry
        return ui7 ? add(step, { type, kind, providerMetadata }) : ''
      }
      case 'tool-input-end':
      case 'stream-start':
      case 'response-metadata':
      case 'finish':
      case 'raw':
      case 'error':
      case 'tool-approval-request':
      case 'prompt':
      case 'usage':
      case 'retry':
      case 'warning':
      case 'session-info':
      case 'cli-output':
        return ''
      default:
        entry satisfies never
        return ''
    }
  }

  function startStep(path: string): string {
    calls.add(path)
    const frames = tools.flush(send)
    // After a step boundary the client would add the rest of an open input as a second part.
    if (stepOpen || tools.pending() > 0) return frames
    stepOpen = true
    shown.step()
    tools.newStep()
    return frames + send({ type: 'start-step' })
  }

  // Version 6 drops open text blocks at `finish-step`, so it waits until all blocks are closed.
  function finishStep(): string {
    if (!stepOpen || calls.size > 0 || blocks.size > 0 || tools.pending() > 0) return ''
    stepOpen = false
    return send({ type: 'finish-step' })
  }

  function endBlock(entry: EntryOf<'text-end'> | EntryOf<'reasoning-end'>): string {
    const { type, id, providerMetadata } = entry
    const citations = ui7 && entry.type === 'text-end' ? entry.citations : undefined
    return send({ type, id, citations, providerMetadata })
  }

  function reset(path: string): string {
    const outside = tools.pendingOutside(path) || [...blocks.values()].some((block) => !isUnder(block.path, path))
    const retraction = shown.retract(path)
    if (retraction !== 'nothing' && (retraction === 'impossible' || outside || !ui7)) {
      return endWithError('The server was interrupted and had to begin this answer again. Load the conversation again.')
    }
    for (const [id, block] of blocks) if (isUnder(block.path, path)) blocks.delete(id)
    for (const call of calls) if (isUnder(call, path)) calls.delete(call)
    tools.forget(path)
    // The step stays open: `reset-step` keeps its boundary for the next attempt.
    return retraction === 'step' ? send({ type: 'reset-step' }) : ''
  }

  function closeBlocks(): string {
    let frames = ''
    for (const [id, { kind }] of blocks) frames += send({ type: `${kind}-end`, id })
    blocks.clear()
    return frames
  }

  function end(frames: string): string {
    encoder.state = 'complete'
    return muted ? '' : frames + doneFrame
  }

  function finish(finishReason: string, usage?: Usage): string {
    const frames = closeBlocks() + tools.flush(send) + (stepOpen ? send({ type: 'finish-step' }) : '')
    return end(frames + send({ type: 'finish', finishReason, messageMetadata: { usage, runId } }))
  }

  // After an error, clients would leave open parts `streaming`.
  function endWithError(text: string): string {
    const frames = closeBlocks() + tools.flush(send) + tools.closeInputs(send)
    return end(frames + send({ type: 'error', errorText: text }))
  }

  function endRun({ outcome, output, usage, error }: EntryOf<'run-end'>): string {
    if (outcome === 'completed') {
      const frames = answering.started || output === undefined ? '' : sendOutput(output)
      return frames + finish('stop', usage)
    }
    if (outcome !== 'aborted')
      return endWithError(error === undefined ? `The run ended: ${outcome}.` : errorText(error))
    // AI SDK 6.0 does not know `reason`.
    const reason = ui7 ? error?.message : undefined
    return end(closeBlocks() + send({ type: 'abort', reason }))
  }

  function sendOutput(output: unknown): string {
    const frames = send({ type: 'data-output', data: output })
    if (typeof output !== 'string') return frames
    const id = `${runId}-output`
    return (
      frames +
      send({ type: 'text-start', id }) +
      send({ type: 'text-delta', id, delta: output }) +
      send({ type: 'text-end', id })
    )
  }

  const encoder = {
    state: 'open' as Encoder['state'],
    encode: take,
    skip(entry: Entry) {
      muted = true
      take(entry)
      muted = false
    },
    fail: (error: ErrorValue) => (encoder.state === 'open' ? endWithError(errorText(error)) : ''),
  }
  return encoder
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
  | 'answer-end'
  | 'suspend'
  | 'run-end'
