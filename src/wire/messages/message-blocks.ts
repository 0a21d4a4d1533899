/**
 * Writes the content of a message: one block after the other, without gaps in their indexes. Clients of this protocol expect that a block ends before the
 * next one begins. So a block that begins while another is open waits, with what is written of it, and is sent when its turn has come.
 *
 * A call of a client's tool stops when it is handed over: some clients run what has stopped. Blocks that begin before that wait behind it.
 */
import { reasoningToken } from '../../part/reasoning-token.ts'
import type { Sink } from '../wire.ts'

/** An event of the protocol. */
export interface MessagesEvent {
  type: string
  [field: string]: unknown
}

type Kind = 'text' | 'thinking' | 'call' | 'whole'

export interface MessageBlock {
  readonly kind: Kind
  /** The path of the step that writes it. */
  readonly step: string
  /** As its start has it. */
  readonly start: object
  /** What is written and not sent. */
  held: string
  /** Sends a delta. Absent while it waits. */
  say: ((delta: string) => void) | undefined
  /** It has a place among the blocks. */
  isPlaced: boolean
  isEnded: boolean
  signature: string | undefined
}

/** A call that the server runs, whose result was not sent. */
export interface OpenServerCall {
  readonly id: string
  readonly step: string
}

export interface MessageBlocksOptions {
  /** Sealed, for the tokens of reasoning. Without it, blocks of reasoning have none. */
  reasoning: string | undefined
  /** `omitted`: blocks of reasoning have a token and no text. `hidden`: there are none. */
  thinking: 'shown' | 'omitted' | 'hidden'
}

/** A class, not closures: one for each open stream (decisions/0028). */
export class MessageBlocks {
  private readonly sink: Sink<MessagesEvent>
  private readonly options: MessageBlocksOptions
  private run = ''
  /** Of the next block in this answer. */
  private index = 0
  /** Counts the server's calls of the run, also over answers that begin anew. */
  private calls = 0
  private thoughts = 0
  /** The first one is open. */
  private queue: MessageBlock[] = []
  private readonly running = new Set<OpenServerCall>()

  constructor(sink: Sink<MessagesEvent>, options: MessageBlocksOptions) {
    this.sink = sink
    this.options = options
  }

  begin(run: string): void {
    this.run = run
  }

  /** The answer begins anew, and has none of the blocks so far. */
  restart(): void {
    this.index = 0
    this.queue = []
    this.running.clear()
  }

  /** Whether any block was sent, or waits. */
  get hasAny(): boolean {
    return this.index > 0 || this.queue.length > 0
  }

  private create(kind: Kind, step: string, start: object): MessageBlock {
    return { kind, step, start, held: '', say: undefined, isPlaced: false, isEnded: false, signature: undefined }
  }

  /** Its place is that of its first delta: there are no empty texts. */
  text(step: string): MessageBlock {
    return this.create('text', step, { type: 'text', text: '' })
  }

  reasoning(step: string): MessageBlock {
    const block = this.create('thinking', step, { type: 'thinking', thinking: '', signature: '' })
    const { reasoning, thinking } = this.options
    const part = this.thoughts++
    if (reasoning !== undefined && thinking !== 'hidden') block.signature = reasoningToken(reasoning, part)
    return block
  }

  call(step: string, named: { id: string; name: string }): MessageBlock {
    const block = this.create('call', step, { type: 'tool_use', ...named, input: {} })
    this.place(block)
    return block
  }

  write(block: MessageBlock, delta: string): void {
    if (block.kind === 'thinking' && this.options.thinking !== 'shown') return
    if (!block.isPlaced) this.place(block)
    if (block.say === undefined) block.held += delta
    else block.say(delta)
  }

  end(block: MessageBlock): void {
    if (block.isEnded) return
    // What a provider has signed without showing it must come back, too.
    if (!block.isPlaced && block.signature !== undefined) this.place(block)
    block.isEnded = true
    if (block.isPlaced) this.advance()
  }

  /** Words that are known as a whole. */
  say(words: string): void {
    const block = this.text('')
    this.write(block, words)
    this.end(block)
  }

  /** `input`: JSON text. */
  serverCall(step: string, { name, server, input }: { name: string; server: string; input: unknown }): OpenServerCall {
    const call = { id: `mcptoolu_${this.run}_${this.calls++}`, step }
    this.whole(step, { type: 'mcp_tool_use', id: call.id, name, server_name: server, input })
    this.running.add(call)
    return call
  }

  serverResult(call: OpenServerCall, text: string, isError: boolean): void {
    if (!this.running.delete(call)) return
    const content = [{ type: 'text', text }]
    this.whole(call.step, { type: 'mcp_tool_result', tool_use_id: call.id, is_error: isError, content })
  }

  private whole(step: string, start: object): void {
    const block = this.create('whole', step, start)
    block.isEnded = true
    this.place(block)
  }

  private place(block: MessageBlock): void {
    block.isPlaced = true
    this.queue.push(block)
    if (this.queue.length === 1) this.advance()
  }

  /** Sends what the first block has, and those behind it once it has ended. */
  private advance(): void {
    for (let first = this.queue[0]; first !== undefined; first = this.queue[0]) {
      if (first.say === undefined) this.open(first)
      if (!first.isEnded) return
      if (first.signature !== undefined) {
        this.delta({ type: 'signature_delta', signature: first.signature })
      }
      this.sink.send({ type: 'content_block_stop', index: this.index++ })
      this.queue.shift()
    }
  }

  private open(block: MessageBlock): void {
    const { index } = this
    this.sink.send({ type: 'content_block_start', index, content_block: block.start })
    block.say = block.kind === 'whole' ? ignore : this.sink.prepare(deltaOf(block.kind, index))
    if (block.held !== '') block.say(block.held)
    block.held = ''
  }

  private delta(delta: object): void {
    this.sink.send({ type: 'content_block_delta', index: this.index, delta })
  }

  /** Ends what is open, of all steps or of some. A call for the client never stops before it is handed over. */
  close(why: string, has: (step: string) => boolean = () => true): void {
    for (const call of this.running) if (has(call.step)) this.serverResult(call, why, true)
    for (const block of this.queue.filter(({ kind, isEnded, step }) => kind !== 'call' && !isEnded && has(step))) {
      // It is not whole, so nothing can be signed.
      block.signature = undefined
      this.end(block)
    }
  }
}

function deltaOf(kind: Exclude<Kind, 'whole'>, index: number): (text: string) => MessagesEvent {
  const type = 'content_block_delta'
  switch (kind) {
    case 'text':
      return (text) => ({ type, index, delta: { type: 'text_delta', text } })
    case 'thinking':
      return (thinking) => ({ type, index, delta: { type: 'thinking_delta', thinking } })
    case 'call':
      return (json) => ({ type, index, delta: { type: 'input_json_delta', partial_json: json } })
  }
}

function ignore(): void {}
