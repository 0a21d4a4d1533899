/** Converts the replies of a tool loop to messages: for the next model call, and for the conversation. */
import type { EntryOf } from '../part/entry.ts'
import type {
  AssistantContent,
  Message,
  ProviderOptions,
  ToolOutput,
  ToolResultContent,
  UserMessage,
} from '../part/message.ts'
import type { ProviderMetadata, FinishReason } from '../part/model-part.ts'
import type { ErrorValue } from '../part/error.ts'
import type { Usage } from '../part/usage.ts'
import { smallResult } from './result-handle.ts'
import { resultLength } from './result-length.ts'

/** The error code of an answer that is not the requested JSON. */
export const badOutput = 'bad-output'

/** The message that tells a model why its answer was rejected. */
export function toCorrection(why: string): Message {
  return { role: 'user', content: `${why}\nAnswer again, with nothing but JSON that fits.` }
}

/** Converts replies to the messages that they add to the conversation, without rejected attempts. */
export function replyMessages(replies: readonly ModelReply[], naming?: 'named'): Message[] {
  return loopMessages(
    replies.flatMap((reply) => (reply.rejected === undefined ? [reply] : messagesBehind(reply))),
    naming,
  )
}

/** What was said behind an attempt does not vanish with it. */
function messagesBehind({ path, closed, said }: ModelReply): ModelReply[] {
  return said === undefined ? [] : [{ path, closed, content: [], calls: [], said }]
}

/** For answers that are JSON: removes the text of replies with tool calls, which is not part of the answer. */
export function withoutAsides(replies: readonly ModelReply[]): ModelReply[] {
  return replies.map((reply) => {
    if (reply.calls.every(({ providerExecuted }) => providerExecuted)) return reply
    return { ...reply, content: reply.content.filter(({ type }) => type !== 'text') }
  })
}

/**
 * Converts replies to messages for the next model call: an assistant message each, and a tool message with the outcomes. `named`: each with
 * the model that made it, for messages that may be sent to another model.
 */
export function loopMessages(replies: readonly ModelReply[], naming?: 'named'): Message[] {
  const messages: Message[] = []
  for (const reply of replies) for (const message of messagesOfReply(reply, naming)) messages.push(message)
  return messages
}

/**
 * The messages of replies that are over. Each model call of a loop sends those of all calls before it: made once, a call costs the same
 * whether it is the first or the thousandth.
 */
const made = new WeakMap<ModelReply, Made>()

interface Made {
  /** What may still change of a reply that is over: results of a provider's calls are moved to it, and a client answers later. */
  parts: number
  rejected: string | undefined
  results: ModelToolCall['result'][]
  said: number
  named?: readonly Message[]
  bare?: readonly Message[]
}

function messagesOfReply(reply: ModelReply, naming: 'named' | undefined): readonly Message[] {
  const { content, calls, closed, rejected, said = [] } = reply
  let known = made.get(reply)
  const isSame =
    known !== undefined &&
    known.parts === content.length &&
    known.rejected === rejected &&
    known.said === said.length &&
    known.results.length === calls.length &&
    calls.every(({ result }, i) => result === known!.results[i])
  if (!isSame) known = undefined
  const found = naming === undefined ? known?.bare : known?.named
  if (found !== undefined) return found
  const messages = toMessages(reply, naming)
  if (!closed || calls.some(({ result }) => result === undefined)) return messages
  known ??= { parts: content.length, rejected, results: calls.map(({ result }) => result), said: said.length }
  known[naming ?? 'bare'] = messages
  made.set(reply, known)
  return messages
}

function toMessages(reply: ModelReply, naming: 'named' | undefined): Message[] {
  const messages = withoutSaid(reply, naming)
  if (reply.said !== undefined) messages.push(...reply.said)
  return messages
}

function withoutSaid({ content, calls, finish, rejected, model }: ModelReply, naming: 'named' | undefined): Message[] {
  const messages: Message[] = []
  const say = (kept: AssistantContent[]) => {
    const message: Message = { role: 'assistant', content: kept }
    if (naming !== undefined && model !== undefined && hasState(message)) message.model = model
    if (kept.length > 0) messages.push(message)
  }
  const said = content.filter((part) => part.type !== 'text' || part.text !== '' || part.providerOptions)
  if (calls.length === 0) {
    const kept = said.filter(({ type }) => type !== 'tool-call')
    say(kept)
    if (rejected !== undefined) messages.push(toCorrection(rejected))
    return messages
  }
  // An interrupted call has no outcome; including it would make every later request invalid. The result of a call that the
  // provider runs may arrive with a later reply, and the call must be sent until then.
  const isSettled = (call: ModelToolCall) =>
    call.result !== undefined || (call.providerExecuted && finish !== undefined)
  const settledIds = new Set(calls.filter(isSettled).map(({ toolCallId }) => toolCallId))
  const kept = said.filter((part) => part.type !== 'tool-call' || settledIds.has(part.toolCallId))
  say(kept)
  // Providers may expect the metadata of a call on its result as well.
  const notes = new Map(
    content.flatMap((part) => (part.type === 'tool-call' ? [[part.toolCallId, part.providerOptions] as const] : [])),
  )
  const results = calls.flatMap(({ toolCallId, result, providerExecuted, edited, handle }) => {
    if (result === undefined || providerExecuted) return []
    const providerOptions = notes.get(toolCallId)
    const content: ToolResultContent = { ...(providerOptions && { providerOptions }), ...toResultContent(result) }
    if (edited !== undefined) content.output = afterEdit(content.output, edited)
    if (handle !== undefined && isLong(content.output)) content.handle = handle
    return [content]
  })
  if (results.length > 0) messages.push({ role: 'tool', content: results })
  if (rejected !== undefined) messages.push(toCorrection(rejected))
  return messages
}

/** Longer than 4 KB, files included. */
function isLong(output: ToolOutput): boolean {
  return output.type !== 'execution-denied' && resultLength(output.value, smallResult) > smallResult
}

/** Converts a stored outcome to the content that is sent to the model. */
export function toResultContent(entry: EntryOf<'tool-result'>): ToolResultContent {
  const { toolCallId, toolName, result, isError, outcome, providerMetadata } = entry
  const content: ToolResultContent = {
    type: 'tool-result',
    toolCallId,
    toolName,
    output: toOutput(result, isError, outcome),
  }
  note(content, providerMetadata)
  return content
}

/**
 * States in the result with which arguments the tool ran. The model's own call is not changed: providers sign calls, or keep them on their
 * side.
 */
function afterEdit(output: ToolOutput, edited: string): ToolOutput {
  if (output.type === 'execution-denied') return output
  const isError = output.type === 'error-text' || output.type === 'error-json'
  const before = `The call was approved with other arguments: ${edited}.`
  // Keeps images in the result.
  if (output.type === 'json' && isContent(output.value)) {
    return { type: 'json', value: [{ type: 'text', text: `${before} Its result:` }, ...output.value] }
  }
  const words = typeof output.value === 'string' ? output.value : JSON.stringify(output.value)
  const value = `${before} ${isError ? 'It failed' : 'Its result'}: ${words}`
  return { type: isError ? 'error-text' : 'text', value }
}

/** Content blocks, as MCP servers return them. */
function isContent(value: unknown): value is { type: string }[] {
  return Array.isArray(value) && value.every((each) => typeof (each as { type?: unknown } | null)?.type === 'string')
}

function toOutput(result: unknown, isError: boolean | undefined, outcome: string | undefined): ToolOutput {
  if (outcome === 'denied') return { type: 'execution-denied', reason: String(result) }
  if (typeof result === 'string') return { type: isError ? 'error-text' : 'text', value: result }
  return { type: isError ? 'error-json' : 'json', value: result }
}

// The latest metadata replaces earlier metadata, as in the AI SDK: Anthropic's signature comes with a block's last delta.
export function note(
  part: { providerOptions?: ProviderOptions } | undefined,
  metadata: ProviderMetadata | undefined,
): void {
  if (part && metadata) part.providerOptions = metadata
}

/**
 * Messages for a model that did not make all of them. Reasoning, signatures and ids are sent only to the model that made them; other models
 * get neither the signature nor the text. Messages of an unknown model stay unless `isOwn` refuses them.
 */
export function withoutOthersState(
  messages: readonly Message[],
  isOwn: (model: string | undefined) => boolean,
): Message[] {
  let isOthers = false
  return messages.flatMap((message): Message[] => {
    const { role } = message
    if (role === 'assistant') isOthers = !isOwn(message.model)
    if (!isOthers || (role !== 'assistant' && role !== 'tool')) return [message]
    if (role === 'tool') return [{ ...message, content: message.content.map(bare) }]
    const { content, model: _, providerOptions: __, ...rest } = message
    if (typeof content === 'string') return [{ ...rest, content }]
    const kept = content.filter(({ type }) => type !== 'reasoning' && type !== 'custom').map(bare)
    return kept.length === 0 ? [] : [{ ...rest, content: kept }]
  })
}

/** Whether a message has state that only its own model understands. */
export function hasState({ role, content }: Message): boolean {
  if (role !== 'assistant' || typeof content === 'string') return false
  return content.some((part) => part.type === 'reasoning' || part.providerOptions !== undefined)
}

function bare<T extends AssistantContent | ToolResultContent>(part: T): T {
  if (part.providerOptions === undefined) return part
  const { providerOptions: _, ...rest } = part
  return rest as T
}

/* The output of a model call in a tool loop, and the outcomes of its tool calls. */

/** One tool call of a reply and its progress. */
export interface ModelToolCall {
  toolCallId: string
  /** The provider's own id of the call, if it differs. */
  providerCallId?: string
  toolName: string
  /** JSON text, as the model wrote it. */
  input: string
  providerExecuted: boolean
  /** Path of the `tool-call` step, once the server has started to run the tool. */
  startedAt?: string
  /** The call has handed the conversation over to another agent, which answers. */
  handoff?: true
  /** Path of the approval step. If it has finished and there is no result, the call was approved. */
  approvalAt?: string
  /** JSON text of the arguments with which it was approved, if they were changed. */
  edited?: string
  /** Path of the step in which a client is asked for the result. */
  askedAt?: string
  /** The newest request about this call, and the response to it. */
  request?: EntryOf<'request'>
  response?: EntryOf<'response'>
  result?: EntryOf<'tool-result'>
  /** Names its result in the conversation. */
  handle?: string
}

/** One model call. `finish` is absent while it runs and if it was interrupted. */
export interface ModelReply {
  path: string
  content: AssistantContent[]
  calls: ModelToolCall[]
  finish?: { reason: FinishReason; usage?: Usage; providerMetadata?: ProviderMetadata }
  /** The model of its prompt, or the fallback that was called instead. */
  model?: string
  /** Its usage, once reported. */
  usage?: Usage
  /** Its step has finished or was aborted: no more parts follow. */
  closed: boolean
  /** Why its step failed. */
  error?: ErrorValue
  /** The error in its JSON; the next call reports it to the model. */
  rejected?: string
  /** Messages that came while the run was active, and that the next call tells the model behind this reply and its results. */
  said?: UserMessage[]
}
