/** Converts a run's entries to a message, for the stream and for the single JSON, so that both have the same content. The mapping is in `messages.ts`. */
import type { Entry, EntryOf } from '../../part/entry.ts'
import type { ErrorValue } from '../../part/error.ts'
import { parseJson } from '../../part/json.ts'
import type { Usage } from '../../part/usage.ts'
import { ItemAnswer, type ItemEnding, type ItemOptions } from '../item-answer.ts'
import type { CallsOutput } from '../item-calls.ts'
import { errorText, type Projection, type Sink, type WireContext } from '../wire.ts'
import { MessageBlocks, type MessageBlock, type MessagesEvent, type OpenServerCall } from './message-blocks.ts'
import { toToolUseId } from './tool-use-id.ts'

/** Options of a reader of a message. All are optional. */
export interface MessagesOptions extends ItemOptions {
  /** Sealed, for the tokens of reasoning (`part/reasoning-token.ts`). Without it, blocks of reasoning have none. */
  reasoning?: string
  /** `omitted`: blocks of reasoning have a token and no text. `hidden`: there are none. Default `shown`. */
  thinking?: 'shown' | 'omitted' | 'hidden'
}

export interface MessageUsage {
  /** Without those from the cache. */
  input_tokens: number
  output_tokens: number
  cache_read_input_tokens: number
  cache_creation_input_tokens: number
}

/** The text of a message that would have no content: clients ask again and again after an empty one. */
export const emptyAnswer = '(no text)'

export function createMessagesAnswer(
  sink: Sink<MessagesEvent>,
  context: WireContext,
  options: Partial<MessagesOptions>,
): Projection {
  const { reasoning, thinking = 'shown' } = options
  return new MessageAnswer(sink, new MessageBlocks(sink, { reasoning, thinking }), context, options)
}

/** A class, not closures: one for each open stream. `private` and not `#`: see decisions/0028. */
class MessageAnswer extends ItemAnswer<MessageBlock, MessageBlock, OpenServerCall> {
  private readonly sink: Sink<MessagesEvent>
  private readonly blocks: MessageBlocks
  private readonly model: string | undefined
  /** Of the last model call. */
  private lastUsage: Usage | undefined = undefined

  constructor(
    sink: Sink<MessagesEvent>,
    blocks: MessageBlocks,
    context: WireContext,
    options: Partial<MessagesOptions>,
  ) {
    super(context, options, callsTo(blocks))
    this.sink = sink
    this.blocks = blocks
    this.model = options.model
  }

  protected override note(entry: Entry): void {
    if (entry.type === 'usage') this.lastUsage = entry.usage
  }

  protected override begin(start: EntryOf<'run-start'>): void {
    this.blocks.begin(start.runId)
    this.announce(start)
  }

  protected override beginAgain(): void {
    this.blocks.restart()
    if (this.start !== undefined) this.announce(this.start)
  }

  private announce({ runId, labels, agent }: EntryOf<'run-start'>): void {
    this.sink.send({
      type: 'message_start',
      message: {
        id: `msg_${runId}`,
        type: 'message',
        role: 'assistant',
        model: this.model ?? labels?.['model'] ?? agent,
        content: [],
        stop_reason: null,
        stop_sequence: null,
        usage: toMessageUsage(undefined),
      },
    })
  }

  protected override openText(step: string): MessageBlock {
    return this.blocks.text(step)
  }

  protected override openReasoning(step: string): MessageBlock {
    return this.blocks.reasoning(step)
  }

  protected override write(block: MessageBlock, delta: string): void {
    this.blocks.write(block, delta)
  }

  protected override endText(block: MessageBlock): void {
    this.blocks.end(block)
  }

  /** A citation of this protocol names the search that has found the page. */
  protected override cite(): void {}

  protected override say(words: string, refuses: boolean): void {
    if (!refuses) this.blocks.say(words)
    else this.fail({ code: 'suspended', message: words })
  }

  protected override close({ message }: ErrorValue, has?: (step: string) => boolean): void {
    this.blocks.close(message, has)
  }

  protected override hasItems(): boolean {
    return this.blocks.hasAny
  }

  protected override finish(ending: ItemEnding): void {
    const stopReason = this.stopReason(ending)
    if (stopReason === undefined) this.sink.send({ type: 'error', error: toMessagesError(ending) })
    else {
      this.blocks.close('The run has ended.')
      if (!this.blocks.hasAny) this.blocks.say(emptyAnswer)
      const delta = { stop_reason: stopReason, stop_sequence: null }
      this.sink.send({ type: 'message_delta', delta, usage: toMessageUsage(this.usage) })
      this.sink.send({ type: 'message_stop' })
    }
    this.sink.end()
  }

  /** Undefined for an answer that is not known to be complete. */
  private stopReason(ending: ItemEnding): string | undefined {
    if (ending.status === 'completed') return this.handedOver() ? 'tool_use' : 'end_turn'
    if (ending.status === 'failed') return undefined
    if (ending.reason === 'content_filter') return 'refusal'
    return ending.reason === 'max_output_tokens' && this.isClientsLimit() ? 'max_tokens' : undefined
  }

  /** A client that hears of a limit which is not its own asks again with a higher one, which changes nothing. */
  private isClientsLimit(): boolean {
    const limit = this.start?.settings?.maxOutputTokens
    if (limit === undefined) return false
    const { outputTokens = limit, source } = this.lastUsage ?? { source: 'estimated' }
    // An estimate may be wrong by half.
    return (source === 'estimated' ? 2 * outputTokens : outputTokens) >= limit
  }
}

function callsTo(blocks: MessageBlocks): CallsOutput<MessageBlock, OpenServerCall> {
  return {
    begin: (step, name, id) => blocks.call(step, { id: toToolUseId(id), name }),
    write: (block, delta) => blocks.write(block, delta),
    written(block, json, sent) {
      // Some providers stream no empty arguments, or only a part of them.
      const isBegun = json.startsWith(sent)
      if (isBegun && json.length > sent.length) blocks.write(block, json.slice(sent.length))
      if (!isObject(valueOf(json))) return 'its arguments are no JSON object'
      const isSame = isBegun || JSON.stringify(valueOf(sent)) === JSON.stringify(valueOf(json))
      return isSame ? undefined : 'its arguments were sent in another form'
    },
    done: (block) => blocks.end(block),
    serverCall: (step, { agent, toolName, json }) =>
      blocks.serverCall(step, { name: toolName, server: agent, input: objectOf(json) }),
    serverResult(call, result) {
      if ('error' in result) blocks.serverResult(call, result.error, true)
      else blocks.serverResult(call, result.output, false)
    },
  }
}

/** The protocol has objects alone. */
function objectOf(json: string): object {
  const value = valueOf(json)
  return isObject(value) ? value : { input: value ?? json }
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function valueOf(json: string): unknown {
  try {
    return parseJson(json)
  } catch {
    return undefined
  }
}

/** Unknown counts are 0. */
export function toMessageUsage(usage: Usage | undefined): MessageUsage {
  const { inputTokens = 0, outputTokens = 0, cachedInputTokens = 0, cacheWriteInputTokens = 0 } = usage ?? {}
  return {
    input_tokens: Math.max(0, inputTokens - cachedInputTokens - cacheWriteInputTokens),
    output_tokens: outputTokens,
    cache_read_input_tokens: cachedInputTokens,
    cache_creation_input_tokens: cacheWriteInputTokens,
  }
}

/**
 * The error of a stream. Claude Code prints any type that it does not know and ends. After `api_error`, `overloaded_error` and `timeout_error` it asks
 * again, and would run the agent's tools a second time. So only a server that was interrupted has one of these.
 */
function toMessagesError(ending: ItemEnding): { type: string; message: string } {
  if (ending.status === 'failed') {
    const { error } = ending
    const type =
      error.code === 'rate-limited' ? 'rate_limit_error' : passing.has(error.code) ? overloaded : 'run_failed'
    return { type, message: errorText(error) }
  }
  const { reason, error } = ending as Extract<ItemEnding, { status: 'incomplete' }>
  const type = reason === 'cancelled' ? 'aborted' : reason
  return { type, message: error?.message ?? whyIncomplete(reason) }
}

const overloaded = 'overloaded_error'
/** Of a server that was interrupted: whoever asks again gets the rest of the run, or another run in its place. */
const passing: ReadonlySet<string> = new Set(['closing', 'interrupted', 'store-failed', 'store-closed'])

function whyIncomplete(reason: string): string {
  switch (reason) {
    case 'max_output_tokens':
      return 'The model reached its output limit, which is not that of the request: the answer is cut off.'
    case 'max_steps':
      return 'The agent reached its maximum number of model calls (maxSteps).'
    case 'interrupted':
      return 'A part of the answer failed.'
    default:
      return `The answer is not complete: the model ended it with "${reason}".`
  }
}
