/** Attributes of spans, by OpenTelemetry's conventions for generative AI. Other attributes begin with `millrace.`. */
import type { EntryOf, Entry } from '../../part/entry.ts'
import { kindOf } from '../../part/step-kind.ts'
import type { Usage } from '../../part/usage.ts'
import { redacted } from '../../fold/secret-forms.ts'
import type { Used } from '../../fold/usage-fold.ts'
import type { Attributes, Span } from './span.ts'
import type { Message } from '../../part/message.ts'

type Start = Pick<Span, 'name' | 'kind' | 'attributes'>

/**
 * Langfuse and others group traces by these. Every span has them: some backends look at spans one by one, and the run may be part of
 * its caller's trace.
 */
export function groupAttributes({ threadId, input }: EntryOf<'run-start'>): Attributes {
  return { 'session.id': threadId, 'user.id': userIn(input) }
}

const longestUser = 200

/**
 * The user, if the request names one: `user` of OpenAI's API, its successor `safety_identifier`, or `user_id` in `metadata`, as Anthropic's
 * has it. A redacted value names nobody.
 */
function userIn(input: unknown): string | undefined {
  const { user, safety_identifier, metadata } = (input ?? {}) as Record<string, unknown>
  const { user_id, userId } = (metadata ?? {}) as Record<string, unknown>
  const named = [user, (user as { id?: unknown } | null | undefined)?.id, safety_identifier, user_id, userId]
  return named.find(
    (each): each is string =>
      typeof each === 'string' && each !== '' && each.length <= longestUser && !each.includes(redacted),
  )
}

export function stepStart(entry: EntryOf<'step-start'>, conversation: string): Start {
  const { step, stepType, attempt, toolName, toolCallId, agent } = entry
  const kind = kindOf(entry)
  const own = { 'millrace.step.path': step, 'millrace.step.type': stepType, 'millrace.step.attempt': attempt }
  if (kind === 'model-call') {
    const attributes = { 'gen_ai.operation.name': 'chat', 'gen_ai.conversation.id': conversation, ...own }
    return { name: 'chat', kind: 'client', attributes }
  }
  if (kind === 'tool-call' || kind === 'client-tool') {
    const tool = { 'gen_ai.tool.name': toolName, 'gen_ai.tool.call.id': toolCallId }
    if (agent !== undefined) return agentStart(agent, conversation, { ...tool, 'gen_ai.tool.type': 'agent', ...own })
    const attributes = { 'gen_ai.operation.name': 'execute_tool', ...tool, 'gen_ai.tool.type': 'function', ...own }
    return { name: `execute_tool ${toolName ?? ''}`.trim(), kind: 'internal', attributes }
  }
  const called = agent ?? (stepType === 'cli-agent' ? lastName(step) : undefined)
  if (called !== undefined) return agentStart(called, conversation, own)
  return { name: `${stepType} ${toolName ?? lastName(step)}`, kind: 'internal', attributes: own }
}

function agentStart(agent: string, conversation: string, more: Attributes): Start {
  const about = { 'gen_ai.agent.name': agent, 'gen_ai.conversation.id': conversation }
  const attributes = { 'gen_ai.operation.name': 'invoke_agent', ...about, ...more }
  return { name: `invoke_agent ${agent}`, kind: 'internal', attributes }
}

/** The attributes of a model call once its model is known. */
export function chatStart(model: string, before: Attributes): Pick<Span, 'name' | 'attributes'> {
  const { provider, id } = splitModel(model)
  const names = { 'gen_ai.provider.name': provider, 'gen_ai.request.model': id }
  return { name: `chat ${id}`, attributes: { ...before, ...names } }
}

export function usageAttributes(usage: Usage): Attributes {
  return {
    'gen_ai.usage.input_tokens': usage.inputTokens,
    'gen_ai.usage.output_tokens': usage.outputTokens,
    'gen_ai.usage.cache_read.input_tokens': usage.cachedInputTokens,
    'gen_ai.usage.cache_creation.input_tokens': usage.cacheWriteInputTokens,
    'gen_ai.usage.reasoning.output_tokens': usage.reasoningTokens,
    'millrace.usage.source': usage.source,
  }
}

/** Of a run whose cost is unknown. */
export function priceAttributes({ knownCost, unpriced }: Used): Attributes {
  return unpriced === 0 ? {} : { 'millrace.usage.known_cost': knownCost, 'millrace.usage.unpriced': unpriced }
}

/** The names that the conventions give to providers. */
const providers: ReadonlyMap<string, string> = new Map([
  ['google', 'gcp.gemini'],
  ['gemini', 'gcp.gemini'],
  ['vertex', 'gcp.vertex_ai'],
  ['bedrock', 'aws.bedrock'],
  ['azure', 'azure.ai.openai'],
  ['mistral', 'mistral_ai'],
  ['xai', 'x_ai'],
])
/** Of models that YAML may name without their provider. */
const families: readonly (readonly [RegExp, string])[] = [
  [/^gemini/u, 'gcp.gemini'],
  [/^(gpt|o\d|chatgpt)/u, 'openai'],
  [/^claude/u, 'anthropic'],
]

function splitModel(model: string): { provider: string; id: string } {
  const colon = model.indexOf(':')
  if (colon > 0) {
    const prefix = model.slice(0, colon)
    return { provider: providers.get(prefix) ?? prefix, id: model.slice(colon + 1) || model }
  }
  return { provider: families.find(([form]) => form.test(model))?.[1] ?? 'unknown', id: model }
}

function lastName(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1)
}

/** The content of a model call, in the form of OpenTelemetry's conventions: only on request. */
export interface Content {
  apply(entry: Entry): void
  read(): Attributes
}

/** Collectors refuse very long attributes. */
const longest = 60_000

export function createContent(): Content {
  let prompt: EntryOf<'prompt'> | undefined
  let finishReason: string | undefined
  const texts = { text: '', reasoning: '' }
  const calls: object[] = []
  return {
    apply(entry) {
      if (entry.type === 'prompt') prompt = entry
      else if (entry.type === 'text-delta') texts.text += entry.delta
      else if (entry.type === 'reasoning-delta') texts.reasoning += entry.delta
      else if (entry.type === 'tool-call') {
        calls.push({ type: 'tool_call', id: entry.toolCallId, name: entry.toolName, arguments: entry.input })
      } else if (entry.type === 'finish') finishReason = entry.finishReason.unified
    },
    read() {
      const parts = [
        ...(texts.reasoning === '' ? [] : [{ type: 'reasoning', content: texts.reasoning }]),
        ...(texts.text === '' ? [] : [{ type: 'text', content: texts.text }]),
        ...calls,
      ]
      const { system, messages = [] } = prompt ?? {}
      return {
        'gen_ai.system_instructions': system === undefined ? undefined : toText([{ type: 'text', content: system }]),
        'gen_ai.input.messages': toText(messages.map(toMessage)),
        'gen_ai.output.messages': toText([{ role: 'assistant', parts, finish_reason: finishReason }]),
      }
    },
  }
}

function toMessage({ role, content }: Message): object {
  const parts = typeof content === 'string' ? [{ type: 'text', text: content }] : (content as { type: string }[])
  return { role, parts: parts.map(toPart) }
}

function toPart(part: { type: string }): object {
  const { type, text, toolCallId: id, toolName: name, input, output } = part as Record<string, unknown> & typeof part
  if (type === 'text' || type === 'reasoning') return { type, content: text }
  if (type === 'tool-call') return { type: 'tool_call', id, name, arguments: input }
  if (type === 'tool-result') return { type: 'tool_call_response', id, result: output }
  return { type }
}

function toText(value: unknown): string {
  const text = JSON.stringify(value)
  return text.length > longest ? `${text.slice(0, longest)}…` : text
}
