/**
 * Some models cannot answer in JSON: their package adds a tool to the request, which they call with the answer. The arguments of that
 * call are the text. What the model says beside it is the answer only if it does not call the tool.
 */
import type { LanguageModelV4CallOptions, LanguageModelV4StreamPart } from '@ai-sdk/provider'
import type { Emit } from './decode/answer-reader.ts'
import { fieldsOf, listOf, parsed, textOf } from './decode/fields.ts'

/** The tool that the package has added to the request's body, if it has. */
export function answerToolIn(
  body: string,
  { tools = [], responseFormat }: LanguageModelV4CallOptions,
): string | undefined {
  if (responseFormat?.type !== 'json') return undefined
  const sent = listOf(fieldsOf(parsed(body))?.['tools'])
  const declared = sent.flatMap((tool) =>
    'functionDeclarations' in tool ? listOf(tool['functionDeclarations']) : [tool],
  )
  const names = declared.map(({ name }) => textOf(name))
  return names.find((name) => name !== undefined && tools.every((tool) => tool.name !== name))
}

export function answerFromTool(tool: string, emit: Emit): Emit {
  const answers = new Set<string>()
  const withText = new Set<string>()
  let held: LanguageModelV4StreamPart[] = []
  let hasCalls = false

  return (part) => {
    switch (part.type) {
      case 'text-start':
      case 'text-delta':
      case 'text-end':
        held.push(part)
        return
      case 'tool-input-start':
        if (part.toolName !== tool) break
        answers.add(part.id)
        return emit({ type: 'text-start', id: part.id })
      case 'tool-input-delta':
        if (!answers.has(part.id)) break
        withText.add(part.id)
        return emit({ type: 'text-delta', id: part.id, delta: part.delta })
      case 'tool-input-end':
        if (answers.has(part.id)) return
        break
      case 'tool-call': {
        const { toolCallId: id, toolName, input } = part
        if (toolName === tool) {
          if (!withText.has(id)) emit({ type: 'text-delta', id, delta: input })
          return emit({ type: 'text-end', id })
        }
        hasCalls ||= part.providerExecuted !== true
        break
      }
      case 'finish': {
        if (answers.size === 0) for (const each of held) emit(each)
        held = []
        const isAnswer = answers.size > 0 && !hasCalls && part.finishReason.unified === 'tool-calls'
        if (isAnswer) return emit({ ...part, finishReason: { ...part.finishReason, unified: 'stop' } })
        break
      }
      default:
    }
    emit(part)
  }
}
