/**
 * Claude's messages: those of the agent itself, and of each of its sub-agents, whose lines name the tool call that they work for. A
 * block is known by that call and by its index in the message.
 */
import { omitUndefined } from '../../part/omit-undefined.ts'
import type { ProviderMetadata } from '../../part/model-part.ts'
import type { SourcePart } from '../../part/part.ts'
import type { UsageMeter } from '../usage-meter.ts'
import { isObject, numberOf, objectOf, objectsOf, textOf } from '../values.ts'
import { createBlocks, kindOf, type ClaudeBlock, type Say } from './blocks.ts'
import { createCalls } from './calls.ts'
import { toTokens } from './result.ts'

/** One message at a time is written: by the agent, or by the sub-agent of a call. */
interface Writer {
  parent: string | undefined
  messageId?: string | undefined
  model?: string | undefined
  usage: Record<string, unknown>
  /** Blocks that came in pieces, by index. */
  blocks: Map<number, ClaudeBlock>
  /** Those whose `assistant` line has not come, in order. */
  unconfirmed: ClaudeBlock[]
  /** The last messages that came in pieces: a line of them that comes late says nothing new. */
  streamed: string[]
  say: Say
}

export interface Messages {
  /**
   * A raw event of the API. Like the others, returns false for an unknown event. `abandonedFrom`: the connection has broken, and the
   * blocks from this index are not used.
   */
  event(event: Record<string, unknown>, parent: string | undefined, abandonedFrom: number | undefined): boolean
  /** An `assistant` line: one or more whole blocks of a message. */
  message(message: Record<string, unknown>, parent: string | undefined): boolean
  /** A block with the result of a call: of a `user` line, or of a tool that the API runs itself. */
  result(content: Record<string, unknown>, parent: string | undefined): boolean
  /** Text that comes in no message. */
  text(text: string): void
  /** The estimated tokens of the thinking that goes on. */
  thinking(tokens: number | undefined): void
  denied(toolCallId: string | undefined): void
  /** A result was read: later output of the agent is another turn. */
  endTurn(): void
  /** Whether the agent itself has said anything, and any text in this turn. */
  readonly hasSaid: boolean
  readonly hasText: boolean
  /** The text of its last message. */
  readonly lastText: string
}

interface Heard {
  part(part: SourcePart): void
  /** The name of the CLI in the metadata of parts. */
  key: string
  modelOf(): string
}

export function createMessages(said: Heard, meter: UsageMeter): Messages {
  const writers = new Map<string, Writer>()
  const calls = createCalls()
  const blocks = createBlocks(calls)
  let thinkingTokens: number | undefined
  let hasSaid = false
  let hasText = false
  let isTurnOver = false
  let lastId: string | undefined
  let lastPieces: string[] = []

  function writerOf(parent: string | undefined): Writer {
    const known = writers.get(parent ?? '')
    if (known !== undefined) return known
    const say: Say = parent === undefined ? sayMain : (part) => said.part(withParent(part, said.key, parent))
    const writer: Writer = { parent, usage: {}, blocks: new Map(), unconfirmed: [], streamed: [], say }
    writers.set(parent ?? '', writer)
    return writer
  }

  function sayMain(part: SourcePart): void {
    hasSaid = true
    if (isTurnOver) {
      isTurnOver = false
      hasText = false
      lastPieces = []
    }
    if (part.type === 'text-delta') {
      hasText = true
      lastPieces.push(part.delta)
    }
    said.part(part)
  }

  function begin(writer: Writer, message: Record<string, unknown>): void {
    closeAll(writer)
    const id = textOf(message['id'])
    writer.messageId = id
    writer.model = textOf(message['model'])
    writer.usage = {}
    if (writer.parent !== undefined) return
    if (id === undefined || id !== lastId) lastPieces = []
    lastId = id
    if (id !== undefined)
      writer.say(omitUndefined({ type: 'response-metadata', id, modelId: writer.model }) as SourcePart)
  }

  function report(writer: Writer, usage: unknown): void {
    if (writer.parent !== undefined || !isObject(usage)) return
    // A later report may omit unchanged fields.
    writer.usage = { ...writer.usage, ...withoutNull(usage) }
    meter.message(writer.messageId ?? '', writer.model ?? said.modelOf(), toTokens(writer.usage))
  }

  function close(writer: Writer, block: ClaudeBlock): void {
    const isThinking = block.kind === 'reasoning' && block.isOpen && writer.parent === undefined
    blocks.close(block, writer.say, isThinking ? thinkingTokens : undefined)
    if (isThinking) thinkingTokens = undefined
  }

  /** Ends the blocks whose own end has not come: the arguments of a call may be cut there, and then there is no call. */
  function cutOff(writer: Writer, from = 0): void {
    for (const [index, block] of writer.blocks) {
      if (block.kind === 'tool' && block.isOpen && index >= from) blocks.cut(block, writer.say)
      close(writer, block)
    }
  }

  function abandon(writer: Writer, from: number): void {
    const cut = [...writer.blocks].filter(([index, { isOpen }]) => isOpen && index >= from).map(([, block]) => block)
    for (const block of cut) if (block.kind === 'tool') blocks.cut(block, writer.say, true)
    const what = cut.some(({ kind }) => kind === 'tool') ? ' in the middle of a tool call, which was not made' : ''
    const message = `The connection to the model broke${what}. The agent goes on.`
    writer.say({ type: 'warning', code: 'answer-cut', message })
  }

  function closeAll(writer: Writer): void {
    cutOff(writer)
    writer.blocks.clear()
    writer.unconfirmed = []
  }

  function start(writer: Writer, index: number, content: Record<string, unknown>): boolean {
    const before = writer.blocks.get(index)
    if (before !== undefined) close(writer, before)
    const block = blocks.open(content, writer.say)
    if (block === undefined) return result(content, writer.parent)
    writer.blocks.set(index, block)
    writer.unconfirmed.push(block)
    return true
  }

  function event(
    given: Record<string, unknown>,
    parent: string | undefined,
    abandonedFrom: number | undefined,
  ): boolean {
    const writer = writerOf(parent)
    const index = numberOf(given['index']) ?? 0
    switch (given['type']) {
      case 'message_start': {
        const message = objectOf(given['message'])
        begin(writer, message)
        if (writer.messageId !== undefined) writer.streamed = [...writer.streamed.slice(-9), writer.messageId]
        writer.usage = withoutNull(objectOf(message['usage']))
        return true
      }
      case 'content_block_start':
        return start(writer, index, objectOf(given['content_block']))
      case 'content_block_delta':
        return blocks.delta(writer.blocks.get(index), objectOf(given['delta']), writer.say)
      case 'content_block_stop': {
        const block = writer.blocks.get(index)
        if (block === undefined) return false
        close(writer, block)
        return true
      }
      case 'message_delta':
        report(writer, given['usage'])
        return true
      case 'message_stop':
        if (abandonedFrom !== undefined) abandon(writer, abandonedFrom)
        cutOff(writer)
        return true
      case 'ping':
        return true
      default:
        return false
    }
  }

  function message(given: Record<string, unknown>, parent: string | undefined): boolean {
    const writer = writerOf(parent)
    const id = textOf(given['id'])
    if (id !== undefined && id !== writer.messageId && writer.streamed.includes(id)) return true
    const isSame = id === undefined || writer.messageId === undefined || id === writer.messageId
    const isStreamed = isSame && writer.blocks.size > 0
    if (!isStreamed && (id === undefined || id !== writer.messageId)) begin(writer, given)
    const { content } = given
    const list = typeof content === 'string' ? [{ type: 'text', text: content }] : objectsOf(content)
    let isAll = true
    for (const block of list) if (!whole(writer, block, isStreamed)) isAll = false
    if (!isStreamed) report(writer, given['usage'])
    return isAll
  }

  function whole(writer: Writer, content: Record<string, unknown>, isStreamed: boolean): boolean {
    const id = textOf(content['id'])
    const confirmed = isStreamed ? confirm(writer, kindOf(content), id) : undefined
    if (confirmed !== undefined) {
      blocks.fill(confirmed, content, writer.say)
      return true
    }
    if (calls.isKnown(id)) return true
    const block = blocks.open(content, writer.say)
    if (block === undefined) return result(content, writer.parent)
    blocks.fill(block, content, writer.say)
    close(writer, block)
    return true
  }

  function confirm(writer: Writer, kind: ClaudeBlock['kind'], id: string | undefined): ClaudeBlock | undefined {
    const at = writer.unconfirmed.findIndex((each) => each.kind === kind && (kind !== 'tool' || each.id === id))
    return at < 0 ? undefined : writer.unconfirmed.splice(at, 1)[0]
  }

  function result(content: Record<string, unknown>, parent: string | undefined): boolean {
    const id = textOf(content['tool_use_id'])
    if (id === undefined) return false
    const worker = writers.get(id)
    if (worker !== undefined) {
      closeAll(worker)
      writers.delete(id)
    }
    calls.result(id, content, writerOf(parent).say)
    return true
  }

  return {
    event,
    message,
    result,
    text(text) {
      const writer = writerOf(undefined)
      whole(writer, { type: 'text', text }, false)
    },
    thinking(tokens) {
      thinkingTokens = tokens ?? thinkingTokens
    },
    denied: calls.denied,
    endTurn() {
      isTurnOver = true
    },
    get hasSaid() {
      return hasSaid
    },
    get hasText() {
      return hasText && !isTurnOver
    },
    get lastText() {
      return lastPieces.join('')
    },
  }
}

function withParent<P extends SourcePart & { providerMetadata?: ProviderMetadata }>(
  part: P,
  key: string,
  parentToolUseId: string,
): P {
  const { providerMetadata } = part
  const own = { ...providerMetadata?.[key], parentToolUseId }
  return { ...part, providerMetadata: { ...providerMetadata, [key]: own } }
}

function withoutNull(value: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(value).filter(([, each]) => each !== null))
}
