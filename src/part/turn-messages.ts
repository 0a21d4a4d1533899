/** Turns of a tool loop → messages: for the model that goes on with them, and for the conversation that they become a part of. */
import type { EntryOf } from './entry.ts'
import type { Message, ProviderOptions, ToolOutput, ToolResultContent } from './message.ts'
import type { ProviderMetadata } from './part.ts'
import type { Call, Turn } from './turns.ts'

/** The code of an answer that is not the JSON that was asked for. */
export const badOutput = 'bad-output'

/** What a model is told of its answer that did not fit. */
export function toCorrection(why: string): Message {
  return { role: 'user', content: `${why}\nAnswer again, with nothing but JSON that fits.` }
}

/** Turns → what they add to a conversation: tries that were rejected are no part of it. */
export function turnMessages(turns: readonly Turn[]): Message[] {
  return loopMessages(turns.filter(({ rejected }) => rejected === undefined))
}

/** Of turns whose answer is JSON: what was said before a tool call is no part of the answer. */
export function withoutAsides(turns: readonly Turn[]): Turn[] {
  return turns.map((turn) => {
    if (turn.calls.every(({ providerExecuted }) => providerExecuted)) return turn
    return { ...turn, content: turn.content.filter(({ type }) => type !== 'text') }
  })
}

/** Turns → the messages a model is told next: an assistant message each, and one with the outcomes of its calls. */
export function loopMessages(turns: readonly Turn[]): Message[] {
  const messages: Message[] = []
  for (const { content, calls, finish, rejected } of turns) {
    // A call that was cut off has no outcome yet: leaving it in would make every later request invalid. One that the
    // provider itself runs may bring its result with a later answer, and must be told to it until then.
    const isSettled = (call: Call) => call.result !== undefined || (call.providerExecuted && finish !== undefined)
    const settledIds = new Set(calls.filter(isSettled).map(({ toolCallId }) => toolCallId))
    const settled = content.filter((part) => part.type !== 'tool-call' || settledIds.has(part.toolCallId))
    const kept = settled.filter((part) => part.type !== 'text' || part.text !== '' || part.providerOptions)
    if (kept.length > 0) messages.push({ role: 'assistant', content: kept })
    // What a provider noted on its call it may want to find on the result as well.
    const notes = new Map(
      content.flatMap((part) => (part.type === 'tool-call' ? [[part.toolCallId, part.providerOptions] as const] : [])),
    )
    const results = calls.flatMap(({ toolCallId, result, providerExecuted }) => {
      if (result === undefined || providerExecuted) return []
      const providerOptions = notes.get(toolCallId)
      return [{ ...(providerOptions && { providerOptions }), ...toResultContent(result) }]
    })
    if (results.length > 0) messages.push({ role: 'tool', content: results })
    if (rejected !== undefined) messages.push(toCorrection(rejected))
  }
  return messages
}

/** A recorded outcome → what the model is told of it. */
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

function toOutput(result: unknown, isError: boolean | undefined, outcome: string | undefined): ToolOutput {
  if (outcome === 'denied') return { type: 'execution-denied', reason: String(result) }
  if (typeof result === 'string') return { type: isError ? 'error-text' : 'text', value: result }
  return { type: isError ? 'error-json' : 'json', value: result }
}

// The latest metadata replaces what came before, as in the AI SDK: Anthropic's signature comes with a block's last delta.
export function note(
  part: { providerOptions?: ProviderOptions } | undefined,
  metadata: ProviderMetadata | undefined,
): void {
  if (part && metadata) part.providerOptions = metadata
}
