/** Normalizes the output of Millrace and of the AI SDK's `streamText` to one form, so that tests can compare them. */
import type { TextStreamPart, ToolSet } from 'ai'
import type { ModelPart } from '../../part/model-part.ts'
import { parseInput } from '../../fold/tool-loop.ts'
import { toUsage } from '../../part/usage.ts'

/** Millrace's parts in that form. Source ids are left out, because some providers generate random ones. */
export function ours(parts: ModelPart[]) {
  return parts.flatMap((part): object[] => {
    switch (part.type) {
      case 'text-delta':
      case 'reasoning-delta':
        return part.delta === '' ? [] : [{ type: part.type, id: part.id, delta: part.delta, ...metadata(part) }]
      case 'tool-call': {
        const { type, toolCallId, toolName, input } = part
        return [{ type, toolCallId, toolName, input: parseInput(input), ...metadata(part) }]
      }
      case 'tool-result':
        return [{ type: part.type, toolCallId: part.toolCallId, output: part.result }]
      case 'finish': {
        const usage = toUsage(part.usage)!
        return [{ type: 'finish', reason: part.finishReason, usage, ...metadata(part) }]
      }
      default:
        return shared(part)
    }
  })
}

export function theirs(parts: TextStreamPart<ToolSet>[]) {
  return parts.flatMap((part): object[] => {
    switch (part.type) {
      case 'text-delta':
      case 'reasoning-delta':
        return part.text === '' ? [] : [{ type: part.type, id: part.id, delta: part.text, ...metadata(part) }]
      case 'tool-call': {
        const { type, toolCallId, toolName, input } = part
        return [{ type, toolCallId, toolName, input: input as unknown, ...metadata(part) }]
      }
      case 'tool-result':
        return [{ type: part.type, toolCallId: part.toolCallId, output: part.output as unknown }]
      case 'finish-step': {
        const { inputTokens, outputTokens, totalTokens, inputTokenDetails, outputTokenDetails } = part.usage
        const usage = {
          source: 'reported',
          ...known({
            inputTokens,
            outputTokens,
            totalTokens,
            reasoningTokens: outputTokenDetails.reasoningTokens,
            cachedInputTokens: inputTokenDetails.cacheReadTokens,
            cacheWriteInputTokens: inputTokenDetails.cacheWriteTokens,
          }),
        }
        const reason = { unified: part.finishReason, raw: part.rawFinishReason }
        return [{ type: 'finish', reason, usage, ...metadata(part) }]
      }
      default:
        return shared(part)
    }
  })
}

function shared(part: ModelPart | TextStreamPart<ToolSet>): object[] {
  switch (part.type) {
    case 'text-start':
    case 'text-end':
    case 'reasoning-start':
    case 'reasoning-end':
    case 'tool-input-end':
      return [{ type: part.type, id: part.id, ...metadata(part) }]
    case 'tool-input-start':
      return [{ type: part.type, id: part.id, toolName: part.toolName }]
    case 'tool-input-delta':
      return [{ type: part.type, id: part.id, delta: part.delta }]
    case 'source': {
      const { id: _, ...rest } = part
      return [rest]
    }
    case 'custom':
      return [{ type: part.type, kind: part.kind, ...metadata(part) }]
    default:
      return []
  }
}

function metadata({ providerMetadata }: { providerMetadata?: unknown }): object {
  return providerMetadata === undefined ? {} : { providerMetadata }
}

function known(counts: Record<string, number | undefined>): object {
  return Object.fromEntries(Object.entries(counts).filter(([, count]) => count !== undefined))
}
