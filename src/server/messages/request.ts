/**
 * Checks a Messages request. A field that is not known is ignored and named in `$input.ignored`: Claude Code asks five more times, with other tools, when one
 * is refused. A value that asks for another answer than this server can give is refused by its name.
 */
import { ownValue } from '../../part/own-value.ts'
import { instructionsId, type Message } from '../../part/message.ts'
import { omitUndefined } from '../../part/omit-undefined.ts'
import type { CallSettings } from '../../part/part.ts'
import { BadParameter } from '../../wire/openai/from-openai-messages.ts'
import { fromMessages, systemText, type SentMessages } from '../../wire/messages/from-messages.ts'
import type { MessagesOptions } from '../../wire/messages/messages-answer.ts'
import { refusePipeline, toEffort, toFields, toFlag, toNumber, toText } from '../openai/parameters.ts'
import { readModel } from '../openai/request.ts'
import { readChoice, readFormat, readTools } from './tools.ts'

export interface MessagesRequest {
  model: string
  sent: SentMessages
  /** The request's system prompt, which no later turn has. */
  lead: Message[]
  settings: CallSettings
  /** `$input` without the messages. */
  input: Record<string, unknown>
  stream: boolean
  thinking: NonNullable<MessagesOptions['thinking']>
  /** It has no tools and asks for JSON: coding CLIs write titles so. */
  isAside: boolean
}

type Body = Record<string, unknown>

/** Fields that mean something here, or that are hints for a provider of another kind. */
const known: ReadonlySet<string> = new Set([
  'model',
  'messages',
  'system',
  'max_tokens',
  'stream',
  'tools',
  'tool_choice',
  'thinking',
  'output_config',
  'output_format',
  'temperature',
  'top_p',
  'top_k',
  'stop_sequences',
  'metadata',
  'cache_control',
  'context_management',
  'safeguards',
  'service_tier',
  'betas',
])

/** At most this many ignored fields are named. */
const mostIgnored = 20
/** The first line of Claude Code's prompt is for Anthropic's accounts. It changes, and says nothing to a model. */
const billing = /^x-anthropic-billing-header:[^\n]*\n?/u

export interface MessagesContext {
  /** Keys that the agent's `input` declares. */
  declared: readonly string[]
  /** The run that a token of reasoning names. */
  runOf: (token: string) => string | undefined
}

/** Throws {@link BadParameter}. */
export function readMessagesRequest(body: Body, { declared, runOf }: MessagesContext): MessagesRequest {
  const given = (name: string) => ownValue(body, name) ?? undefined
  const model = readModel(body)
  refusePipeline(body, declared)
  if (given('messages') === undefined) throw new BadParameter('messages', 'is missing: an array of {role, content}.')
  const sent = fromMessages(body['messages'], runOf)
  const prompt = given('system') === undefined ? [] : readSystem(body['system'])
  const { tools, ignored: unoffered } =
    given('tools') === undefined ? { tools: [], ignored: [] } : readTools(body['tools'], sent.referenced)
  const names = tools.map(({ name }) => String(name))
  const choice = given('tool_choice') === undefined ? undefined : readChoice(body['tool_choice'], names)
  const output = optional(given('output_config'), 'output_config', toFields)
  const thinking = optional(given('thinking'), 'thinking', toFields)
  const metadata = optional(given('metadata'), 'metadata', toFields)
  const responseFormat =
    output?.['format'] != null
      ? readFormat(output['format'], 'output_config.format')
      : optional(given('output_format'), 'output_format', readFormat)
  const ignored: string[] = [...sent.ignored, ...unoffered]
  const input: Body = {}
  for (const [name, value] of Object.entries(body)) {
    if (value === null || value === undefined || known.has(name) || name === '__proto__') continue
    if (declared.includes(name)) Object.assign(input, { [name]: value })
    else ignored.push(name.slice(0, 100))
  }
  const instructions = prompt.join('\n\n')
  const system = [
    ...(instructions === '' ? [] : [instructions]),
    ...sent.messages.flatMap(({ message }) => (message.role === 'system' ? [message.content] : [])),
  ]
  const user = metadata?.['user_id']
  return {
    model,
    sent,
    lead: instructions === '' ? [] : [toLead(instructions, body['system'])],
    settings: readSettings(body, { output, thinking, choice, responseFormat }),
    input: {
      ...input,
      ...omitUndefined({ metadata, user: typeof user === 'string' ? user : undefined }),
      ...(system.length > 0 && { instructions: system.join('\n\n') }),
      ...(tools.length > 0 && { tools }),
      ...(ignored.length > 0 && { ignored: ignored.slice(0, mostIgnored) }),
    },
    stream: optional(given('stream'), 'stream', toFlag) ?? false,
    thinking: shownThinking(thinking),
    isAside: tools.length === 0 && responseFormat !== undefined,
  }
}

/** Its blocks. */
function readSystem(value: unknown): string[] {
  if (typeof value !== 'string' && !Array.isArray(value)) {
    throw new BadParameter('system', 'must be a string or an array of text blocks.')
  }
  const blocks = typeof value === 'string' ? [{ type: 'text', text: value }] : (value as unknown[])
  return blocks
    .map((block, i) => {
      const place = typeof value === 'string' ? 'system' : `system[${i}]`
      const fields = toFields(block, place)
      if (fields['type'] === 'text' && typeof fields['text'] !== 'string') {
        throw new BadParameter(`${place}.text`, 'must be a string.')
      }
      return systemText([[place, fields]]).replace(billing, '')
    })
    .filter((text) => text !== '')
}

function toLead(content: string, system: unknown): Message {
  const message: Message = { role: 'system', id: instructionsId, content }
  const isCached = Array.isArray(system) && system.some((block) => toFields(block, 'system')['cache_control'] != null)
  // Those of the messages are not kept: a provider takes four of them, and each turn of a conversation brings new ones.
  return isCached ? { ...message, providerOptions: { anthropic: { cacheControl: { type: 'ephemeral' } } } } : message
}

interface Asked {
  output: Body | undefined
  thinking: Body | undefined
  choice: ReturnType<typeof readChoice> | undefined
  responseFormat: CallSettings['responseFormat']
}

function readSettings(body: Body, { output, thinking, choice, responseFormat }: Asked): CallSettings {
  const number = (name: string, from: number, to: number, whole = false) =>
    optional(ownValue(body, name) ?? undefined, name, (value) => toNumber(value, name, from, to, whole))
  const effort = output?.['effort'] ?? undefined
  const topK = number('top_k', 0, 1e6, true)
  const budget = thinking?.['type'] === 'enabled' ? thinking['budget_tokens'] : undefined
  const anthropic = omitUndefined({
    disableParallelToolUse: choice?.isSingle === true ? true : undefined,
    thinking:
      budget === undefined
        ? undefined
        : { type: 'enabled', budgetTokens: toNumber(budget, 'thinking.budget_tokens', 1, 1e9, true) },
  })
  const options: NonNullable<CallSettings['providerOptions']> = {}
  if (Object.keys(anthropic).length > 0) options['anthropic'] = anthropic
  const compatible = omitUndefined({
    top_k: topK,
    parallel_tool_calls: choice?.isSingle === true ? false : undefined,
  })
  if (choice?.isSingle === true) options['openai'] = { parallelToolCalls: false }
  if (Object.keys(compatible).length > 0) options['openaiCompatible'] = compatible
  return omitUndefined({
    temperature: number('temperature', 0, 2),
    topP: number('top_p', 0, 1),
    maxOutputTokens: number('max_tokens', 1, 1e9, true),
    stopSequences: optional(ownValue(body, 'stop_sequences') ?? undefined, 'stop_sequences', toTexts),
    reasoning:
      thinking?.['type'] === 'disabled'
        ? ('none' as const)
        : effort === undefined
          ? undefined
          : toEffort(effort, 'output_config.effort'),
    toolChoice: choice?.toolChoice,
    responseFormat,
    providerOptions: Object.keys(options).length === 0 ? undefined : options,
  }) as CallSettings
}

function shownThinking(thinking: Body | undefined): MessagesRequest['thinking'] {
  if (thinking?.['type'] === 'disabled') return 'hidden'
  return thinking?.['display'] === 'omitted' ? 'omitted' : 'shown'
}

const maxStops = 100

function toTexts(value: unknown, name: string): string[] | undefined {
  if (!Array.isArray(value) || value.length > maxStops) {
    throw new BadParameter(name, `must be an array of at most ${maxStops} strings.`)
  }
  const texts = (value as unknown[]).map((each, i) => toText(each, `${name}[${i}]`))
  return texts.length === 0 ? undefined : texts
}

function optional<T>(value: unknown, name: string, read: (value: unknown, name: string) => T): T | undefined {
  return value === undefined || value === null ? undefined : read(value, name)
}
