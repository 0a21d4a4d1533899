/**
 * Prompt caching: what a model server is told about the calls that will follow. decisions/0040 has the reasons.
 *
 * | protocol | sent |
 * |---|---|
 * | `anthropic` | `cache_control` at the top of the request; a second mark where the last call ended, if this one is more than 20 blocks longer |
 * | `openai-responses`, `openai-chat` on OpenAI's own host | `prompt_cache_key`, a hash of agent and thread |
 * | any other | nothing |
 *
 * A mark or key of the user's own turns ours off.
 */
import type { LanguageModelV4CallOptions, LanguageModelV4Message } from '@ai-sdk/provider'
import { ownValue } from '../part/own-value.ts'
import { fieldsOf } from './decode/fields.ts'
import type { EndpointProtocol } from './providers.ts'

type CallOptions = LanguageModelV4CallOptions

/** `cache` of a step and of the config. `1h`: Anthropic keeps the prompt for an hour instead of five minutes. */
export type CacheSetting = 'auto' | 'none' | '1h'

/** Another call with the same beginning is likely. */
export interface PromptCache {
  setting: Exclude<CacheSetting, 'none'>
  /** Calls of one conversation have the same text here. Only a hash of it is sent. */
  conversation: string
}

/** How a server is told. */
export type CacheWay = 'mark' | 'key'

export function cacheWayOf(protocol: EndpointProtocol, baseURL: string | undefined): CacheWay | undefined {
  switch (protocol) {
    case 'anthropic':
      return 'mark'
    case 'openai-responses':
      return 'key'
    case 'openai-chat':
      // Other servers of this protocol may refuse what they do not know.
      return baseURL !== undefined && URL.parse(baseURL)?.hostname === 'api.openai.com' ? 'key' : undefined
    case 'google':
      return undefined
  }
}

/** Where our own options travel to the shape of the call. No package sees them, and no endpoint can have this name. */
const own = '#cache'

/** The options to add to a call for a model that is told in this way. */
export async function cacheOptions(
  { setting, conversation }: PromptCache,
  way: CacheWay,
): Promise<NonNullable<CallOptions['providerOptions']>> {
  if (way === 'key') return { [own]: { key: await hashOf(conversation) } }
  const mark = setting === '1h' ? { type: 'ephemeral', ttl: '1h' } : { type: 'ephemeral' }
  return { [own]: { mark } }
}

/** 43 characters; OpenAI accepts 64. */
async function hashOf(text: string): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text)))
  return btoa(String.fromCharCode(...digest))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replace('=', '')
}

/** `optionsKey`: the provider options that the package of this protocol reads. `refused`: the server accepts no mark and no key. */
export interface CachePlace {
  protocol: EndpointProtocol
  optionsKey: string
  refused: boolean
}

/** Moves our options to where the protocol's package reads them. */
export function placeCache(call: CallOptions, { protocol, optionsKey, refused }: CachePlace): CallOptions {
  const ours = call.providerOptions?.[own]
  if (ours === undefined) return call
  const { [own]: _, ...providerOptions } = call.providerOptions!
  const bare = { ...call, providerOptions }
  if (refused) return bare
  if (protocol === 'anthropic') {
    if (hasMark(bare)) return bare
    const cacheControl = ours['mark']!
    return {
      ...bare,
      prompt: withLastEnd(bare.prompt, cacheControl),
      providerOptions: { ...providerOptions, anthropic: { ...providerOptions['anthropic'], cacheControl } },
    }
  }
  const name = protocol === 'openai-chat' ? 'prompt_cache_key' : 'promptCacheKey'
  const given = ownValue(providerOptions, optionsKey) as Record<string, never> | undefined
  if (ownValue(given, name) !== undefined || ownValue(providerOptions['openai'], 'promptCacheKey') !== undefined)
    return bare
  return { ...bare, providerOptions: { ...providerOptions, [optionsKey]: { ...given, [name]: ours['key']! } } }
}

/** Whether the call has a mark or key of ours. */
export function hasOurCache({ providerOptions }: CallOptions): boolean {
  return providerOptions?.[own] !== undefined
}

/** Anthropic accepts four marks, and refuses a request with five: with one of the user's own, all are the user's. */
function hasMark({ prompt, tools = [], providerOptions }: CallOptions): boolean {
  const isMarked = (options: unknown) => {
    const anthropic = fieldsOf(ownValue(fieldsOf(options), 'anthropic'))
    return (anthropic?.['cacheControl'] ?? anthropic?.['cache_control'] ?? undefined) !== undefined
  }
  if (isMarked(providerOptions)) return true
  if (tools.some((tool) => 'providerOptions' in tool && isMarked(tool.providerOptions))) return true
  return prompt.some(
    (message) =>
      isMarked(message.providerOptions) ||
      (typeof message.content !== 'string' && message.content.some((part) => isMarked(part.providerOptions))),
  )
}

/** Blocks before a mark that Anthropic compares with what it has kept, the marked one included. */
const lookedAt = 20

/**
 * A mark only finds what was kept for a prompt that ended at one of the 20 blocks before it. A reply that calls many tools adds more: then the
 * end of the last call's prompt is marked, too.
 */
function withLastEnd(prompt: CallOptions['prompt'], cacheControl: unknown): CallOptions['prompt'] {
  const reply = prompt.findLastIndex(({ role }) => role === 'assistant')
  if (reply < 1) return prompt
  const added = prompt
    .slice(reply)
    .reduce((sum, { content }) => sum + (typeof content === 'string' ? 1 : content.length), 0)
  const end = prompt[reply - 1]!
  if (added < lookedAt || end.role === 'system' || end.role === 'assistant') return prompt
  const anthropic = { ...end.providerOptions?.['anthropic'], cacheControl }
  const marked = { ...end, providerOptions: { ...end.providerOptions, anthropic } } as LanguageModelV4Message
  return prompt.with(reply - 1, marked)
}

/** Whether a server says that it does not know the mark or the key. */
export function isAboutCache(statusCode: number | undefined, body: string): boolean {
  return (statusCode === 400 || statusCode === 422) && /\b(?:cache_control|prompt_cache_key)\b/u.test(body)
}
