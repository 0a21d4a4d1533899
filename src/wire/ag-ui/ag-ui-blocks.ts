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
  /** Ends all blocks. */
  close(): void
  /** Drops the blocks of an attempt that a crash superseded. */
  forget(path: string): void
  /** The text of the last model call of each answer. */
  finalText(): string | undefined
}

interface AgUiBlock {
  path: string
  messageId: string
  isText: boolean
  said: { text: string }
  /** A signature. The last one counts. */
  metadata: ProviderMetadata | undefined
  sendDelta(text: string, timestamp: number): void
}

export function createAgUiBlocks(sink: Sink<AgUiEvent>, out: AgUiOut, ids: AgUiIds): AgUiBlocks {
  return new Blocks(sink, out, ids)
}

/** A class, not closures: one for each open stream (decisions/0028). */
class Blocks implements AgUiBlocks {
  readonly #sink: Sink<AgUiEvent>
  readonly #out: AgUiOut
  readonly #ids: AgUiIds
  readonly #blocks = new Map<string, AgUiBlock>()
  /** The text of the last model call, by the path of the answering step, or of its list of steps. */
  readonly #said = new LazyMap<string, { path: string; text: string }>()

  constructor(sink: Sink<AgUiEvent>, out: AgUiOut, ids: AgUiIds) {
    this.#sink = sink
    this.#out = out
    this.#ids = ids
  }

  #lastSaid(path: string): { text: string } {
    const root = parentPath(path)
    let last = this.#said.get(root)
    if (last?.path !== path) this.#said.set(root, (last = { path, text: '' }))
    return last!
  }

  #finish({ isText, messageId, metadata }: AgUiBlock): void {
    if (isText) return this.#out.send({ type: 'TEXT_MESSAGE_END', messageId })
    this.#out.send({ type: 'REASONING_MESSAGE_END', messageId })
    if (metadata !== undefined) {
      const encryptedValue = toEncryptedValue(metadata)
      this.#out.send({ type: 'REASONING_ENCRYPTED_VALUE', subtype: 'message', entityId: messageId, encryptedValue })
    }
    this.#out.send({ type: 'REASONING_END', messageId })
  }

  startAnswer(path: string): void {
    if (!this.#said.has(path)) this.#said.set(path, { path: '', text: '' })
  }

  startText({ id, step: path }: EntryOf<'text-start'>): void {
    const messageId = this.#ids.text(path)
    const sendDelta = this.#sink.prepare((delta, timestamp) => {
      return { type: 'TEXT_MESSAGE_CONTENT', timestamp, messageId, delta }
    })
    this.#blocks.set(id, {
      path,
      messageId,
      isText: true,
      said: this.#lastSaid(path),
      metadata: undefined,
      sendDelta,
    })
    this.#out.send({ type: 'TEXT_MESSAGE_START', messageId, role: 'assistant' })
  }

  startReasoning({ id, step: path, providerMetadata }: EntryOf<'reasoning-start'>): void {
    const messageId = this.#ids.next()
    const sendDelta = this.#sink.prepare((delta, timestamp) => {
      return {
        type: 'REASONING_MESSAGE_CONTENT',
        timestamp,
        messageId,
        delta,
      }
    })
    this.#blocks.set(id, {
      path,
      messageId,
      isText: false,
      said: { text: '' },
      metadata: providerMetadata,
      sendDelta,
    })
    this.#out.send({ type: 'REASONING_START', messageId })
    this.#out.send({ type: 'REASONING_MESSAGE_START', messageId, role: 'reasoning' })
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

  close(): void {
    for (const block of this.#blocks.values()) this.#finish(block)
    this.#blocks.clear()
  }

  forget(path: string): void {
    for (const [id, block] of this.#blocks) if (isUnder(block.path, path)) this.#blocks.delete(id)
    for (const [root, last] of this.#said) if (isUnder(last.path, path)) this.#said.delete(root)
  }

  finalText(): string | undefined {
    const texts = [...this.#said.values()].flatMap(({ text }) => (text === '' ? [] : [text]))
    return texts.length === 0 ? undefined : texts.join('\n\n')
  }
}
