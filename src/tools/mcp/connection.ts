/** A live connection to an MCP server, with its error handling. Loads the MCP SDK, so it is imported on first use. */
import {
  CLIENT_CAPABILITIES_META_KEY,
  ProtocolError,
  SdkError,
  SdkErrorCode,
  SdkHttpError,
  type StandardSchemaV1,
  type CallToolResult,
} from '@modelcontextprotocol/client'
import { omitUndefined } from '../../part/omit-undefined.ts'
import { messageOf, MillraceError, wordsOf } from '../../part/error.ts'
import type { ReadLimits } from '../../models/limits/read-limits.ts'
import { validate } from '../../pipeline/json-schema/validate.ts'
import { isObject } from '../../pipeline/json-schema/keywords.ts'
import {
  readProgress,
  readQuestion,
  readQuestions,
  readState,
  readTask,
  toValue,
  type McpAnswer,
  type McpReply,
  type McpTaskOutcome,
  type McpTaskState,
} from './answer.ts'
import type { TokenSource } from './auth/token-source.ts'
import { asks, ConnectFailure, connectClient, listKey, taskKey, tasks, tasksExtension } from './connect-client.ts'
import { ownFault, sessionEnded, stoppedError } from './fault.ts'
import { streamEnded } from './http-transport.ts'
import { defaultsOf, listTools, type Definition, type Listing } from './list-tools.ts'
import type { ExchangeOptions, McpTools, TaskOptions, TaskUse } from './pool.ts'
import { callTimeout, longest, type McpServer } from './server.ts'

export type Era = 'modern' | 'legacy'

export interface McpConnection {
  readonly era: Era
  tools(): Promise<McpTools>
  exchange(tool: string, input: unknown, options: ExchangeOptions): Promise<McpAnswer>
  /** A request about a task. */
  task(id: string, use: TaskUse, options: TaskOptions): Promise<McpTaskState | undefined>
  close(): Promise<void>
}

type Limits = { timeout: number; signal?: AbortSignal | undefined }

export interface OpenOptions {
  /** Aborts the attempt, and closes the connection later. */
  signal: AbortSignal
  /** Removed from the server's output before it is recorded. */
  secrets: readonly string[]
  limits: ReadLimits
  /** Sent with each request. */
  tokens?: Promise<TokenSource> | undefined
  /** The server was legacy when it was asked last. */
  isLegacy?: boolean
  /** For a run whose questions people answer. Only legacy servers are told so at once; modern ones are, with each call. */
  asks?: boolean
  /** Called when the connection has ended, for whatever reason. */
  onEnd: () => void
}

/** Starts the server or connects to it. Rejects with `mcp-unreachable`, leaving no process behind. */
export async function openConnection(
  name: string,
  server: McpServer,
  { signal, secrets, limits, tokens, isLegacy = false, asks: canAsk = false, onEnd }: OpenOptions,
): Promise<McpConnection> {
  // Name only: clients must not see the command or the address, and arguments may contain keys.
  const who = `The MCP server "${name}"`
  const options = { who, secrets, limits, signal, isLegacy, asks: canAsk, tokens: await tokens }
  const { client, transport } = await connectClient(server, options).catch((failure: unknown) => {
    if (!(failure instanceof ConnectFailure)) throw failure
    const { cause, transport: lost } = failure
    if (lost.refusal !== undefined) throw lost.refusal
    const own = ownFault(cause)
    if (own !== undefined) throw own
    const message = `${who} cannot be reached: ${lost.failure ?? reasonOf(cause)}.`
    throw new MillraceError('mcp-unreachable', message, { cause, detail: detailOf(cause, lost) })
  })
  const era: Era = client.getProtocolEra() ?? 'legacy'
  const capabilities = client.getServerCapabilities()
  const sendsHeaders = era === 'modern' && 'url' in server
  let listing: Promise<Listing> | undefined
  /** Epoch ms. Of a list that is being read, and of one whose changes the server tells: for ever. */
  let freshUntil = Infinity
  let definitions: ReadonlyMap<string, Definition> = new Map()
  let running = 0
  // If the very first request is rejected, the cause is not an expired session.
  let proven = false
  /** Of a modern server: it says when its tools change. */
  let following: 'no' | 'asked' | 'yes' = 'no'

  const stop = () => void transport.close()
  signal.addEventListener('abort', stop)
  client.onclose = () => {
    signal.removeEventListener('abort', stop)
    onEnd()
  }
  client.setNotificationHandler('notifications/tools/list_changed', () => {
    listing = undefined
  })

  /** Converts the error of a request. `what` names the request. */
  function toFault(error: unknown, what: string, timeout: number, stopped?: AbortSignal): MillraceError {
    const fault = (code: string, text: string) =>
      new MillraceError(code, `${who} ${text}`, { cause: error, detail: detailOf(error, transport) })
    if (stopped?.aborted) return stoppedError(stopped)
    if (transport.refusal !== undefined) return transport.refusal
    const own = ownFault(error)
    if (own !== undefined) return own
    if (error instanceof SdkError && error.code === SdkErrorCode.RequestTimeout) {
      return fault('timed-out', `did not answer ${what} within ${timeout} ms.`)
    }
    if (proven && isForgotten(error)) {
      const how = error instanceof SdkHttpError ? `HTTP ${error.status}` : messageOf(error)
      transport.failure ??= `its session has expired (${how})`
      // New calls use a new connection. Calls under way get the same error or, if the status had another cause, their result.
      onEnd()
      return fault(sessionEnded, `no longer knows the session (${how}).`)
    }
    if (error instanceof SdkHttpError) return fault('mcp-lost', `rejected ${what}: ${reasonOf(error)}.`)
    if (isAnswer(error)) return fault('tool-failed', `failed to run ${what}: ${messageOf(error)}`)
    if (error instanceof SdkError && !gone.has(error.code)) return fault('tool-failed', `failed to run ${what}.`)
    return fault('mcp-lost', `disconnected during ${what}: ${transport.failure ?? reasonOf(error)}.`)
  }

  async function ask<T>(what: string, { timeout, signal: stopped }: Limits, request: () => Promise<T>): Promise<T> {
    running += 1
    try {
      const answer = await request()
      proven = true
      return answer
    } catch (error) {
      throw toFault(error, what, timeout, stopped)
    } finally {
      running -= 1
      if (running === 0 && transport.failure !== undefined) stop()
    }
  }

  async function list(): Promise<Listing> {
    const timeout = callTimeout(server)
    if (capabilities?.tools === undefined) return { tools: [], definitions: new Map() }
    follow()
    const listed = await listTools(
      async (cursor) => {
        const params = cursor === undefined ? {} : { cursor }
        const request = () => client.request({ method: 'tools/list', params }, asItIs, { timeout })
        const answer = await ask('tools/list', { timeout }, request)
        const meta = isObject(answer) && isObject(answer['_meta']) ? answer['_meta'] : {}
        return meta[listKey] ?? answer
      },
      { sendsHeaders, isLegacy: era === 'legacy', within: timeout },
    )
    definitions = listed.definitions
    return listed
  }

  /** A modern server says nothing by itself. What changes before it has acknowledged may be missed, so the list is then read again. */
  function follow(): void {
    if (era !== 'modern' || capabilities?.tools?.listChanged !== true || following !== 'no') return
    following = 'asked'
    const listening = client.listen({ toolsListChanged: true }, { timeout: callTimeout(server) })
    const over = () => {
      following = 'no'
      listing = undefined
    }
    listening.then(({ closed }) => {
      following = 'yes'
      void closed.then(over)
    }, over)
  }

  function listed(): Promise<Listing> {
    const isFresh = era === 'legacy' || following !== 'no' || freshUntil > Date.now()
    if (listing !== undefined && isFresh) return listing
    const fresh = list()
    listing = fresh
    freshUntil = Infinity
    fresh.then(
      (found) => {
        if (listing === fresh) freshUntil = found.freshUntil ?? 0
      },
      () => {
        if (listing === fresh) listing = undefined
      },
    )
    return fresh
  }

  /** What the request says that this client can do, for modern servers. */
  function declared(what: object): Record<string, unknown> | undefined {
    return era === 'modern' ? { [CLIENT_CAPABILITIES_META_KEY]: what } : undefined
  }

  /** Of a legacy server: the question does not say which call it belongs to, so there is one call at a time. */
  let inTurn: Promise<unknown> = Promise.resolve()
  let answerer: ExchangeOptions['answer']
  if (canAsk && era === 'legacy') {
    client.setRequestHandler('elicitation/create', async ({ params }) => {
      if (answerer === undefined) return { action: 'cancel' }
      return toElicitResult(await answerer(readQuestion(params, who)))
    })
  }

  async function sendAlone(tool: string, input: unknown, options: ExchangeOptions): Promise<McpAnswer> {
    const before = inTurn
    const own = Promise.withResolvers<void>()
    inTurn = own.promise
    try {
      await before
      answerer = options.answer
      // A person may take hours.
      return await send(tool, input, { ...options, timeout: longest })
    } finally {
      answerer = undefined
      own.resolve()
    }
  }

  async function send(tool: string, input: unknown, options: ExchangeOptions): Promise<McpAnswer> {
    const { signal: stopped, timeout = callTimeout(server), traceparent, retry, forModel, progress } = options
    if (stopped?.aborted) throw stoppedError(stopped)
    // The arguments that are sent as headers, too, stand in the definition.
    if (era === 'modern' && listing === undefined) await listed()
    const takesTasks = options.tasks === true && isObject(capabilities?.extensions?.[tasksExtension])
    const meta = {
      // Reaches servers over stdio as well; over HTTP the transport makes a header of it.
      ...(traceparent !== undefined && { traceparent }),
      ...declared({ ...(options.asks === true && asks), ...(takesTasks && tasks) }),
    }
    const { inputSchema, outputSchema } = definitions.get(tool) ?? {}
    const given = (input ?? {}) as Record<string, unknown>
    const params = {
      name: tool,
      arguments: inputSchema === undefined ? given : withDefaults(inputSchema, given),
      ...retry,
      ...(Object.keys(meta).length > 0 && { _meta: meta }),
    }
    // Without its output schema: a question or a task has no structured content.
    const toolDefinition = inputSchema && { name: tool, inputSchema: inputSchema as { type: 'object' } }
    return ask(tool, { timeout, signal: stopped }, async () => {
      const limits = omitUndefined({ timeout, signal: stopped, toolDefinition })
      const onprogress = (said: object) => {
        const words = readProgress(said as Record<string, unknown>)
        if (words !== undefined) progress?.(words)
      }
      const result: CallToolResult | Record<string, unknown> = await client.callTool(params, {
        ...limits,
        ...(progress !== undefined && { onprogress }),
        allowInputRequired: true,
      })
      return read(result, { tool, outputSchema, forModel, ...options })
    })
  }

  function read(
    result: Record<string, unknown>,
    {
      tool,
      outputSchema,
      forModel,
      asks: mayAsk,
      tasks: mayGoOn,
    }: ExchangeOptions & { tool: string } & Partial<Definition>,
  ): McpAnswer {
    if (result['resultType'] === 'input_required') {
      if (mayAsk !== true)
        throw new MillraceError('tool-failed', `${who} asked a question, and nobody can be asked in this run.`)
      const state = readState(result['requestState'], who)
      return { kind: 'input', questions: readQuestions(result['inputRequests'], who), ...omitUndefined({ state }) }
    }
    const task = isObject(result['_meta']) ? result['_meta'][taskKey] : undefined
    if (task !== undefined) {
      if (mayGoOn !== true)
        throw new MillraceError('tool-failed', `${who} answered ${tool} with a task, which it was not offered.`)
      return { kind: 'task', task: readTask(task, who) }
    }
    const value = checkedValue(result as CallToolResult, tool, outputSchema)
    return { kind: 'result', value: toValue(value, `${who} reported that ${tool} failed.`, forModel) }
  }

  function checkedValue(result: CallToolResult, tool: string, schema: Definition['outputSchema']): CallToolResult {
    if (schema === undefined || result.isError === true) return result
    const { structuredContent } = result
    const what = `${who} failed to run ${tool}: it has an output schema`
    if (structuredContent === undefined) {
      throw new MillraceError('tool-failed', `${what}, but its result has no structured content.`)
    }
    const faults = validate(schema, structuredContent)
    if (faults.length === 0) return result
    throw new MillraceError('tool-failed', `${what}, and its result does not match: ${faults.join('; ')}`)
  }

  return {
    era,
    tools: async () => (await listed()).tools,
    exchange: (tool, input, options) => (canAsk && era === 'legacy' ? sendAlone : send)(tool, input, options),
    async task(id, { method, params, tool }, { signal: stopped, timeout = callTimeout(server), forModel }) {
      const limits = { timeout, ...omitUndefined({ signal: stopped }) }
      const request = { method, params: { taskId: id, ...params, _meta: declared({ ...asks, ...tasks }) ?? {} } }
      const answer = await ask(method, limits, () => client.request(request, asItIs, limits))
      if (method !== 'tasks/get') return undefined
      const { result, ...task } = readTask(answer, who, id)
      if (result === undefined) return task
      if (definitions.size === 0) await listed().catch(() => undefined)
      return { ...task, outcome: outcomeOf(result) }

      function outcomeOf(given: CallToolResult): McpTaskOutcome {
        try {
          const checked = checkedValue(given, tool, definitions.get(tool)?.outputSchema)
          return { value: toValue(checked, `${who} reported that ${tool} failed.`, forModel) }
        } catch (error) {
          return { error: messageOf(error) }
        }
      }
    },
    close: () => transport.close(),
  }
}

/** For the log only: system and package messages, and the end of the server's stderr. */
function detailOf(error: unknown, transport: ConnectFailure['transport']): string | undefined {
  const isExplained = transport.failure !== undefined || isAnswer(error) || error instanceof SdkHttpError
  const said = transport.fateDetail ?? (isExplained ? undefined : wordsOf(error))
  return [said, transport.lastWords].filter((part) => part !== undefined).join('; ') || undefined
}

function toElicitResult(reply: McpReply) {
  if (reply.action !== 'accept' || reply.content === undefined) return { action: reply.action }
  return { action: reply.action, content: reply.content as Record<string, string | number | boolean | string[]> }
}

/** What is required, has a default, and was not given. */
function withDefaults(schema: Record<string, unknown>, given: Record<string, unknown>): Record<string, unknown> {
  const missing = defaultsOf(schema).filter(([name]) => !Object.hasOwn(given, name))
  return missing.length === 0 ? given : { ...given, ...Object.fromEntries(missing) }
}

/** For answers that are checked elsewhere. */
const asItIs: StandardSchemaV1<unknown, unknown> = {
  '~standard': { version: 1, vendor: 'millrace', validate: (value) => ({ value }) },
}

// Status for an unknown session id: 404 by the specification, 400 from many servers.
const forgotten = new Set<number>([400, 404])
const gone = new Set<string>([SdkErrorCode.ConnectionClosed, SdkErrorCode.NotConnected, SdkErrorCode.SendFailed])
/** A server that was started anew speaks another version. */
const otherVersion = -32_022

function isForgotten(error: unknown): boolean {
  if (error instanceof SdkHttpError) return forgotten.has(error.status)
  return error instanceof ProtocolError && error.code === otherVersion
}

/** An error that the server itself sent. Its message is passed to the caller of the tool. */
function isAnswer(error: unknown): error is ProtocolError {
  return error instanceof ProtocolError && error.code !== streamEnded
}

/** A reason that is safe for clients: no HTTP body (it may be a whole page), no system or package messages. */
function reasonOf(error: unknown): string {
  if (isAnswer(error)) return `it answered with an error: ${messageOf(error)}`
  if (error instanceof ProtocolError) return 'the response stream ended early'
  if (!(error instanceof SdkHttpError)) return 'the connection failed'
  const { status } = error
  if (status === 401 || status === 403) return `it answered HTTP ${status}; check its headers in the config`
  if (status === 404 || status === 405) return `it answered HTTP ${status}; check its url in the config`
  return `it answered HTTP ${status}`
}
