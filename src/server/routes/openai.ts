/** `POST /v1/chat/completions`, `POST /v1/completions`, `GET /v1/models`, `GET /v1/models/:id`, also under `/api/v1`. */
import type { Hono } from 'hono'
import { fromErrorValue, messageOf } from '../../part/error.ts'
import { continueOrStart, type Turn } from '../../runtime/continue.ts'
import { didYouMean } from '../../pipeline/nearest.ts'
import type { DisconnectPolicy } from '../../pipeline/pipeline.ts'
import { closingError, unknownAgent } from '../../runtime/runtime-errors.ts'
import type { Agent } from '../../runtime/runtime.ts'
import { BadParameter } from '../../wire/openai/from-openai-messages.ts'
import { openaiJsonWire, type OpenAiResult } from '../../wire/openai/openai-completion.ts'
import type { OpenAiExtension, OpenAiOptions } from '../../wire/openai/openai-output.ts'
import { openaiWire } from '../../wire/openai/openai.ts'
import { awaitAcceptance } from '../../answer/acceptance.ts'
import { optionalText, readJson } from '../http/body.ts'
import type { HandlerContext } from '../handler.ts'
import { openAiError, openAiRunError } from './openai-error.ts'
import { readChatRequest, readModel, readTextRequest, type OpenAiRequest } from './openai-request.ts'
import { isAnsweredAsItIs, stepResponse, type StepResponseOptions } from '../../answer/step-response.ts'
import { streamAnswer, type StreamedAnswer } from '../../answer/stream-response.ts'
import { listedAgents } from '../../runtime/listed.ts'

const known: readonly OpenAiExtension[] = ['tools', 'trace']

interface Base {
  path: string
  /** Extensions that are on by default, if the server allows them. */
  on: readonly OpenAiExtension[]
  /** Extensions that are allowed by default. A trace contains the system prompts. */
  allowed: readonly OpenAiExtension[]
}

const bases: readonly Base[] = [
  { path: '/v1', on: [], allowed: ['tools'] },
  { path: '/api/v1', on: known, allowed: known },
]

export function mountOpenAi(app: Hono, context: HandlerContext): void {
  const { runtime } = context
  for (const base of bases) {
    const { path } = base
    const post = (kind: Kind) => (c: { req: { raw: Request } }) =>
      answered(context, () => postCompletion(context, c.req.raw, kind, base))
    app.post(`${path}/chat/completions`, post('chat.completion'))
    app.post(`${path}/completions`, post('text_completion'))
    app.get(`${path}/models`, () => {
      const data = listedAgents(runtime.agents).flatMap(({ id, pipeline }) => {
        return [id, ...(pipeline.metadata.aliases ?? [])].map(toModel)
      })
      return Response.json({ object: 'list', data })
    })
    app.get(`${path}/models/:id`, (c) =>
      answered(context, async () => {
        const id = c.req.param('id')
        findAgent(context, id)
        return Response.json(toModel(id))
      }),
    )
  }
}

type Kind = NonNullable<OpenAiOptions['object']>

/** Agents have no creation date. Clients only need a constant value. */
const created = Date.UTC(2026, 0, 1) / 1000

function toModel(id: string) {
  return { id, object: 'model', created, owned_by: 'millrace' }
}

function findAgent({ runtime }: HandlerContext, name: string): Agent {
  const agent = runtime.agents.get(name)
  if (agent === undefined) throw unknownAgent(name, runtime.agents)
  return agent
}

async function postCompletion(context: HandlerContext, request: Request, object: Kind, base: Base): Promise<Response> {
  const { runtime, openai } = context
  const body = await readJson(request, context.maxBodyBytes)
  const { id: agentId, pipeline } = findAgent(context, readModel(body))
  const read = object === 'chat.completion' ? readChatRequest : readTextRequest
  const asked = read(body, Object.keys(pipeline.input?.properties ?? {}))
  const { model, messages, settings, input } = asked
  const extensions = readExtensions(context, request, asked, base)
  const threadId = readThread(request)
  const turn: Turn = {
    agentId,
    messages,
    answers: [],
    input,
    settings,
    protocol: openaiWire.name,
    labels: { model },
    traceparent: request.headers.get('traceparent'),
    handOver: true,
    // The header only groups runs: concurrent requests of one thread (an answer and its title) must both run.
    onBusy: 'queue',
    history: 'client',
    ...(threadId === undefined ? undefined : { threadId }),
  }
  const { run } = await continueOrStart(runtime, turn)
  if (context.waitUntil !== undefined) context.waitUntil(run.result)
  const policy = pipeline.onDisconnect ?? 'cancel'
  const options: OpenAiOptions = { object, model, includeUsage: asked.includeUsage, extensions }
  if (openai.traceKey !== undefined) options.traceKey = openai.traceKey
  if (openai.streamToolOutputMaxChars !== undefined) options.toolOutputMaxChars = openai.streamToolOutputMaxChars

  const release = runtime.attach(run.id, policy)
  let answer: StreamedAnswer | undefined
  let finished = false
  try {
    if (!asked.stream) {
      const response = await collect(context, run.id, options, request.signal, policy)
      finished = response !== undefined
      return response ?? new Response(null, { status: 499 })
    }
    // Created while the model request is still pending.
    answer = streamAnswer(context, { runId: run.id, wire: openaiWire, policy, options })
    const accepted = await awaitAcceptance(runtime, run.id, {
      reader: answer.reader,
      streams: true,
      from: 0,
      signal: request.signal,
      anyStep: extensions.length > 0,
    })
    if (accepted.kind === 'left') return new Response(null, { status: 499 })
    const head = accepted.kind === 'response' ? accepted.head : undefined
    const isRaw = head !== undefined && isAnsweredAsItIs(head, openaiWire)
    finished = isRaw || accepted.kind === 'value' || accepted.kind === 'error'
    if (isRaw) return await rawResponse(context, { runId: run.id, head, policy, signal: request.signal })
    if (accepted.kind === 'error') return withRunId(openAiRunError(fromErrorValue(accepted.error)), run.id)
    const { response } = answer
    answer = undefined
    return response
  } finally {
    answer?.drop(finished)
    release({ finished })
  }
}

/** `stream: false`: the whole answer as one JSON; undefined if the client disconnected first. */
async function collect(
  context: HandlerContext,
  runId: string,
  openai: OpenAiOptions,
  signal: AbortSignal,
  policy: DisconnectPolicy,
): Promise<Response | undefined> {
  const { runtime } = context
  const leave = new AbortController()
  const encoder = openaiJsonWire.createEncoder({}, openai)
  let result: OpenAiResult | undefined
  const unwatch = runtime.onLost(runId, (error) => {
    result ??= encoder.fail(error)[0]
    leave.abort('read')
  })
  try {
    for await (const batch of runtime.store.log.read(runId, { signal: AbortSignal.any([leave.signal, signal]) })) {
      for (const entry of batch) {
        const head = entry.type === 'step-start' && entry.answer ? entry.head : undefined
        if (head !== undefined && isAnsweredAsItIs(head, openaiWire)) {
          return await rawResponse(context, { runId, head, policy, signal })
        }
        result ??= encoder.encode(entry)[0]
      }
      if (result !== undefined) break
    }
  } finally {
    unwatch()
  }
  if (result === undefined) {
    // If the client is still connected, the server is shutting down.
    return signal.aborted ? undefined : withRunId(openAiRunError(closingError()), runId)
  }
  return withRunId('error' in result ? openAiRunError(fromErrorValue(result.error)) : Response.json(result.body), runId)
}

/** A redirect or an error that a step returned: the client reads it from the status. */
async function rawResponse(context: HandlerContext, options: StepResponseOptions): Promise<Response> {
  const response = await stepResponse(context, options)
  // As for a failed run: a retry would run the agent's tools again.
  if (response.status === 409 || response.status >= 500) response.headers.set('x-should-retry', 'false')
  return response
}

function readThread({ headers }: Request): string | undefined {
  const name = 'X-Thread-Id'
  try {
    return optionalText({ [name]: headers.get(name) }, name)
  } catch (error) {
    throw new BadParameter(name, messageOf(error).slice(name.length + 1))
  }
}

/** The extensions that the header or the body asks for. Throws {@link BadParameter}. */
function readExtensions(
  { openai }: HandlerContext,
  request: Request,
  { extensions }: OpenAiRequest,
  { path, on, ...base }: Base,
): readonly OpenAiExtension[] {
  const allowed = openai.extensions ?? base.allowed
  const header = request.headers.get('x-millrace-extensions')
  if (header === null && (extensions === undefined || extensions === null))
    return on.filter((each) => allowed.includes(each))
  const param = extensions === undefined || extensions === null ? 'X-Millrace-Extensions' : 'extensions'
  const list = param === 'extensions' ? extensions : (header ?? '').split(',').map((name) => name.trim())
  if (!Array.isArray(list)) throw new BadParameter(param, `must be an array of ${known.join(', ')}.`)
  return list
    .filter((name) => name !== '')
    .map((name: unknown) => {
      const extension = known.find((each) => each === name)
      if (extension === undefined) {
        const hint = typeof name === 'string' ? didYouMean(name, known) : ''
        throw new BadParameter(param, `must be one or more of ${known.join(', ')}${hint}.`)
      }
      if (!allowed.includes(extension)) {
        const cure = `The operator can allow it with server.openai.extensions: ['${extension}'] in the config`
        throw new BadParameter(param, `must not be ${extension}: this server does not allow it under ${path}. ${cure}.`)
      }
      return extension
    })
}

async function answered({ onError }: HandlerContext, respond: () => Promise<Response>): Promise<Response> {
  try {
    return await respond()
  } catch (error) {
    const response = openAiError(error as Error)
    if (response.status >= 500) onError(error)
    return response
  }
}

function withRunId(response: Response, runId: string): Response {
  response.headers.set('x-millrace-run-id', runId)
  return response
}
