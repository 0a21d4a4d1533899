/** Text and reasoning of the answer. AG-UI allows open blocks side by side, so parallel answers need no order. */
import { LateMap } from '../../fold/late-map.ts'
import type { EntryOf } from '../../part/entry.ts'
import { isUnder, parentPath } from '../../part/path.ts'
import type { ProviderMetadata } from '../../part/model-part.ts'
import type { Sink } from '../wire.ts'
import type { AgUiEvent, AgUiOut } from './ag-ui-event.ts'
import { toEncryptedValue } from './encrypted-value.ts'
import type { AgUiIds } from './ag-ui-ids.ts'

export interface AgUiBlocks {
  /** A step of the answer starts: texts of answers are in the order in which these started. */
  startAnswer(path: string): void
  startText(entry: EntryOf<'text-start'>): void
  startReasoning(entry: EntryOf<'reasoning-start'>): void
  delta(entry: EntryOf<'text-delta'> | EntryOf<'reasoning-delta'>): void
  end(entry: Pick<EntryOf<'text-end'> | EntryOf<'reasoning-end'>, 'id' | 'providerMetadata'>): void
  /** Ends all blocks. */
  close(): void
  /** Forgets the blocks of an attempt that a crash superseded. */
  forget(path: string): void
  /** The text of the last model call of each answer. */
  finalText(): string | undefined
}

interface Block {
  path: string
  messageId: string
  isText: boolean
  said: { text: string }
  /** A signature. The last one counts. */
  metadata: ProviderMetadata | undefined
  sendDelta(text: string, timestamp: number): void
}

export function createAgUiBlocks(sink: Sink<AgUiEvent>, out: AgUiOut, ids: AgUiIds): AgUiBlocks {
  const blocks = new Map<string, Block>()
  /** By the path of the answering step, or of the list of steps in which it stands: what its last model call has said. */
  const said = new LateMap<string, { path: string; text: string }>()

  function lastSaid(path: string): { text: string } {
    const root = parentPath(path)
    let last = said.get(root)
    if (last?.path !== path) said.set(root, (last = { path, text: '' }))
    return last!
  }

  function finish({ isText, messageId, metadata }: Block): void {
    if (isText) return out.send({ type: 'TEXT_MESSAGE_END', messageId })
    out.send({ type: 'REASONING_MESSAGE_END', messageId })
    if (metadata !== undefined) {
      const encryptedValue = toEncryptedValue(metadata)
      out.send({ type: 'REASONING_ENCRYPTED_VALUE', subtype: 'message', entityId: messageId, encryptedValue })
    }
    out.send({ type: 'REASONING_END', messageId })
  }

  return {
    startAnswer(path) {
      if (!said.has(path)) said.set(path, { path: '', text: '' })
    },
    startText({ id, step: path }) {
      const messageId = ids.text(path)
      const sendDelta = sink.prepare((delta, timestamp) => {
        return { type: 'TEXT_MESSAGE_CONTENT', timestamp, messageId, delta }
      })
      blocks.set(id, {
        path,
        messageId,
        isText: true,
        said: lastSaid(path),
        metadata: undefined,
        sendDelta,
      })
      out.send({ type: 'TEXT_MESSAGE_START', messageId, role: 'assistant' })
    },
    startReasoning({ id, step: path, providerMetadata }) {
      const messageId = ids.next()
      const sendDelta = sink.prepare((delta, timestamp) => {
        return {
          type: 'REASONING_MESSAGE_CONTENT',
          timestamp,
          messageId,
          delta,
        }
      })
      blocks.set(id, {
        path,
        messageId,
        isText: false,
        said: { text: '' },
        metadata: providerMetadata,
        sendDelta,
      })
      out.send({ type: 'REASONING_START', messageId })
      out.send({ type: 'REASONING_MESSAGE_START', messageId, role: 'reasoning' })
    },
    delta({ id, delta, providerMetadata }) {
      const block = blocks.get(id)
      if (block === undefined) return
      if (providerMetadata !== undefined) block.metadata = providerMetadata
      // Clients older than 1.0 fail on an empty delta.
      if (delta === '') return
      if (block.isText) block.said.text += delta
      block.sendDelta(delta, out.timestamp)
    },
    end({ id, providerMetadata }) {
      const block = blocks.get(id)
      if (block === undefined) return
      blocks.delete(id)
      finish({ ...block, metadata: providerMetadata ?? block.metadata })
    },
    close() {
      for (const block of blocks.values()) finish(block)
      blocks.clear()
    },
    forget(path) {
      for (const [id, block] of blocks) if (isUnder(block.path, path)) blocks.delete(id)
      for (const [root, last] of said) if (isUnder(last.path, path)) said.delete(root)
    },
    finalText() {
      const texts = [...said.values()].flatMap(({ text }) => (text === '' ? [] : [text]))
      return texts.length === 0 ? undefined : texts.join('\n\n')
    },
  }
}
