/** Text and reasoning of the answer. AG-UI allows parallel open blocks, so parallel answers need no order. */
import { LazyMap } from '../../fold/lazy-map.ts'
import type { EntryOf } from '../../part/entry.ts'
import { isUnder, parentPath } from '../../part/path.ts'
import type { ProviderMetadata } from '../../part/model-part.ts'
import type { Sink } from '../wire.ts'
import type { AgUiEvent, AgUiOut } from './ag-ui-event.ts'
import { toEncryptedValue, type AgUiIds } from './ag-ui-ids.ts'

export interface AgUiBlocks {
  /** A step of the answer starts: texts of answers are ordered by these starts. */
  startAnswer(path: string): void
  startText(entry: EntryOf<'text-start'>): void
  startReasoning(entry: EntryOf<'reasoning-start'>): void
  delta(entry: EntryOf<'text-delta'> | EntryOf<'reasoning-delta'>): void
  end(entry: Pick<EntryOf<'text-end'> | EntryOf<'reasoning-end'>, 'id' | 'providerMetadata'>): void
  /** Ends all blocks at and under a path. Default: all. */
  close(path?: string): void
  /** Drops the blocks of an attempt that a crash superseded. */
  forget(path: string): void
  /** The agent of this call gives the answer from here on, instead of its caller. */
  handOver(path: string): void
  /** The text of the last model call of each answer. */
  finalText(): string | undefined
}

interface AgUiBlock {
  path: string
  /** The id of the subagent that says it. */
  subagentRunId: string | undefined
  messageId: string
  isText: boolean
  said: { text: string }
  /** A signature. The last one counts. */
  metadata: ProviderMetadata | undefined
  sendDelta(text: string, timestamp: number): void
}

interface BlocksOptions {
  ids: AgUiIds
  subagentAt(path: string): string | undefined
}

export function createAgUiBlocks(sink: Sink<AgUiEvent>, out: AgUiOut, options: BlocksOptions): AgUiBlocks {
  return new Blocks(sink, out, options)
}

/** A class, not closures: one for each open stream (decisions/0028). */
class Blocks implements AgUiBlocks {
  readonly #sink: Sink<AgUiEvent>
  readonly #out: AgUiOut
  readonly #ids: AgUiIds
  readonly #subagentAt: BlocksOptions['subagentAt']
  readonly #blocks = new Map<string, AgUiBlock>()
  /** The text of the last model call, by the path of the answering step, or of its list of steps. */
  readonly #said = new LazyMap<string, { path: string; text: string }>()

  constructor(sink: Sink<AgUiEvent>, out: AgUiOut, { ids, subagentAt }: BlocksOptions) {
    this.#sink = sink
    this.#out = out
    this.#ids = ids
    this.#subagentAt = subagentAt
  }

  #lastSaid(path: string): { text: string } {
    const root = parentPath(path)
    let last = this.#said.get(root)
    if (last?.path !== path) this.#said.set(root, (last = { path, text: '' }))
    return last!
  }

  #finish({ isText, messageId, metadata, subagentRunId }: AgUiBlock): void {
    if (isText) return this.#out.send({ type: 'TEXT_MESSAGE_END', messageId, subagentRunId })
    this.#out.send({ type: 'REASONING_MESSAGE_END', messageId, subagentRunId })
    if (metadata !== undefined) {
      const encryptedValue = toEncryptedValue(metadata)
      const entity = { subtype: 'message' as const, entityId: messageId }
      this.#out.send({ type: 'REASONING_ENCRYPTED_VALUE', ...entity, encryptedValue, subagentRunId })
    }
    this.#out.send({ type: 'REASONING_END', messageId, subagentRunId })
  }

  startAnswer(path: string): void {
    if (!this.#said.has(path)) this.#said.set(path, { path: '', text: '' })
  }

  startText({ id, step: path }: EntryOf<'text-start'>): void {
    const messageId = this.#ids.text(path)
    const subagentRunId = this.#subagentAt(path)
    const tag = subagentRunId === undefined ? undefined : { subagentRunId }
    const sendDelta = this.#sink.prepare((delta, timestamp) => {
      return { type: 'TEXT_MESSAGE_CONTENT', timestamp, messageId, delta, ...tag }
    })
    // What a subagent says is no part of the answer.
    const said = tag === undefined ? this.#lastSaid(path) : { text: '' }
    this.#blocks.set(id, { path, subagentRunId, messageId, isText: true, said, metadata: undefined, sendDelta })
    this.#out.send({ type: 'TEXT_MESSAGE_START', messageId, role: 'assistant', subagentRunId })
  }

  startReasoning({ id, step: path, providerMetadata }: EntryOf<'reasoning-start'>): void {
    const messageId = this.#ids.next(path)
    const subagentRunId = this.#subagentAt(path)
    const tag = subagentRunId === undefined ? undefined : { subagentRunId }
    const sendDelta = this.#sink.prepare((delta, timestamp) => {
      return { type: 'REASONING_MESSAGE_CONTENT', timestamp, messageId, delta, ...tag }
    })
    this.#blocks.set(id, {
      path,
      subagentRunId,
      messageId,
      isText: false,
      said: { text: '' },
      metadata: providerMetadata,
      sendDelta,
    })
    this.#out.send({ type: 'REASONING_START', messageId, subagentRunId })
    this.#out.send({ type: 'REASONING_MESSAGE_START', messageId, role: 'reasoning', subagentRunId })
  }

  delta({ id, delta, providerMetadata }: EntryOf<'text-delta'> | EntryOf<'reasoning-delta'>): void {
    const block = this.#blocks.get(id)
    if (block === undefined) return
    if (providerMetadata !== undefined) block.metadata = providerMetadata
    // Clients older than 1.0 fail on an empty delta.
    if (delta === '') return
    if (block.isText) block.said.text += delta
    block.sendDelta(delta, this.#out.timestamp)
  }

  end({ id, providerMetadata }: Pick<EntryOf<'text-end'> | EntryOf<'reasoning-end'>, 'id' | 'providerMetadata'>): void {
    const block = this.#blocks.get(id)
    if (block === undefined) return
    this.#blocks.delete(id)
    this.#finish({ ...block, metadata: providerMetadata ?? block.metadata })
  }

  close(path = ''): void {
    for (const [id, block] of this.#blocks) {
      if (!isUnder(block.path, path)) continue
      this.#finish(block)
      this.#blocks.delete(id)
    }
  }

  forget(path: string): void {
    for (const [id, block] of this.#blocks) if (isUnder(block.path, path)) this.#blocks.delete(id)
    for (const [root, last] of this.#said) if (isUnder(last.path, path)) this.#said.delete(root)
  }

  handOver(path: string): void {
    this.#said.delete(parentPath(path))
  }

  finalText(): string | undefined {
    const texts = [...this.#said.values()].flatMap(({ text }) => (text === '' ? [] : [text]))
    return texts.length === 0 ? undefined : texts.join('\n\n')
  }
}
