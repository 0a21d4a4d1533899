/** Tool calls of OpenAI-compatible servers. Some send the name of a tool after the first arguments: those wait for it. */
import type { SharedV4ProviderMetadata } from '@ai-sdk/provider'
import { StreamingToolCallTracker } from '@ai-sdk/provider-utils'
import type { ChatToolCall } from './chunk.ts'
import type { Emit } from '../gate.ts'

interface Waiting {
  id: string | null
  text: string
  extra: ChatToolCall['extra_content']
}

export interface CompatibleCalls {
  read(call: ChatToolCall): void
  /** Throws, as the package does, if a call never got a name. */
  end(): void
}

export function createCompatibleCalls(emit: Emit, generateId: () => string, metadataKey: string): CompatibleCalls {
  const tracker = new StreamingToolCallTracker<ChatToolCall>(
    { enqueue: emit },
    {
      generateId,
      extractMetadata({ extra_content: extra }) {
        const thoughtSignature = extra?.google?.thought_signature
        return thoughtSignature ? { [metadataKey]: { thoughtSignature } } : undefined
      },
      buildToolCallProviderMetadata: (metadata: SharedV4ProviderMetadata | undefined) => metadata,
    },
  )
  const waiting = new Map<number, Waiting>()
  const named = new Set<number>()

  function read(call: ChatToolCall): void {
    const { index, id, extra_content: extra } = call
    const { name, arguments: text } = call.function
    if (index === null || index === undefined || named.has(index)) {
      // Without fields that the schema removes: an error about the call has it as its data.
      return tracker.processDelta({ index, id, function: { name, arguments: text }, extra_content: extra })
    }
    const first = waiting.get(index)
    const held: Waiting = {
      id: first?.id ?? id ?? null,
      text: (first?.text ?? '') + (text ?? ''),
      extra: first?.extra ?? extra ?? null,
    }
    waiting.set(index, held)
    if (name === null || name === undefined) return
    tracker.processDelta({
      index,
      id: held.id,
      function: { name, arguments: held.text },
      extra_content: held.extra ?? undefined,
    })
    waiting.delete(index)
    named.add(index)
  }

  return {
    read,
    end() {
      for (const [index, { id, text }] of waiting) tracker.processDelta({ index, id, function: { arguments: text } })
      waiting.clear()
      tracker.flush()
    },
  }
}
