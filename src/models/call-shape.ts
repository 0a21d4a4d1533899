/** Adapts a call to the servers of its protocol, for messages of any client and turns of any model. */
import type { LanguageModelV4CallOptions, LanguageModelV4Message } from '@ai-sdk/provider'
import { ownValue } from '../part/own-value.ts'
import { fieldsOf, listOf } from './decode/fields.ts'
import { metadataKeyOf } from './metadata-key.ts'
import { placeCache } from './prompt-cache.ts'
import type { EndpointProtocol } from './providers.ts'
import { placeToolFiles } from './tool-files.ts'

type CallOptions = LanguageModelV4CallOptions
type Prompt = LanguageModelV4Message[]
type Assistant = Extract<LanguageModelV4Message, { role: 'assistant' }>

/**
 * `provider`: the name of the endpoint. `laterAsUser`: later system messages become text of the user. `withoutCache`: neither a mark nor a key for
 * prompt caching is sent.
 */
export interface CallShape {
  protocol: EndpointProtocol
  provider: string
  laterAsUser: boolean
  withoutCache: boolean
}

export function shapeCall(given: CallOptions, shape: CallShape): CallOptions {
  const { protocol, provider, laterAsUser, withoutCache } = shape
  const key = protocol === 'openai-chat' ? metadataKeyOf(provider, given.providerOptions) : 'openai'
  const cached = placeCache(given, { protocol, optionsKey: key, refused: withoutCache })
  const call = { ...cached, prompt: placeToolFiles(cached.prompt, protocol) }
  switch (protocol) {
    case 'openai-chat': {
      const prompt = joinLeading(laterAsUser ? laterToUser(call.prompt) : call.prompt)
      return withPassedOn({ ...call, prompt: withReasoningDetails(prompt, key) }, key)
    }
    case 'google':
      // Its package accepts none.
      return { ...call, prompt: laterToUser(call.prompt) }
    case 'anthropic':
      return withLegalThinking(
        withCalledTools({ ...call, prompt: withLegalIds(laterAsUser ? laterToUser(call.prompt) : call.prompt) }),
      )
    case 'openai-responses':
      return laterAsUser ? { ...call, prompt: laterToUser(call.prompt) } : call
  }
}

/** The package sends the options under the endpoint's own name. Servers refuse `parallel_tool_calls` without tools. */
function withPassedOn(call: CallOptions, key: string): CallOptions {
  const { parallel_tool_calls: parallel, prompt_cache_retention: retention } =
    call.providerOptions?.['openaiCompatible'] ?? {}
  const passed = {
    ...(parallel !== undefined && (call.tools ?? []).length > 0 && { parallel_tool_calls: parallel }),
    ...(retention !== undefined && { prompt_cache_retention: retention }),
  }
  if (Object.keys(passed).length === 0) return call
  return { ...call, providerOptions: { ...call.providerOptions, [key]: { ...passed, ...call.providerOptions?.[key] } } }
}

export function hasLaterSystem({ prompt }: Pick<CallOptions, 'prompt'>): boolean {
  return prompt.some(
    ({ role }, i) => role === 'system' && prompt.slice(0, i).some((before) => before.role !== 'system'),
  )
}

/** Many chat templates support only one system message. */
function joinLeading(prompt: Prompt): Prompt {
  const rest = prompt.findIndex(({ role }) => role !== 'system')
  const leading = prompt.slice(0, rest < 0 ? prompt.length : rest)
  if (leading.length < 2) return prompt
  const content = leading.map((message) => message.content as string).join('\n\n')
  return [{ role: 'system', content }, ...prompt.slice(leading.length)]
}

function laterToUser(prompt: Prompt): Prompt {
  if (!hasLaterSystem({ prompt })) return prompt
  let isLeading = true
  return prompt.map((message): LanguageModelV4Message => {
    isLeading &&= message.role === 'system'
    if (isLeading || message.role !== 'system') return message
    return { role: 'user', content: [{ type: 'text', text: `<system>\n${message.content}\n</system>` }] }
  })
}

/** OpenRouter's: signed or encrypted reasoning is returned unchanged. */
function withReasoningDetails(prompt: Prompt, key: string): Prompt {
  return prompt.map((message) => {
    if (message.role !== 'assistant') return message
    const details = message.content.flatMap((part) =>
      part.type === 'reasoning' ? listOf(fieldsOf(ownValue(part.providerOptions, key))?.['reasoningDetails']) : [],
    )
    if (details.length === 0) return message
    const openaiCompatible = { ...message.providerOptions?.['openaiCompatible'], reasoning_details: details as never }
    return { ...message, providerOptions: { ...message.providerOptions, openaiCompatible } }
  })
}

/**
 * Anthropic rejects a conversation with tool calls if the request declares no tools, as in a step that answers after a router. So the called tools
 * are declared, with `toolChoice: none`.
 */
function withCalledTools(call: CallOptions): CallOptions {
  if ((call.tools ?? []).length > 0) return call
  const parts = call.prompt.flatMap(({ role, content }) => (role === 'assistant' ? content : []))
  const names = new Set(parts.flatMap((part) => (part.type === 'tool-call' ? [part.toolName] : [])))
  if (names.size === 0) return call
  const tools = [...names].map((name) => ({
    type: 'function' as const,
    name,
    inputSchema: { type: 'object' as const },
  }))
  return { ...call, tools, toolChoice: { type: 'none' } }
}

/**
 * A thinking model requires that a continued round of tool calls begins with its own signed thought. If another model made the round, thinking is
 * turned off. Messages that come with results of tools are sent with them, so the round may have begun before them or behind them.
 */
function withLegalThinking(call: CallOptions): CallOptions {
  const { prompt } = call
  const isAsked = ({ role }: LanguageModelV4Message) => role === 'user' || role === 'system'
  const isBehindResults = (at: number) =>
    prompt[prompt.slice(0, at).findLastIndex((each) => !isAsked(each))]?.role === 'tool'
  const begins = [
    prompt.findLastIndex(isAsked),
    prompt.findLastIndex((message, i) => isAsked(message) && !isBehindResults(i)),
  ]
  if (begins.every((at) => beginsWithThought(prompt.slice(at + 1)))) return call
  const { reasoning: _, providerOptions, ...rest } = call
  const { thinking: __, ...anthropic } = providerOptions?.['anthropic'] ?? {}
  return { ...rest, ...(providerOptions && { providerOptions: { ...providerOptions, anthropic } }) }
}

/** Whether the first reply of these messages calls no tool, or begins with a thought that its model has signed. */
function beginsWithThought(messages: Prompt): boolean {
  const first = messages.find((message): message is Assistant => message.role === 'assistant')
  if (first === undefined || !first.content.some(({ type }) => type === 'tool-call')) return true
  const thought = first.content.find(({ type }) => type !== 'custom')
  const own = thought?.type === 'reasoning' ? fieldsOf(thought.providerOptions?.['anthropic']) : undefined
  return own?.['signature'] !== undefined || own?.['redactedData'] !== undefined
}

/** Anthropic accepts letters, digits, `_` and `-` in call ids, and each id once; other providers send more. */
function withLegalIds(prompt: Prompt): Prompt {
  const parts = prompt.flatMap(({ content }): object[] => (typeof content === 'string' ? [] : content))
  const all = new Set(parts.flatMap((part) => ('toolCallId' in part ? [part.toolCallId as string] : [])))
  const ids = new Map<string, string>()
  for (const id of all) {
    if (/^[\w-]+$/u.test(id)) continue
    let n = ids.size
    while (all.has(`call_${n}`)) n++
    all.add(`call_${n}`)
    ids.set(id, `call_${n}`)
  }
  if (ids.size === 0) return prompt
  const legal = <T extends object>(part: T): T =>
    'toolCallId' in part ? { ...part, toolCallId: ids.get(part.toolCallId as string) ?? part.toolCallId } : part
  return prompt.map((message) =>
    message.role === 'assistant' || message.role === 'tool'
      ? ({ ...message, content: message.content.map(legal) } as LanguageModelV4Message)
      : message,
  )
}
