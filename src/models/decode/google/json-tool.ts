/**
 * Some of Google's models cannot answer in JSON and call tools as well. The package then has them call a tool with the answer, and
 * turns that call into the text.
 */
import type { LanguageModelV4StreamPart } from '@ai-sdk/provider'

type Emit = (part: LanguageModelV4StreamPart) => void

export function readJsonTool(name: string, emit: Emit): Emit {
  const answers = new Set<string>()
  const withText = new Set<string>()
  let hasAnswer = false
  let hasCall = false

  return (part) => {
    switch (part.type) {
      case 'text-start':
      case 'text-delta':
      case 'text-end':
        // What the model says beside its answer is not part of it.
        return
      case 'tool-input-start':
        if (part.toolName !== name) break
        answers.add(part.id)
        return emit({ type: 'text-start', id: part.id, ...metadataOf(part) })
      case 'tool-input-delta':
        if (!answers.has(part.id)) break
        if (part.delta.length > 0) withText.add(part.id)
        return emit({ type: 'text-delta', id: part.id, delta: part.delta, ...metadataOf(part) })
      case 'tool-input-end':
        if (answers.has(part.id)) return
        break
      case 'tool-call': {
        const { toolCallId: id, toolName, input, providerExecuted } = part
        if (toolName !== name) {
          if (!providerExecuted) hasCall = true
          break
        }
        if (!withText.has(id)) emit({ type: 'text-delta', id, delta: input, ...metadataOf(part) })
        hasAnswer = true
        return emit({ type: 'text-end', id, ...metadataOf(part) })
      }
      case 'finish':
        if (!hasAnswer || hasCall || part.finishReason.unified !== 'tool-calls') break
        return emit({ ...part, finishReason: { ...part.finishReason, unified: 'stop' } })
      default:
    }
    emit(part)
  }
}

function metadataOf({ providerMetadata }: Extract<LanguageModelV4StreamPart, { providerMetadata?: unknown }>) {
  return providerMetadata && { providerMetadata }
}

/** The tool that the package has added to the request, if it has. */
export function jsonToolIn(body: unknown, tools: readonly { name: string }[]): string | undefined {
  const { tools: sent } = (body ?? {}) as { tools?: { functionDeclarations?: { name: string }[] }[] }
  const declared = (Array.isArray(sent) ? sent : []).flatMap((tool) => tool.functionDeclarations ?? [])
  return declared.find(({ name }) => tools.every((tool) => tool.name !== name))?.name
}
