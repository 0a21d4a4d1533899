/**
 * Makes the parts of any source legal: of a model, a stream that a step returned, or the transcript of a CLI agent. It has no access to the run,
 * only to its target and the tool calls that are open there. One normaliser reads one answer of a model, or one transcript.
 *
 * - Blocks get ids that are unique in the run. A delta without a start begins its block; open blocks are closed at the end.
 * - A tool call follows its input, and its result follows the call. An early result is held until its call. If the call never comes, a transcript
 *   gets one at the end: the result says that the tool ran. A model's answer may begin with results of calls that an earlier request made; they are
 *   dropped.
 * - Also dropped: repeated starts, ends and calls, second results of a call, and argument deltas without a start or after their call, which has
 *   all arguments.
 * - Leading `custom` parts are held until the first content, so that a call that fails before it has emitted nothing and can be retried.
 */
import { isBareDelta } from '../part/entry.ts'
import type { ModelPart } from '../part/model-part.ts'
import type { Part, SourcePart } from '../part/part.ts'
import { parentPath } from '../part/path.ts'
import type { CallIds } from './call-ids.ts'
import { callKey, type OpenItems } from './open-items.ts'
import { LazyMap } from './lazy-map.ts'

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
  /** Whether the source has produced content that a reader may have seen. */
  readonly hasContent: boolean
  part(part: SourcePart): void
  /** Call at the end of the source. Emits held parts and closes open blocks. Calls without a result stay open. */
  end(): void
}

type PartOf<T extends ModelPart['type']> = Extract<ModelPart, { type: T }>
type BlockType = 'text' | 'reasoning'

export function createNormaliser(context: NormaliserContext): Normaliser {
  return new SourceNormaliser(context)
}

/** A class, not closures: one for each open stream (decisions/0028). */
class SourceNormaliser implements Normaliser {
  hasContent = false
  readonly #context: NormaliserContext
  readonly #loop: string
  /** Open blocks: the source's id → the id in the run. */
  readonly #texts = new LazyMap<string, string>()
  readonly #reasonings = new LazyMap<string, string>()
  /** Inputs whose call has not come yet, and whether they are still open. */
  readonly #inputs = new LazyMap<string, { isOpen: boolean }>()
  /** Results that came before their call, by the source's id. */
  readonly #early = new LazyMap<string, PartOf<'tool-result'>[]>()
  #held: PartOf<'custom'>[] | undefined = undefined

  constructor(context: NormaliserContext) {
    this.#context = context
    this.#loop = parentPath(context.path)
  }

  #emit(part: Part): void {
    this.#context.emit(this.#context.path, part)
  }

  #isCalled(id: string): boolean {
    return this.#context.open.calls.has(callKey(this.#context.path, id))
  }

  part(given: SourcePart): void {
    if (!isContent(given)) {
      if (given.type === 'finish') this.end()
      this.#emit(given)
      return
    }
    if (given.type === 'custom' && !this.hasContent) {
      this.#held ??= []
      this.#held.push(given)
      return
    }
    this.hasContent = true
    if (this.#held !== undefined) this.#release()
    if (given.type === 'tool-result') this.#result(given)
    else this.#content(this.#context.callIds.toLog(this.#loop, given))
  }

  #content(part: Exclude<ContentPart, PartOf<'tool-result'>>): void {
    switch (part.type) {
      case 'text-delta':
        this.#delta(part, this.#texts.get(part.id) ?? this.#startBlock('text', this.#texts, part.id))
        return
      case 'reasoning-delta':
        this.#delta(part, this.#reasonings.get(part.id) ?? this.#startBlock('reasoning', this.#reasonings, part.id))
        return
      case 'text-start':
        this.#closeBlock('text', this.#texts, part.id)
        this.#emit({ ...part, id: this.#nameBlock(this.#texts, part.id) })
        return
      case 'reasoning-start':
        this.#closeBlock('reasoning', this.#reasonings, part.id)
        this.#emit({ ...part, id: this.#nameBlock(this.#reasonings, part.id) })
        return
      case 'text-end':
      case 'reasoning-end': {
        const blocks = part.type === 'text-end' ? this.#texts : this.#reasonings
        const id = blocks.get(part.id)
        if (id === undefined) return
        blocks.delete(part.id)
        this.#emit({ ...part, id })
        return
      }
      case 'tool-input-start':
        if (this.#inputs.get(part.id)?.isOpen === true || this.#isCalled(part.id)) return
        this.#inputs.set(part.id, { isOpen: true })
        this.#emit(part)
        return
      case 'tool-input-delta':
        if (this.#inputs.get(part.id)?.isOpen === true) this.#emit(part)
        return
      case 'tool-input-end':
        this.#closeInput(part)
        return
      case 'tool-call':
        this.#call(part)
        return
      default:
        this.#emit(part)
    }
  }

  #delta(part: PartOf<'text-delta' | 'reasoning-delta'>, id: string): void {
    this.#emit(isBareDelta(part) ? { type: part.type, id, delta: part.delta } : { ...part, id })
  }

  #nameBlock(blocks: LazyMap<string, string>, id: string): string {
    const name = this.#context.newId()
    blocks.set(id, name)
    return name
  }

  #startBlock(type: BlockType, blocks: LazyMap<string, string>, sourceId: string): string {
    const id = this.#nameBlock(blocks, sourceId)
    this.#emit({ type: `${type}-start`, id })
    return id
  }

  #closeBlock(type: BlockType, blocks: LazyMap<string, string>, sourceId: string): void {
    const id = blocks.get(sourceId)
    if (id !== undefined) this.#emit({ type: `${type}-end`, id })
    blocks.delete(sourceId)
  }

  #closeInput(end: PartOf<'tool-input-end'>): void {
    const input = this.#inputs.get(end.id)
    if (input?.isOpen !== true) return
    input.isOpen = false
    this.#emit(end)
  }

  #call(part: PartOf<'tool-call'>): void {
    const { toolCallId, providerCallId = toolCallId } = part
    this.#closeInput({ type: 'tool-input-end', id: toolCallId })
    this.#inputs.delete(toolCallId)
    if (this.#isCalled(toolCallId)) return
    this.#emit(part)
    const waiting = this.#early.get(providerCallId)
    this.#early.delete(providerCallId)
    waiting?.forEach((result) => this.#result(result))
  }

  #result(given: PartOf<'tool-result'>): void {
    const part = this.#context.callIds.toLog(this.#loop, given)
    if (this.#isCalled(part.toolCallId)) {
      this.#emit(part)
      return
    }
    // A second result of the same call.
    if (this.#context.callIds.hasCall(this.#loop, given.toolCallId) && !this.#inputs.has(part.toolCallId)) return
    const waiting = this.#early.get(given.toolCallId)
    if (waiting === undefined) this.#early.set(given.toolCallId, [given])
    else waiting.push(given)
  }

  #release(): void {
    const held = this.#held
    this.#held = undefined
    for (const part of held ?? []) this.#emit(part)
  }

  end(): void {
    this.#release()
    for (const id of this.#texts.keys()) this.#closeBlock('text', this.#texts, id)
    for (const id of this.#reasonings.keys()) this.#closeBlock('reasoning', this.#reasonings, id)
    for (const id of this.#inputs.keys()) this.#closeInput({ type: 'tool-input-end', id })
    if (!this.#context.isTranscript) return
    // Collected first: a result that is held again must not make this loop endless.
    const calls = Array.from(this.#early, ([toolCallId, [first]]) => ({ toolCallId, toolName: first!.toolName }))
    for (const made of calls) {
      const call = { type: 'tool-call', ...made, input: '{}', providerExecuted: true } as const
      this.#content(this.#context.callIds.toLog(this.#loop, call))
    }
    this.#early.clear()
  }
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

/** Parts with content, as opposed to metadata. */
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
