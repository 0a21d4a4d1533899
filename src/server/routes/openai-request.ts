/**
 * Checks an OpenAI request: every parameter is supported or refused by name. Neutral values of unsupported parameters
 * (`n: 1`, `logprobs: false`) are accepted, because some clients always send them.
 *
 * By hand: with zod it had the same length, needed a message of its own at each value, and cost every start some milliseconds.
 */
import { compact } from '../../part/compact.ts'
import type { Message } from '../../part/message.ts'
import type { CallSettings } from '../../part/settings.ts'
import { didYouMean } from '../../pipeline/nearest.ts'
import type { requestKeys } from '../../pipeline/request-keys.ts'
import { BadParameter, fromOpenAiMessages } from '../../wire/openai/from-openai-messages.ts'
import { readChoice, readFormat, readTools } from './openai-tools.ts'
import { ownValue } from '../../part/own-value.ts'

export interface OpenAiRequest {
  model: string
  messages: Message[]
  /** Settings for the answering model. */
  settings: CallSettings
  /** `$input` of the pipeline, with the names that the client sent. */
  input: Record<string, unknown>
  stream: boolean
  includeUsage: boolean
  /** Unchecked. */
  extensions: unknown
}

type Body = Record<string, unknown>
type Check = (value: unknown, name: string) => void

/** Parameters of the route; they do not reach the pipeline. */
const own = new Set(['model', 'messages', 'prompt', 'stream', 'stream_options', 'extensions'])

/** Parameters of both APIs that reach the pipeline, with their checks. */
const shared: Readonly<Record<string, Check>> = {
  temperature: (value, name) => void toNumber(value, name, 0, 2),
  top_p: (value, name) => void toNumber(value, name, 0, 1),
  max_tokens: (value, name) => void toNumber(value, name, 1, 1e9, true),
  stop: (value, name) => void toStop(value, name),
  seed: (value, name) => void toNumber(value, name, Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER, true),
  presence_penalty: (value, name) => void toNumber(value, name, -2, 2),
  frequency_penalty: (value, name) => void toNumber(value, name, -2, 2),
  user: toText,
  n: only(1),
  logit_bias: (value, name) => {
    if (JSON.stringify(value) !== '{}') notServed(name)
  },
}

type Checks = Partial<Record<(typeof requestKeys)[number], Check>>

const chat: Readonly<Record<string, Check>> = {
  ...shared,
  max_completion_tokens: shared['max_tokens']!,
  metadata: (value, name) => {
    if (typeof value !== 'object' || Array.isArray(value)) throw new BadParameter(name, 'must be an object.')
  },
  reasoning_effort: (value, name) => void toEffort(value, name),
  response_format: (value, name) => void readFormat(value, name),
  tools: (value, name) => void readTools(value, name),
  tool_choice: (value, name) => void readChoice(value, name, undefined),
  parallel_tool_calls: (value, name) => void toFlag(value, name),
  logprobs: only(false),
  top_logprobs: only(0),
  store: (value, name) => void toFlag(value, name),
  service_tier: only('auto', 'default'),
  modalities: (value, name) => {
    if (JSON.stringify(value) !== '["text"]') notServed(name, 'Answers are text only.')
  },
  safety_identifier: toText,
  prompt_cache_key: toText,
  prompt_cache_retention: toText,
} satisfies Checks

const completions: Readonly<Record<string, Check>> = {
  ...shared,
  best_of: only(1),
  echo: only(false),
  logprobs: only(0),
  suffix: only(''),
} satisfies Checks

/** Known parameters that are always refused, with a hint. */
const refused: Readonly<Record<string, string>> = {
  functions: 'Use tools.',
  function_call: 'Use tool_choice.',
  audio: 'Answers are text only.',
  prediction: '',
  web_search_options: 'Give the agent a tool instead.',
  verbosity: '',
}

/** `declared`: keys that the agent's `input` declares. Throws {@link BadParameter}. */
export function readChatRequest(body: Body, declared: readonly string[]): OpenAiRequest {
  const request = readRequest(body, chat, declared)
  const { settings } = request
  const given = (name: string) => ownValue(body, name) ?? undefined
  const tools = given('tools') === undefined ? [] : readTools(body['tools'], 'tools')
  const limit = given('max_completion_tokens') ?? given('max_tokens')
  if (limit !== undefined) settings.maxOutputTokens = Number(limit)
  if (given('reasoning_effort') !== undefined) settings.reasoning = toEffort(body['reasoning_effort'], '')
  if (given('response_format') !== undefined) Object.assign(settings, readFormat(body['response_format'], ''))
  passOn(settings, given)
  if (given('tool_choice') !== undefined) settings.toolChoice = readChoice(body['tool_choice'], 'tool_choice', tools)
  return { ...request, messages: fromOpenAiMessages(body['messages']) }
}

/** What each provider calls by another name, or has not: the others ignore it. */
function passOn(settings: CallSettings, given: (name: string) => unknown): void {
  const isSingle = given('parallel_tool_calls') === false
  const retention = given('prompt_cache_retention')
  const key = given('prompt_cache_key')
  const options = compact({
    openai: filled({
      parallelToolCalls: isSingle ? false : undefined,
      promptCacheRetention: retention,
      promptCacheKey: key,
    }),
    anthropic: filled({ disableParallelToolUse: isSingle || undefined }),
    openaiCompatible: filled({
      parallel_tool_calls: isSingle ? false : undefined,
      prompt_cache_retention: retention,
    }),
  })
  for (const [provider, passed] of Object.entries(options)) {
    settings.providerOptions = {
      ...settings.providerOptions,
      [provider]: { ...settings.providerOptions?.[provider], ...passed },
    }
  }
}

function filled(options: Record<string, unknown>): Record<string, unknown> | undefined {
  const set = Object.entries(options).filter(([, value]) => value !== undefined)
  return set.length === 0 ? undefined : Object.fromEntries(set)
}

export function readTextRequest(body: Body, declared: readonly string[]): OpenAiRequest {
  const { prompt } = body
  const list = Array.isArray(prompt) && prompt.length === 1 ? (prompt as unknown[])[0] : prompt
  if (typeof list !== 'string')
    throw new BadParameter('prompt', 'must be a single string; several prompts and token arrays are not supported.')
  const request = readRequest(body, completions, declared)
  if (typeof body['max_tokens'] === 'number') request.settings.maxOutputTokens = body['max_tokens']
  return { ...request, messages: [{ role: 'user', content: list }] }
}

/** The name of the model, which selects the agent. Throws {@link BadParameter}. */
export function readModel({ model }: Body): string {
  if (typeof model === 'string' && model !== '' && model.length <= 256) return model
  throw new BadParameter('model', 'must be the name of an agent; GET /v1/models lists them.')
}

function readRequest(
  body: Body,
  checks: Readonly<Record<string, Check>>,
  declared: readonly string[],
): Omit<OpenAiRequest, 'messages'> {
  const input: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(body)) {
    if (own.has(name) || value === null || value === undefined) continue
    const check = ownValue(checks, name)
    if (check !== undefined) check(value, name)
    else if (!declared.includes(name)) {
      const reason = ownValue(refused, name)
      if (reason !== undefined) notServed(name, reason)
      const hint = didYouMean(name, [...own, ...Object.keys(checks), ...declared])
      const words = `is not a known parameter${hint}; an agent accepts more parameters if its "input" declares them.`
      throw new BadParameter(name.slice(0, 100), words)
    }
    if (name !== '__proto__') input[name] = value
  }
  const { stream, stream_options: options } = body
  const isStream = stream == null ? false : toFlag(stream, 'stream')
  return {
    model: readModel(body),
    settings: readSettings(input),
    input,
    stream: isStream,
    includeUsage: readUsageOption(options, isStream),
    extensions: body['extensions'],
  }
}

function readSettings(input: Body): CallSettings {
  const { temperature, top_p, stop, seed, presence_penalty, frequency_penalty } = input
  const numbers = {
    temperature,
    topP: top_p,
    seed,
    presencePenalty: presence_penalty,
    frequencyPenalty: frequency_penalty,
  }
  const settings = Object.fromEntries(
    Object.entries(numbers).filter(([, value]) => value !== undefined),
  ) as CallSettings
  if (stop !== undefined) settings.stopSequences = toStop(stop, 'stop')
  return settings
}

function readUsageOption(options: unknown, isStream: boolean): boolean {
  if (options === undefined || options === null) return false
  const name = 'stream_options'
  if (typeof options !== 'object' || Array.isArray(options)) {
    throw new BadParameter(name, 'must be an object such as {"include_usage": true}.')
  }
  if (!isStream) throw new BadParameter(name, 'is only allowed with stream: true.')
  const { include_usage: usage, include_obfuscation: padding, ...rest } = options as Body
  const [unknown] = Object.keys(rest)
  if (unknown !== undefined) {
    const hint = didYouMean(unknown, ['include_usage'])
    throw new BadParameter(`${name}.${unknown.slice(0, 100)}`, `is not a known parameter${hint}.`)
  }
  if (padding != null && toFlag(padding, `${name}.include_obfuscation`)) notServed(`${name}.include_obfuscation`)
  return usage == null ? false : toFlag(usage, `${name}.include_usage`)
}

function only(...neutral: unknown[]): Check {
  return (value, name) => {
    if (neutral.includes(value)) return
    const words = neutral.map((each) => JSON.stringify(each)).join(' or ')
    notServed(name, `Omit it, or send ${words}.`)
  }
}

function notServed(name: string, cure = ''): never {
  throw new BadParameter(name, `is not supported. ${cure}`.trimEnd())
}

function toText(value: unknown, name: string): void {
  if (typeof value !== 'string') throw new BadParameter(name, 'must be a string.')
}

function toFlag(value: unknown, name: string): boolean {
  if (typeof value === 'boolean') return value
  throw new BadParameter(name, 'must be true or false.')
}

function toNumber(value: unknown, name: string, from: number, to: number, whole = false): number {
  const fits = typeof value === 'number' && value >= from && value <= to && (!whole || Number.isInteger(value))
  if (fits) return value
  throw new BadParameter(name, `must be ${whole ? 'a whole number' : 'a number'} from ${from} to ${to}.`)
}

function toStop(value: unknown, name: string): string[] {
  const list: unknown[] = Array.isArray(value) ? value : [value]
  if (list.length <= 4 && list.every((each) => typeof each === 'string' && each !== '')) return list as string[]
  throw new BadParameter(name, 'must be a string, or an array of at most 4 strings.')
}

const efforts = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh'] as const

function toEffort(value: unknown, name: string): (typeof efforts)[number] {
  const effort = efforts.find((each) => each === value)
  if (effort === undefined) throw new BadParameter(name, `must be one of ${efforts.join(', ')}.`)
  return effort
}
