/** Reads the requests of the completion routes. */
import { omitUndefined } from '../../part/omit-undefined.ts'
import { messageOf } from '../../part/error.ts'
import type { DisconnectPolicy } from '../../pipeline/pipeline.ts'
import type { Turn, Turned } from '../../runtime/continue.ts'
import { startersPolicy } from '../../runtime/disconnect-policy.ts'
import { answeringAgent } from '../../runtime/side-calls.ts'
import { BadParameter } from '../../wire/openai/from-openai-messages.ts'
import type { OpenAiExtension, OpenAiOptions } from '../../wire/openai/openai-output.ts'
import { openaiWire } from '../../wire/openai/openai.ts'
import type { HandlerContext } from '../handler-context.ts'
import { optionalText, readJson } from '../http/body.ts'
import { readExtensions, type Base } from './extensions.ts'
import { findAgent } from './models.ts'
import { readChatRequest, readModel, readTextRequest } from './request.ts'
import type { Run, Runtime } from '../../runtime/runtime.ts'
import { hashText } from '../http/key.ts'
import { hasActed } from './acted.ts'

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
  const named = findAgent(runtime.agents, readModel(body))
  const read = object === 'chat.completion' ? readChatRequest : readTextRequest
  const declared = Object.keys(named.pipeline.input?.properties ?? {})
  const asked = read(body, { declared, strict: openai.strict === true })
  const { model, messages, settings, input, includeUsage, ignored } = asked
  const extensions = readExtensions(context, request, asked, base)
  const { id: agentId, pipeline } = answeringAgent(runtime.agents, named, {
    tools: input['tools'],
    responseFormat: settings.responseFormat,
  })
  const thread = readThread(request)
  const keepsHistory = pipeline.history === 'server'
  const threadId = thread ?? (keepsHistory ? undefined : sessionOf(request, body))
  const { traceKey, streamToolOutputMaxChars: toolOutputMaxChars } = openai
  const shown = { includeUsage, extensions, ...omitUndefined({ traceKey, toolOutputMaxChars }) }
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
    steers: named !== undefined,
    keepsSuspended: !keepsHistory,
    groups: thread === undefined && !keepsHistory,
    history: 'client',
    ...omitUndefined({ threadId }),
  }
  const options = { object, model, ...shown }
  const policy = startersPolicy(pipeline, openaiWire.name, true)
  return { turn, stream: asked.stream, options, policy, repeat: createRepeat(runtime, request, body) }
}

/** The session field of each coding CLI. */
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

/*
 * Requests that a client repeats after a failure. Coding CLIs do so by loops of their own, whatever the status and the headers say, and a second
 * run would repeat the side effects of the first. So for a minute the same request gets the end that was recorded.
 *
 * Known to this process only: clients repeat over the connection that they have.
 */

/** ms after its end in which a failed run stands for a request. */
const standsFor = 60_000
/** Requests that are kept in mind. */
const mostKept = 10_000

interface RepeatedRequest {
  run: string
  /** Of the request. It is made when a request comes that may be the same, or when the run fails: the rest need none. */
  digest: () => Promise<string>
}

/** How a request looks at a glance → the last one that looks so, while its run goes on or after it has failed. */
const askedOf = new WeakMap<Runtime, Map<string, RepeatedRequest>>()

interface Repeat {
  /** The run that has failed for the same request. */
  failed(): Promise<Turned | undefined>
  started(run: Run): void
}

function createRepeat(runtime: Runtime, request: Request, body: Record<string, unknown>): Repeat {
  const { url, headers } = request
  const caller = ['authorization', 'x-thread-id', 'x-session-id', 'x-millrace-extensions'].map((name) =>
    headers.get(name),
  )
  const { messages, tools, prompt } = body
  const list: unknown[] = Array.isArray(messages) ? messages : [prompt]
  const last = JSON.stringify(list.at(-1)) ?? ''
  // A title call has the same messages, but other tools or another system prompt.
  const system = (list[0] as { content?: unknown } | null | undefined)?.content
  const sizes = [list.length, last.length, sizeOf(system), sizeOf(tools), Object.keys(body).length]
  const glance = JSON.stringify([url, ...caller, body['model'], ...sizes, last.slice(0, 500)])
  const digest = once(() => hashText(JSON.stringify([url, ...caller, body])))
  const asked = askedOf.get(runtime) ?? new Map<string, RepeatedRequest>()
  askedOf.set(runtime, asked)

  return {
    async failed() {
      const before = asked.get(glance)
      if (before === undefined || (await before.digest()) !== (await digest())) return undefined
      const row = await runtime.store.runs.get(before.run)
      if (row === undefined || (row.status !== 'failed' && row.status !== 'timed-out')) return undefined
      const isOld = runtime.threadRule().now >= (row.endedAt ?? 0) + standsFor
      if (isOld || !(await hasActed(runtime.store.log, row.id))) return undefined
      const run = await runtime.open(row.id)
      return run && { run, how: 'joined', from: 0 }
    },
    started({ id, result }) {
      const own: RepeatedRequest = { run: id, digest }
      asked.delete(glance)
      asked.set(glance, own)
      const [oldest] = asked.keys()
      if (asked.size > mostKept && oldest !== undefined) asked.delete(oldest)
      void result.then(({ outcome }) => {
        if (asked.get(glance) !== own) return
        if (outcome !== 'failed' && outcome !== 'timed-out') return void asked.delete(glance)
        own.digest = always(digest())
      })
    },
  }
}

function sizeOf(value: unknown): number {
  return typeof value === 'string' || Array.isArray(value) ? value.length : 0
}

/** A function of its own, so that it does not hold the request in memory. */
function always<T>(value: T): () => T {
  return () => value
}

function once<T>(make: () => T): () => T {
  let made: [T] | undefined
  return () => (made ??= [make()])[0]
}
