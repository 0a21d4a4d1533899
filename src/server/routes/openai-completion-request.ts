/** Reads the requests of the completion routes. */
import { compact } from '../../part/compact.ts'
import { messageOf } from '../../part/error.ts'
import type { DisconnectPolicy } from '../../pipeline/pipeline.ts'
import type { Turn } from '../../runtime/continue.ts'
import { startersPolicy } from '../../runtime/disconnect-policy.ts'
import { BadParameter } from '../../wire/openai/from-openai-messages.ts'
import type { OpenAiExtension, OpenAiOptions } from '../../wire/openai/openai-output.ts'
import { openaiWire } from '../../wire/openai/openai.ts'
import type { HandlerContext } from '../handler.ts'
import { optionalText, readJson } from '../http/body.ts'
import { readExtensions, type Base } from './openai-extensions.ts'
import { findAgent } from './openai-models.ts'
import { createRepeat, type Repeat } from './openai-repeats.ts'
import { readChatRequest, readModel, readTextRequest } from './openai-request.ts'

export type Kind = NonNullable<OpenAiOptions['object']>

export interface Completion {
  turn: Turn
  stream: boolean
  options: OpenAiOptions & { extensions: readonly OpenAiExtension[] }
  policy: DisconnectPolicy
  repeat: Repeat
}

export async function readCompletion(
  context: HandlerContext,
  request: Request,
  object: Kind,
  base: Base,
): Promise<Completion> {
  const { runtime, openai, maxBodyBytes } = context
  const body = await readJson(request, maxBodyBytes)
  const { id: agentId, pipeline } = findAgent(runtime.agents, readModel(body))
  const read = object === 'chat.completion' ? readChatRequest : readTextRequest
  const declared = Object.keys(pipeline.input?.properties ?? {})
  const asked = read(body, { declared, strict: openai.strict === true })
  const { model, messages, settings, input, includeUsage, ignored } = asked
  const extensions = readExtensions(context, request, asked, base)
  const named = readThread(request)
  const keepsHistory = pipeline.history === 'server'
  const threadId = named ?? (keepsHistory ? undefined : sessionOf(request, body))
  const { traceKey, streamToolOutputMaxChars: toolOutputMaxChars } = openai
  const shown = { includeUsage, extensions, ...compact({ traceKey, toolOutputMaxChars }) }
  const turn: Turn = {
    agentId,
    messages,
    answers: [],
    input,
    settings,
    ignored,
    protocol: openaiWire.name,
    labels: { model },
    wireOptions: {
      object: object === 'chat.completion' ? undefined : object,
      ...(extensions.length === 0 ? { includeUsage } : shown),
    },
    traceparent: request.headers.get('traceparent'),
    handOver: true,
    // The header only groups runs: concurrent requests of one thread (an answer and its title) must both run.
    onBusy: 'queue',
    keepsSuspended: !keepsHistory,
    groups: named === undefined && !keepsHistory,
    history: 'client',
    ...compact({ threadId }),
  }
  const options = { object, model, ...shown }
  const policy = startersPolicy(pipeline, openaiWire.name, true)
  return { turn, stream: asked.stream, options, policy, repeat: createRepeat(runtime, request, body) }
}

/** What coding CLIs call their session. */
function sessionOf({ headers }: Request, body: Record<string, unknown>): string | undefined {
  const names = [headers.get('x-session-id'), body['prompt_cache_key']]
  return names.find((name) => typeof name === 'string' && isMadeUp(name)) as string | undefined
}

/** An app may give all its users the same key, for the provider's cache: theirs is not one conversation. */
function isMadeUp(name: string): boolean {
  if (name.length > 256) return false
  if (/[\da-f]{8}-(?:[\da-f]{4}-){3}[\da-f]{12}/iu.test(name)) return true
  return name.split(/[^\da-z]/iu).some((word) => word.length >= 16 && word.replaceAll(/\D/gu, '').length >= 3)
}

function readThread({ headers }: Request): string | undefined {
  const name = 'X-Thread-Id'
  try {
    return optionalText({ [name]: headers.get(name) }, name)
  } catch (error) {
    throw new BadParameter(name, messageOf(error).slice(name.length + 1))
  }
}
