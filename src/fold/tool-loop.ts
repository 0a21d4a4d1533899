/**
 * A tool loop as a fold: the output of each model call under a step, and the outcomes of its tool calls.
 *
 * `llm` decides its next action from this alone, so continuing after a client's reply, after a crash and after a tool is the same code. The
 * messages of a conversation are derived from it as well.
 */
import type { Entry, EntryOf } from '../part/entry.ts'
import type { AssistantContent, ProviderOptions, UserMessage } from '../part/message.ts'
import { parseJson } from '../part/json.ts'
import { parentPath } from '../part/path.ts'
import { kindOf } from '../part/step-kind.ts'
import { type ModelToolCall, type ModelReply, badOutput, note, toResultContent } from './reply-messages.ts'
import { toUsage } from '../part/usage.ts'
import { LazyMap } from './lazy-map.ts'
import { handleOf } from './result-handle.ts'

export interface ToolLoop {
  readonly root: string
  readonly list: ModelReply[]
  /** The first prompt, with which the loop started. */
  readonly base: EntryOf<'prompt'> | undefined
  /** Messages that came before its first model call. They are told behind those of the first prompt. */
  readonly early: readonly UserMessage[]
  /** The handles of results that its model was told shortened. */
  readonly shortened: ReadonlySet<string>
  /** The last summary, and how many replies there were when it was made. */
  readonly summary: { entry: EntryOf<'summarized'>; replies: number } | undefined
  /** A step that makes a summary, whose `summarized` has not come. */
  readonly summing: { path: string; covers: number } | undefined
  /** Number of the last child step of the root; the next one gets this plus one. A reset child's number is reused. */
  readonly children: number
  apply(entry: Entry): void
}

const none: readonly UserMessage[] = []
const noHandles: ReadonlySet<string> = new Set()

type TextBlock = { type: 'text' | 'reasoning'; text: string; providerOptions?: ProviderOptions }

/** `mark`: that of its run, see `markOfRun`. */
export function createToolLoop(root: string, mark = ''): ToolLoop {
  return new Loop(root, mark)
}

/** A class, not closures: one for each open stream (decisions/0028). */
class Loop implements ToolLoop {
  readonly root: string
  readonly list: ModelReply[] = []
  base: EntryOf<'prompt'> | undefined = undefined
  early: readonly UserMessage[] = none
  shortened: ReadonlySet<string> = noHandles
  summary: ToolLoop['summary'] = undefined
  summing: ToolLoop['summing'] = undefined
  children = 0
  readonly #mark: string
  readonly #blocks = new Map<string, { block: TextBlock; add(delta: string): void }>()
  // Maps, because a message may hold thousands of calls. If calls share an id, the newest reply's counts, and within a reply the first.
  readonly #callsById = new LazyMap<string, { call: ModelToolCall; reply: ModelReply }>()
  readonly #callsByRequest = new LazyMap<string, ModelToolCall>()
  /** The newest reply at each path. */
  readonly #replies = new LazyMap<string, ModelReply>()

  constructor(root: string, mark: string) {
    this.root = root
    this.#mark = mark
  }

  apply(entry: Entry): void {
    const { step } = entry
    switch (entry.type) {
      case 'text-delta':
      case 'reasoning-delta': {
        const open = this.#blocks.get(entry.id)
        open?.add(entry.delta)
        note(open?.block, entry.providerMetadata)
        break
      }
      case 'text-start':
      case 'reasoning-start': {
        const block: TextBlock = { type: entry.type === 'text-start' ? 'text' : 'reasoning', text: '' }
        note(block, entry.providerMetadata)
        this.#blocks.set(entry.id, { block, add: growing(block) })
        // A stream that a step returned is an answer without a model call: the step itself is the only reply.
        if (step === this.root && this.#replyAt(this.root) === undefined) this.#add(this.root)
        this.#replyAt(step)?.content.push(block)
        break
      }
      case 'text-end':
      case 'reasoning-end':
        note(this.#blocks.get(entry.id)?.block, entry.providerMetadata)
        this.#blocks.delete(entry.id)
        break
      case 'step-start':
        if (parentPath(step) !== this.root) break
        // A second attempt has the same number.
        this.children = Math.max(this.children, numberOf(step))
        if (kindOf(entry) === 'summary') {
          this.summing = { path: step, covers: entry.covers ?? 0 }
          break
        }
        // The calls of a script are those of one reply, without a model.
        if (kindOf(entry) === 'model-call' || entry.script !== undefined) this.#add(step)
        else if (entry.toolCallId !== undefined) {
          const call = this.#callOf(entry.toolCallId)
          if (call) call[placeOf(entry)] = step
          if (call && entry.handoff === true) call.handoff = true
        }
        break
      case 'step-finish': {
        const reply = this.#replyAt(step)
        if (!reply) break
        reply.closed = true
        if (entry.error) reply.error = entry.error
        break
      }
      case 'step-reset': {
        const at = this.list.findIndex((reply) => reply.path === step)
        if (at >= 0) {
          const [{ said = none }] = this.list.splice(at, 1) as [ModelReply]
          const before = this.list[at - 1]
          if (said.length > 0 && step !== this.root) {
            if (before === undefined) this.early = [...this.early, ...said]
            else before.said = [...(before.said ?? []), ...said]
          }
          if (step !== this.root) this.children = numberOf(step) - 1
        }
        for (const { calls, content } of this.list) {
          for (const call of calls) {
            if (call.startedAt === step) delete call.startedAt
            // Results of provider-executed calls stay valid, whichever reply they arrived with.
            if (call.result?.step === step) content.push(toResultContent(call.result))
          }
        }
        if (step === this.root) this.#startAnew()
        if (this.summing?.path === step) this.summing = undefined
        this.#reindex()
        if (step === this.root || this.base?.step === step) this.base = undefined
        break
      }
      case 'prompt': {
        this.base ??= entry
        this.#shorten(entry.shortened)
        const reply = this.#replyAt(step)
        if (reply) reply.model = entry.model
        break
      }
      case 'message':
        if (step === this.root && entry.outcome === undefined) this.#hear(entry)
        break
      case 'summarized':
        if (step !== this.root) break
        this.summary = { entry, replies: this.list.length }
        this.summing = undefined
        this.#shorten(entry.shortened)
        break
      case 'retry': {
        const reply = this.#replyAt(step)
        if (reply && entry.model !== undefined) reply.model = entry.model
        if (reply && entry.error.code === badOutput) reply.rejected = entry.error.message
        // An answer that is requested again does not count.
        else if (reply) delete reply.finish
        break
      }
      case 'usage': {
        const reply = this.#replyAt(step)
        if (reply) reply.usage = entry.usage
        break
      }
      case 'tool-call': {
        const reply = this.#replyAt(step)
        if (!reply) break
        const { toolCallId, toolName, input, providerExecuted = false, providerMetadata, providerCallId } = entry
        const call: ModelToolCall = { toolCallId, toolName, input, providerExecuted }
        if (providerCallId !== undefined) call.providerCallId = providerCallId
        reply.calls.push(call)
        this.#index(reply, call)
        const content: AssistantContent = { type: 'tool-call', toolCallId, toolName, input: parseInput(input) }
        if (providerExecuted) content.providerExecuted = true
        note(content, providerMetadata)
        reply.content.push(content)
        break
      }
      case 'tool-result': {
        const call = this.#callOf(entry.toolCallId)
        if (entry.preliminary === true || !call) break
        call.result = entry
        call.handle = handleOf(entry.seq, this.#mark)
        if (call.providerExecuted) this.#replyAt(step)?.content.push(toResultContent(entry))
        break
      }
      case 'request': {
        const call = entry.toolCallId === undefined ? undefined : this.#callOf(entry.toolCallId)
        if (!call) break
        if (call.request) this.#callsByRequest.delete(call.request.requestId)
        call.request = entry
        delete call.response
        this.#callsByRequest.set(entry.requestId, call)
        break
      }
      case 'response': {
        const call = this.#callsByRequest.get(entry.requestId)
        if (!call) break
        call.response = entry
        const { answer } = entry
        if (answer?.kind === 'approval' && answer.input !== undefined) call.edited = JSON.stringify(answer.input)
        break
      }
      case 'file': {
        const { mediaType, data, providerMetadata } = entry
        const content: AssistantContent = { type: 'file', mediaType, data: typeof data === 'string' ? data : data.url }
        note(content, providerMetadata)
        this.#replyAt(step)?.content.push(content)
        break
      }
      case 'custom': {
        const content: AssistantContent = { type: 'custom', kind: entry.kind as `${string}.${string}` }
        note(content, entry.providerMetadata)
        this.#replyAt(step)?.content.push(content)
        break
      }
      case 'finish': {
        const reply = this.#replyAt(step)
        if (!reply) break
        reply.finish = { reason: entry.finishReason }
        const usage = toUsage(entry.usage)
        if (usage) reply.finish.usage = usage
        if (entry.providerMetadata) reply.finish.providerMetadata = entry.providerMetadata
        break
      }
      default:
    }
  }

  #hear({ id, content }: EntryOf<'message'>): void {
    const message: UserMessage = { role: 'user', id, content }
    const last = this.list.at(-1)
    if (last === undefined) this.early = [...this.early, message]
    else (last.said ??= []).push(message)
  }

  /** What was said to an attempt that does not count was said all the same. */
  #startAnew(): void {
    const said = this.list.flatMap((reply) => reply.said ?? [])
    if (said.length > 0) this.early = [...this.early, ...said]
    this.list.length = 0
    this.shortened = noHandles
    this.summary = undefined
    this.summing = undefined
  }

  #shorten(handles: readonly string[] | undefined): void {
    if (handles !== undefined) this.shortened = new Set([...this.shortened, ...handles])
  }

  #replyAt(path: string): ModelReply | undefined {
    return this.#replies.get(path)
  }

  #add(path: string): void {
    const reply = newReply(path)
    this.list.push(reply)
    this.#replies.set(path, reply)
  }

  #callOf(id: string): ModelToolCall | undefined {
    return this.#callsById.get(id)?.call
  }

  #index(reply: ModelReply, call: ModelToolCall): void {
    if (this.#callsById.get(call.toolCallId)?.reply !== reply) this.#callsById.set(call.toolCallId, { call, reply })
  }

  #reindex(): void {
    this.#callsById.clear()
    this.#callsByRequest.clear()
    this.#replies.clear()
    for (const reply of this.list) {
      this.#replies.set(reply.path, reply)
      for (const call of reply.calls) {
        this.#index(reply, call)
        if (call.request) this.#callsByRequest.set(call.request.requestId, call)
      }
    }
  }
}

function placeOf(start: EntryOf<'step-start'>): 'startedAt' | 'approvalAt' | 'askedAt' {
  const kind = kindOf(start)
  if (kind === 'tool-call') return 'startedAt'
  return kind === 'approval' ? 'approvalAt' : 'askedAt'
}

/** `main/answer/3` → 3. */
function numberOf(path: string): number {
  return Number(path.slice(path.lastIndexOf('/') + 1))
}

function newReply(path: string): ModelReply {
  return { path, content: [], calls: [], closed: false }
}

/** Parses a model's arguments. Returns the text itself if it is not JSON, and an empty object if it is blank. */
export function parseInput(text: string): unknown {
  if (text.trim() === '') return {}
  try {
    return parseJson(text)
  } catch {
    return text
  }
}

/**
 * Returns a function that appends to a text. The text of a long answer would be a chain of as many strings as it has deltas, which the
 * garbage collector copies again and again: so it is joined at intervals that grow with its length.
 */
export function growing(target: { text: string }): (more: string) => void {
  let pieces: string[] = []
  return (more) => {
    if (pieces.length === 0) pieces.push(target.text)
    const own = ownCopy(more)
    pieces.push(own)
    target.text += own
    if (pieces.length < 64 + target.text.length / 64) return
    target.text = pieces.join('')
    pieces = []
  }
}

/** From this length on, V8 lets a substring refer to the whole string. */
const shares = 13

/** A copy that does not keep the string alive that it was cut from, such as an event of a model server. */
function ownCopy(piece: string): string {
  return piece.length < shares ? piece : [piece.slice(0, 1), piece.slice(1)].join('')
}
