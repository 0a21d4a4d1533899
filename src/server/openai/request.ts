/**
 * Checks an OpenAI request. A parameter is supported, or refused by name if the answer would be another one than requested (`n: 2`, audio), or else
 * ignored with a warning: clients send hints of many servers. Neutral values of unsupported parameters (`n: 1`, `logprobs: false`) are
 * accepted, because some clients always send them.
 *
 * By hand: with zod it had the same length, needed a message of its own at each value, and cost every start some milliseconds.
 */
import { omitUndefined } from '../../part/omit-undefined.ts'
import type { Message } from '../../part/message.ts'
import type { CallSettings } from '../../part/part.ts'
import { didYouMean } from '../../pipeline/nearest.ts'
import type { requestKeys } from '../../pipeline/reader.ts'
import { BadParameter, fromOpenAiMessages } from '../../wire/openai/from-openai-messages.ts'
import { pipelineCure, toFlag, toNumber, toText } from './parameters.ts'
import { choiceForm, isChoice, readChoice, readFormat, readTools } from './tools.ts'
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
  /** Ignored parameters, in words. */
  ignored: string[]
}

export interface Reading {
  /** Keys that the agent's `input` declares. */
  declared: readonly string[]
  /** Refuses every parameter that would be ignored. */
  strict: boolean
}

/** A parameter that can be ignored without a wrong answer. */
class Hint extends BadParameter {}

/** Warnings of one request. */
const mostIgnored = 20

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
    if (JSON.stringify(value) !== '{}') throw new Hint(name, 'is not supported.')
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
  tool_choice: (value, name) => {
    if (!isChoice(value)) throw new Hint(name, choiceForm)
  },
  parallel_tool_calls: (value, name) => void toFlag(value, name),
  logprobs: only(false),
  top_logprobs: only(0),
  store: (value, name) => void toFlag(value, name),
  service_tier: (value, name) => {
    if (value !== 'auto' && value !== 'default') throw new Hint(name, 'is not supported. Omit it, or send "auto".')
  },
  thinking: (value, name) => {
    // Of Anthropic, Kimi and DeepSeek.
    if (!isOff(value)) throw new Hint(name, 'is followed only with type: "disabled"; use reasoning_effort.')
  },
  modalities: (value, name) => {
    if (JSON.stringify(value) !== '["text"]') notServed(name, 'Answers are text only.')
  },
  safety_identifier: toText,
  prompt_cache_key: toText,
  prompt_cache_retention: toText,
} satisfies Checks & { thinking: Check }

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
  pipeline: pipelineCure,
}

/** Known hints that are not followed. */
const unfollowed: Readonly<Record<string, string>> = {
  prediction: '',
  web_search_options: 'Give the agent a tool instead.',
  search_parameters: 'Give the agent a tool instead.',
  verbosity: '',
}

/** Throws {@link BadParameter}. */
export function readChatRequest(body: Body, reading: Reading): OpenAiRequest {
  const request = readRequest(body, chat, reading)
  const { settings, input } = request
  const given = (name: string) => ownValue(input, name) ?? undefined
  const tools = given('tools') === undefined ? [] : readTools(body['tools'], 'tools')
  const limit = given('max_completion_tokens') ?? given('max_tokens')
  if (limit !== undefined) settings.maxOutputTokens = Number(limit)
  if (isOff(given('thinking'))) settings.reasoning = 'none'
  if (given('reasoning_effort') !== undefined) settings.reasoning = toEffort(body['reasoning_effort'], '')
  if (given('response_format') !== undefined) Object.assign(settings, readFormat(body['response_format'], ''))
  passOn(settings, given)
  if (given('tool_choice') !== undefined) settings.toolChoice = readChoice(body['tool_choice'], 'tool_choice', tools)
  return { ...request, messages: fromOpenAiMessages(body['messages']) }
}

/** Parameters that some providers name differently or lack; others ignore them. */
function passOn(settings: CallSettings, given: (name: string) => unknown): void {
  const isSingle = given('parallel_tool_calls') === false
  const retention = given('prompt_cache_retention')
  const key = given('prompt_cache_key')
  const options = omitUndefined({
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

export function readTextRequest(body: Body, reading: Reading): OpenAiRequest {
  const { prompt } = body
  const list = Array.isArray(prompt) && prompt.length === 1 ? (prompt as unknown[])[0] : prompt
  if (typeof list !== 'string')
    throw new BadParameter('prompt', 'must be a single string; several prompts and token arrays are not supported.')
  const request = readRequest(body, completions, reading)
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
  { declared, strict }: Reading,
): Omit<OpenAiRequest, 'messages'> {
  const input: Record<string, unknown> = {}
  const ignored: string[] = []
  /** Whether it is followed. */
  const follows = (check: () => void): boolean => {
    try {
      check()
      return true
    } catch (error) {
      if (!(error instanceof Hint) || strict) throw error
      if (ignored.length < mostIgnored) ignored.push(`The request's ${error.message} It is ignored.`)
      return false
    }
  }
  for (const [name, value] of Object.entries(body)) {
    if (own.has(name) || value === null || value === undefined) continue
    const check = ownValue(checks, name)
    const isFollowed = follows(() => {
      if (check !== undefined) return check(value, name)
      if (declared.includes(name)) return
      const reason = ownValue(refused, name)
      if (reason !== undefined) notServed(name, reason)
      const cure = ownValue(unfollowed, name)
      if (cure !== undefined) throw new Hint(name, `is not supported. ${cure}`.trimEnd())
      const hint = didYouMean(name, [...own, ...Object.keys(checks), ...declared])
      const words = `is not a known parameter${hint}; an agent accepts more parameters if its "input" declares them.`
      throw new Hint(name.slice(0, 100), words)
    })
    if (isFollowed && name !== '__proto__') input[name] = value
  }
  const { stream, stream_options: options } = body
  const isStream = stream == null ? false : toFlag(stream, 'stream')
  return {
    model: readModel(body),
    settings: readSettings(input),
    input,
    stream: isStream,
    includeUsage: readUsageOption(options, isStream, follows),
    extensions: body['extensions'],
    ignored,
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

function readUsageOption(options: unknown, isStream: boolean, follows: (check: () => void) => boolean): boolean {
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
    follows(() => {
      throw new Hint(`${name}.${unknown.slice(0, 100)}`, `is not a known parameter${hint}.`)
    })
  }
  if (padding != null && toFlag(padding, `${name}.include_obfuscation`)) {
    follows(() => {
      throw new Hint(`${name}.include_obfuscation`, 'is not supported.')
    })
  }
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

function toStop(value: unknown, name: string): string[] {
  const list: unknown[] = Array.isArray(value) ? value : [value]
  if (list.length <= 4 && list.every((each) => typeof each === 'string' && each !== '')) return list as string[]
  throw new BadParameter(name, 'must be a string, or an array of at most 4 strings.')
}

function isOff(thinking: unknown): boolean {
  return typeof thinking === 'object' && thinking !== null && (thinking as { type?: unknown }).type === 'disabled'
}

const efforts = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const

function toEffort(value: unknown, name: string): (typeof efforts)[number] {
  const effort = efforts.find((each) => each === value)
  if (effort === undefined) throw new Hint(name, `must be one of ${efforts.join(', ')}.`)
  return effort
}
