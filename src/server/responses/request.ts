/**
 * Checks a Responses request. A field that is not known is ignored and named in `$input.ignored`, because clients send hints of many servers, and
 * some ask again and again when one is refused. A value that asks for another answer than this server can give is refused by its name.
 */
import { ownValue } from '../../part/own-value.ts'
import { instructionsId, type Message } from '../../part/message.ts'
import { omitUndefined } from '../../part/omit-undefined.ts'
import type { CallSettings } from '../../part/part.ts'
import { BadParameter } from '../../wire/openai/from-openai-messages.ts'
import { fromResponsesInput, type ResponsesInput } from '../../wire/responses/from-responses-input.ts'
import type { EchoedRequest } from '../../wire/responses/response-object.ts'
import { refusePipeline, toEffort, toFields, toFlag, toNumber, toText } from '../openai/parameters.ts'
import { readModel } from '../openai/request.ts'
import { UnsupportedParameter } from './error.ts'
import { readChoice, readFormat, readTools } from './tools.ts'

export interface ResponsesRequest {
  model: string
  sent: ResponsesInput
  /** The request's instructions, which no later turn has. */
  lead: Message[]
  settings: CallSettings
  /** `$input` without the messages. */
  input: Record<string, unknown>
  /** What the response repeats. */
  echo: EchoedRequest
  stream: boolean
  background: boolean
  previousResponseId: string | undefined
  /** Codex's ids of its turn. */
  turnId: string | undefined
}

type Body = Record<string, unknown>

/** Fields that mean something here, or that are hints for a provider of another kind. */
const known: ReadonlySet<string> = new Set([
  'model',
  'input',
  'instructions',
  'stream',
  'stream_options',
  'background',
  'store',
  'previous_response_id',
  'tools',
  'tool_choice',
  'parallel_tool_calls',
  'text',
  'reasoning',
  'temperature',
  'top_p',
  'presence_penalty',
  'frequency_penalty',
  'max_output_tokens',
  'metadata',
  'user',
  'safety_identifier',
  'client_metadata',
  'prompt_cache_key',
  'prompt_cache_retention',
  'include',
  'service_tier',
  'truncation',
  'top_logprobs',
  'n',
])

/** Fields that ask for what is not here. Their neutral values are accepted. */
const refused: Readonly<Record<string, { neutral: unknown[]; cure: string }>> = {
  n: { neutral: [1], cure: 'Send several requests.' },
  logprobs: { neutral: [false], cure: '' },
  top_logprobs: { neutral: [0], cure: '' },
  prompt: { neutral: [], cure: 'Prompt templates are agents here: name one as the model.' },
  conversation: { neutral: [], cure: 'Send the header X-Thread-Id, or previous_response_id.' },
}

/** At most this many ignored fields are named. */
const mostIgnored = 20

export interface ResponsesRequestContext {
  /** Keys that the agent's `input` declares. */
  declared: readonly string[]
  /** The run that a token of reasoning names. */
  runOf: (token: string) => string | undefined
  /** Whether an agent has this id. */
  isAgent: (id: string) => boolean
}

/** Throws {@link BadParameter}. */
export function readResponsesRequest(
  body: Body,
  { declared, runOf, isAgent }: ResponsesRequestContext,
): ResponsesRequest {
  const given = (name: string) => ownValue(body, name) ?? undefined
  const model = readModel(body)
  refusePipeline(body, declared)
  for (const [name, { neutral, cure }] of Object.entries(refused)) {
    if (given(name) !== undefined && !neutral.includes(given(name)))
      throw new UnsupportedParameter(name, `is not supported. ${cure}`.trimEnd())
  }
  if (given('input') === undefined) throw new BadParameter('input', 'is missing: a string or an array of items.')
  const sent = fromResponsesInput(body['input'], runOf)
  const instructions = optional(given('instructions'), 'instructions', toText)
  const {
    tools,
    ignored: unoffered,
    approvals,
  } = given('tools') === undefined ? { tools: [], ignored: [], approvals: [] } : readTools(body['tools'], isAgent)
  const names = tools.map(({ name }) => String(name))
  const choice = given('tool_choice') === undefined ? undefined : readChoice(body['tool_choice'], names)
  const offered = choice?.allowed === undefined ? tools : tools.filter(({ name }) => choice.allowed!.has(String(name)))
  const text = optional(given('text'), 'text', toFields)
  const reasoning = optional(given('reasoning'), 'reasoning', toFields)
  const metadata = optional(given('metadata'), 'metadata', toFields)
  const user = optional(given('user'), 'user', toText)
  const ignored: string[] = [...sent.ignored, ...unoffered]
  const input: Body = {}
  for (const [name, value] of Object.entries(body)) {
    if (
      value === null ||
      value === undefined ||
      known.has(name) ||
      Object.hasOwn(refused, name) ||
      name === '__proto__'
    )
      continue
    if (declared.includes(name)) Object.assign(input, { [name]: value })
    else ignored.push(name.slice(0, 100))
  }
  const system = [
    ...(instructions === undefined ? [] : [instructions]),
    ...sent.messages.flatMap(({ message }) => (message.role === 'system' ? [message.content] : [])),
  ]
  const lead: Message[] =
    instructions === undefined || instructions === ''
      ? []
      : [{ role: 'system', id: instructionsId, content: instructions }]
  const flag = (name: string) => optional(given(name), name, toFlag)
  const line = (name: string) => optional(given(name), name, toText)
  const count = (name: string) => optional(given(name), name, (value) => toNumber(value, name, 1, 1e9, true))
  const echo = omitUndefined({
    background: flag('background'),
    approvals: approvals.length === 0 ? undefined : approvals,
    encrypted: asksForTokens(given('include')),
    store: flag('store'),
    parallel_tool_calls: flag('parallel_tool_calls'),
    max_output_tokens: count('max_output_tokens'),
    max_tool_calls: count('max_tool_calls'),
    previous_response_id: line('previous_response_id'),
    prompt_cache_key: line('prompt_cache_key'),
    safety_identifier: line('safety_identifier'),
    service_tier: line('service_tier'),
    instructions: instructions?.length,
    reasoning,
    text,
    tool_choice: given('tool_choice'),
  })
  return {
    model,
    sent,
    lead,
    settings: readSettings(body, { text, reasoning, toolChoice: choice?.toolChoice }),
    input: {
      ...input,
      ...omitUndefined({ metadata, user }),
      ...(system.length > 0 && { instructions: system.join('\n\n') }),
      ...(offered.length > 0 && { tools: offered }),
      ...(ignored.length > 0 && { ignored: ignored.slice(0, mostIgnored) }),
    },
    echo,
    stream: flag('stream') ?? false,
    background: echo.background ?? false,
    previousResponseId: echo.previous_response_id,
    turnId: turnIdOf(given('client_metadata')),
  }
}

function readSettings(
  body: Body,
  asked: { text: Body | undefined; reasoning: Body | undefined; toolChoice: CallSettings['toolChoice'] },
): CallSettings {
  const { text, reasoning, toolChoice } = asked
  const number = (name: string, from: number, to: number) =>
    optional(ownValue(body, name) ?? undefined, name, (value) => toNumber(value, name, from, to))
  const limit = ownValue(body, 'max_output_tokens') ?? undefined
  const format = text?.['format'] == null ? {} : readFormat(text['format'])
  const { effort, summary } = reasoning ?? {}
  const isSingle = ownValue(body, 'parallel_tool_calls') === false
  const openai = omitUndefined({
    parallelToolCalls: isSingle ? false : undefined,
    promptCacheKey: ownValue(body, 'prompt_cache_key') ?? undefined,
    reasoningSummary: typeof summary === 'string' ? summary : undefined,
  })
  const options = { ...format.providerOptions }
  if (Object.keys(openai).length > 0) options['openai'] = { ...options['openai'], ...openai }
  if (isSingle) {
    options['anthropic'] = { disableParallelToolUse: true }
    options['openaiCompatible'] = { ...options['openaiCompatible'], parallel_tool_calls: false }
  }
  return omitUndefined({
    temperature: number('temperature', 0, 2),
    topP: number('top_p', 0, 1),
    presencePenalty: number('presence_penalty', -2, 2),
    frequencyPenalty: number('frequency_penalty', -2, 2),
    maxOutputTokens: typeof limit === 'number' ? limit : undefined,
    reasoning: effort == null ? undefined : toEffort(effort, 'reasoning.effort'),
    toolChoice,
    responseFormat: format.responseFormat,
    providerOptions: Object.keys(options).length === 0 ? undefined : options,
  }) as CallSettings
}

/** Other values of `include` ask for what this server does not have, or sends anyway. */
export function asksForTokens(include: unknown): true | undefined {
  return Array.isArray(include) && include.includes('reasoning.encrypted_content') ? true : undefined
}

/** Of a coding CLI. It is a hint, so it is not checked. */
function turnIdOf(metadata: unknown): string | undefined {
  if (typeof metadata !== 'object' || metadata === null) return undefined
  const { turn_id: id } = metadata as Body
  return typeof id === 'string' && id !== '' && id.length <= 256 ? id : undefined
}

function optional<T>(value: unknown, name: string, read: (value: unknown, name: string) => T): T | undefined {
  return value === undefined || value === null ? undefined : read(value, name)
}
