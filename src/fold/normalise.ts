/**
 * Makes what a source says legal, whatever it says: a model, a stream that a step returned, the transcript of a CLI agent. It knows
 * no run, only where its parts go and which tool calls are open there. One normaliser reads one answer of a model, or one transcript.
 *
 * - Blocks get ids that are unique in the run. A delta without a start begins its block; what is open at the end is closed.
 * - A tool call follows its input, and its result follows the call. A result that comes first waits for its call. If the call never
 *   comes, a transcript gets one at the end: the result says that the tool ran. A model's answer may begin with results of calls that
 *   an earlier request made; they are dropped.
 * - Besides, only these are dropped: repeated starts, ends and calls, results of calls that have one, and arguments that come
 *   without their start or behind their call, which has them all.
 * - Leading `custom` parts wait for the first content, so that a call that fails before has said nothing and can be made again.
 */
import { isBareDelta } from '../part/entry.ts'
import type { ModelPart } from '../part/model-part.ts'
import type { Part, SourcePart } from '../part/part.ts'
import { parentPath } from '../part/path.ts'
import type { CallIds } from './call-ids.ts'
import { callKey, type OpenItems } from './open-items.ts'
import { LateMap } from './late-map.ts'

export interface NormaliserContext {
  /** The step that the parts belong to. */
  path: string
  /** Receives the legal parts. */
  emit(path: string, part: Part): void
  /** A block id that is unique in the run. */
  newId(): string
  /** The tool calls of the run. Both must have applied every part by the time that `emit` returns. */
  open: Pick<OpenItems, 'calls'>
  callIds: CallIds
  /** The source is a whole transcript, not one answer of a model. */
  isTranscript?: boolean
}

export interface Normaliser {
  /** Whether the source has said anything that its reader may have seen. */
  readonly hasContent: boolean
  part(part: SourcePart): void
  /** The source has said everything: emits what waits and closes what is open. Calls without a result stay open. */
  end(): void
}

type PartOf<T extends ModelPart['type']> = Extract<ModelPart, { type: T }>
type BlockType = 'text' | 'reasoning'

export function createNormaliser(context: NormaliserContext): Normaliser {
  const { path, emit, newId, open, callIds, isTranscript } = context
  const loop = parentPath(path)
  /** Open blocks: the source's id → the id in the run. */
  const texts = new LateMap<string, string>()
  const reasonings = new LateMap<string, string>()
  /** Inputs whose call has not come yet, and whether they are still open. */
  const inputs = new LateMap<string, { isOpen: boolean }>()
  /** Results that came before their call, by the source's id. */
  const early = new LateMap<string, PartOf<'tool-result'>[]>()
  const held: PartOf<'custom'>[] = []
  const normaliser = { hasContent: false, part, end }

  const isCalled = (id: string) => open.calls.has(callKey(path, id))

  function part(given: SourcePart): void {
    if (!isContent(given)) {
      if (given.type === 'finish') end()
      emit(path, given)
      return
    }
    if (given.type === 'custom' && !normaliser.hasContent) {
      held.push(given)
      return
    }
    normaliser.hasContent = true
    if (held.length > 0) release()
    if (given.type === 'tool-result') result(given)
    else content(callIds.toLog(loop, given))
  }

  function content(part: Exclude<ContentPart, PartOf<'tool-result'>>): void {
    switch (part.type) {
      case 'text-delta':
        delta(part, texts.get(part.id) ?? startBlock('text', texts, part.id))
        return
      case 'reasoning-delta':
        delta(part, reasonings.get(part.id) ?? startBlock('reasoning', reasonings, part.id))
        return
      case 'text-start':
        closeBlock('text', texts, part.id)
        emit(path, { ...part, id: nameBlock(texts, part.id) })
        return
      case 'reasoning-start':
        closeBlock('reasoning', reasonings, part.id)
        emit(path, { ...part, id: nameBlock(reasonings, part.id) })
        return
      case 'text-end':
      case 'reasoning-end': {
        const blocks = part.type === 'text-end' ? texts : reasonings
        const id = blocks.get(part.id)
        if (id === undefined) return
        blocks.delete(part.id)
        emit(path, { ...part, id })
        return
      }
      case 'tool-input-start':
        if (inputs.get(part.id)?.isOpen === true || isCalled(part.id)) return
        inputs.set(part.id, { isOpen: true })
        emit(path, part)
        return
      case 'tool-input-delta':
        if (inputs.get(part.id)?.isOpen === true) emit(path, part)
        return
      case 'tool-input-end':
        closeInput(part)
        return
      case 'tool-call':
        call(part)
        return
      default:
        emit(path, part)
    }
  }

  function delta(part: PartOf<'text-delta' | 'reasoning-delta'>, id: string): void {
    emit(path, isBareDelta(part) ? { type: part.type, id, delta: part.delta } : { ...part, id })
  }

  function nameBlock(blocks: LateMap<string, string>, id: string): string {
    const name = newId()
    blocks.set(id, name)
    return name
  }

  function startBlock(type: BlockType, blocks: LateMap<string, string>, sourceId: string): string {
    const id = nameBlock(blocks, sourceId)
    emit(path, { type: `${type}-start`, id })
    return id
  }

  function closeBlock(type: BlockType, blocks: LateMap<string, string>, sourceId: string): void {
    const id = blocks.get(sourceId)
    if (id !== undefined) emit(path, { type: `${type}-end`, id })
    blocks.delete(sourceId)
  }

  function closeInput(end: PartOf<'tool-input-end'>): void {
    const input = inputs.get(end.id)
    if (input?.isOpen !== true) return
    input.isOpen = false
    emit(path, end)
  }

  function call(part: PartOf<'tool-call'>): void {
    const { toolCallId, providerCallId = toolCallId } = part
    closeInput({ type: 'tool-input-end', id: toolCallId })
    inputs.delete(toolCallId)
    if (isCalled(toolCallId)) return
    emit(path, part)
    const waiting = early.get(providerCallId)
    early.delete(providerCallId)
    waiting?.forEach(result)
  }

  function result(given: PartOf<'tool-result'>): void {
    const part = callIds.toLog(loop, given)
    if (isCalled(part.toolCallId)) {
      emit(path, part)
      return
    }
    // The result of a call that has one.
    if (callIds.hasCall(loop, given.toolCallId) && !inputs.has(part.toolCallId)) return
    const waiting = early.get(given.toolCallId)
    if (waiting === undefined) early.set(given.toolCallId, [given])
    else waiting.push(given)
  }

  function release(): void {
    for (const part of held.splice(0)) emit(path, part)
  }

  function end(): void {
    release()
    for (const id of texts.keys()) closeBlock('text', texts, id)
    for (const id of reasonings.keys()) closeBlock('reasoning', reasonings, id)
    for (const id of inputs.keys()) closeInput({ type: 'tool-input-end', id })
    if (isTranscript !== true) return
    // Collected first: a result that must wait again must not keep this from ending.
    const calls = Array.from(early, ([toolCallId, [first]]) => ({ toolCallId, toolName: first!.toolName }))
    for (const made of calls) {
      content(callIds.toLog(loop, { type: 'tool-call', ...made, input: '{}', providerExecuted: true }))
    }
    early.clear()
  }

  return normaliser
}

type Plain =
  | 'stream-start'
  | 'response-metadata'
  | 'raw'
  | 'finish'
  | 'error'
  | 'usage'
  | 'warning'
  | 'session-info'
  | 'cli-output'

/** What a source says, as opposed to what it tells about itself. */
export type ContentPart = Exclude<SourcePart, { type: Plain }>

export function isContent(part: SourcePart): part is ContentPart {
  switch (part.type) {
    case 'stream-start':
    case 'response-metadata':
    case 'raw':
    case 'finish':
    case 'error':
    case 'usage':
    case 'warning':
    case 'session-info':
    case 'cli-output':
      return false
    default:
      return true
  }
}
