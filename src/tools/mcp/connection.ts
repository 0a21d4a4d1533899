/** A live connection to an MCP server, with its error handling. Loads the MCP SDK, so it is imported on first use. */
import { sessionEnded, stoppedError } from './fault.ts'
import {
  Client,
  ProtocolError,
  SdkError,
  SdkErrorCode,
  SdkHttpError,
  type jsonSchemaValidator as ValidatorProvider,
  type StandardSchemaV1,
  type CallToolResult,
} from '@modelcontextprotocol/client'
import { omitUndefined } from '../../part/omit-undefined.ts'
import { messageOf, MillraceError, wordsOf } from '../../part/error.ts'
import { validate } from '../../pipeline/json-schema/validate.ts'
import type { ReadLimits } from '../../models/limits/read-limits.ts'
import { HttpTransport, streamEnded } from './http-transport.ts'
import type { TokenSource } from './auth/token-source.ts'
import type { CallOptions, McpTools, LeftOut, McpTool } from './pool.ts'
import { callTimeout, connectTimeout, longest, type McpServer } from './server.ts'
import { isObject } from '../../pipeline/json-schema/keywords.ts'
import { unsupportedPatterns } from '../../pipeline/json-schema/unsupported-patterns.ts'

export interface McpConnection {
  tools(): Promise<McpTools>
  call(tool: string, input: unknown, options: CallOptions): Promise<unknown>
  close(): Promise<void>
}

type Limits = { timeout: number; signal?: AbortSignal }

export interface OpenOptions {
  /** Aborts the attempt, and closes the connection later. */
  signal: AbortSignal
  /** Removed from the server's output before it is recorded. */
  secrets: readonly string[]
  limits: ReadLimits
  /** Sent with each request. */
  tokens?: Promise<TokenSource> | undefined
  /** Called when the connection has ended, for whatever reason. */
  onEnd: () => void
}

/** Starts the server or connects to it, and initializes the session. Rejects with `mcp-unreachable`, leaving no process behind. */
export async function openConnection(
  name: string,
  server: McpServer,
  { signal, secrets, limits, tokens, onEnd }: OpenOptions,
): Promise<McpConnection> {
  // Name only: clients must not see the command or the address, and arguments may contain keys.
  const who = `The MCP server "${name}"`
  const transport = await createTransport(server, { who, secrets, limits, tokens: await tokens })
  const client = new Client({ name: 'millrace', version: '0' }, { jsonSchemaValidator })
  let listing: Promise<McpTools> | undefined
  let definitions: Listing['definitions'] = new Map()
  let running = 0
  // If the very first request is rejected, the cause is not an expired session.
  let proven = false

  const stop = () => void transport.close()
  signal.addEventListener('abort', stop)
  client.onclose = () => {
    signal.removeEventListener('abort', stop)
    onEnd()
  }
  client.setNotificationHandler('notifications/tools/list_changed', () => {
    listing = undefined
  })

  const limit = connectTimeout(server)
  const timer = setTimeout(() => {
    transport.failure ??= `it was not ready within ${limit} ms; raise connectTimeout if it needs longer`
    stop()
  }, limit)
  try {
    signal.throwIfAborted()
    await client.connect(transport, { timeout: longest })
  } catch (error) {
    signal.removeEventListener('abort', stop)
    await transport.close()
    if (transport.refusal !== undefined) throw transport.refusal
    const own = ownFault(error)
    if (own !== undefined) throw own
    const message = `${who} cannot be reached: ${transport.failure ?? reasonOf(error)}.`
    throw new MillraceError('mcp-unreachable', message, { cause: error, detail: detailOf(error) })
  } finally {
    clearTimeout(timer)
  }

  /** For the log only: system and package messages, and the end of the server's stderr. */
  function detailOf(error: unknown): string | undefined {
    const isExplained = transport.failure !== undefined || isAnswer(error) || error instanceof SdkHttpError
    const said = transport.fateDetail ?? (isExplained ? undefined : wordsOf(error))
    return [said, transport.lastWords].filter((part) => part !== undefined).join('; ') || undefined
  }

  /** Converts the error of a request. `what` names the request. */
  function toFault(error: unknown, what: string, timeout: number, stopped?: AbortSignal): MillraceError {
    const fault = (code: string, text: string) =>
      new MillraceError(code, `${who} ${text}`, { cause: error, detail: detailOf(error) })
    if (stopped?.aborted) return stoppedError(stopped)
    if (transport.refusal !== undefined) return transport.refusal
    const own = ownFault(error)
    if (own !== undefined) return own
    if (error instanceof SdkError && error.code === SdkErrorCode.RequestTimeout) {
      return fault('timed-out', `did not answer ${what} within ${timeout} ms.`)
    }
    if (error instanceof SdkHttpError && proven && forgotten.has(error.status)) {
      transport.failure ??= `its session has expired (HTTP ${error.status})`
      // New calls use a new connection. Calls under way get the same error or, if the status had another cause, their result.
      onEnd()
      return fault(sessionEnded, `no longer knows the session (HTTP ${error.status}).`)
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

  async function list(): Promise<McpTools> {
    const timeout = callTimeout(server)
    if (client.getServerCapabilities()?.tools === undefined) return []
    const listed = await listTools((cursor) => {
      const params = cursor === undefined ? {} : { cursor }
      const request = () => client.request({ method: 'tools/list', params }, asItIs, { timeout })
      return ask('tools/list', { timeout }, request)
    })
    definitions = listed.definitions
    return listed.tools
  }

  return {
    tools() {
      if (listing === undefined) {
        const fresh = list()
        listing = fresh
        fresh.catch(() => {
          if (listing === fresh) listing = undefined
        })
      }
      return listing
    },
    async call(tool, input, { signal: stopped, timeout = callTimeout(server), traceparent, forModel }) {
      if (stopped?.aborted) throw stoppedError(stopped)
      const limits = { signal: stopped, timeout }
      // `_meta` reaches servers over stdio as well; over HTTP the transport makes a header of it.
      const trace = traceparent === undefined ? undefined : { _meta: { traceparent } }
      const params = { name: tool, arguments: (input ?? {}) as Record<string, unknown>, ...trace }
      const result = await ask(tool, limits, () =>
        client.callTool(params, { ...limits, ...omitUndefined({ toolDefinition: definitions.get(tool) }) }),
      )
      return toValue(result, `${who} reported that ${tool} failed.`, forModel)
    },
    close: () => transport.close(),
  }
}

/** An error that was thrown here, such as `mcp-unauthorized`: the SDK hands it on, or as a cause. */
function ownFault(error: unknown): MillraceError | undefined {
  return [error, (error as { cause?: unknown } | undefined)?.cause].find((each) => each instanceof MillraceError)
}

/** For answers that are checked elsewhere. */
const asItIs: StandardSchemaV1<unknown, unknown> = {
  '~standard': { version: 1, vendor: 'millrace', validate: (value) => ({ value }) },
}

/** Replaces the SDK's validator, which compiles the server's schemas to code and runs their patterns without a limit. */
const jsonSchemaValidator: ValidatorProvider = {
  getValidator:
    <T>(schema: unknown) =>
    (input: unknown) => {
      const faults = validate(schema, input)
      if (faults.length === 0) return { valid: true, data: input as T, errorMessage: undefined }
      return { valid: false, data: undefined, errorMessage: faults.join('; ') }
    },
}

// Status for an unknown session id: 404 by the specification, 400 from many servers.
const forgotten = new Set<number>([400, 404])
const gone = new Set<string>([SdkErrorCode.ConnectionClosed, SdkErrorCode.NotConnected, SdkErrorCode.SendFailed])

interface TransportOptions {
  who: string
  secrets: readonly string[]
  limits: ReadLimits
  tokens: TokenSource | undefined
}

async function createTransport(server: McpServer, options: TransportOptions) {
  if ('url' in server) return new HttpTransport(server, options)
  const { StdioTransport } = await import('./stdio-transport.ts')
  return new StdioTransport(server, options)
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

/**
 * Converts a tool result to a value: the structured content if present, the text if all blocks are text (joined by
 * newlines), else the list of content blocks. Throws `tool-failed` with the tool's text for `isError`. `forModel`: pictures and
 * the like that stand beside the structured content are kept, in a list with it.
 */
function toValue({ content, structuredContent, isError }: CallToolResult, failed: string, forModel = false): unknown {
  if (isError === true) throw new MillraceError('tool-failed', textOf(content) || failed)
  if (structuredContent !== undefined) {
    const others = forModel ? content.filter(({ type }) => type !== 'text') : []
    if (others.length === 0) return structuredContent
    return [{ type: 'text', text: JSON.stringify(structuredContent) }, ...others]
  }
  return content.every((block) => block.type === 'text') ? textOf(content) : content
}

function textOf(content: CallToolResult['content']): string {
  return content.flatMap((block) => (block.type === 'text' ? [block.text] : [])).join('\n')
}

/*
 * Reads the tools of an MCP server, page by page. The SDK's own `listTools` refuses the whole list because of one tool, and with it all tools
 * of the server.
 */

/** Each page may be as large as one message. */
const mostPages = 200

interface Listing {
  tools: McpTools
  /** The tools that have an output schema, as the SDK wants them for a call. */
  definitions: ReadonlyMap<string, Definition>
}

type Definition = { name: string; inputSchema: { type: 'object' }; outputSchema: Record<string, unknown> }

/** `page`: asks for one. */
export async function listTools(page: (cursor: string | undefined) => Promise<unknown>): Promise<Listing> {
  const tools: McpTool[] = []
  const leftOut: LeftOut[] = []
  const definitions = new Map<string, Definition>()
  const seen = new Set<string>()
  let cursor: string | undefined
  let pages = 0
  do {
    const answer = await page(cursor)
    const { tools: listed, nextCursor } = isObject(answer) ? answer : {}
    for (const tool of Array.isArray(listed) ? (listed as unknown[]) : []) {
      const name = isObject(tool) && typeof tool['name'] === 'string' && tool['name'] !== '' ? tool['name'] : undefined
      const why = faultOf(tool, name)
      if (why !== undefined) leftOut.push({ name: name ?? `number ${tools.length + leftOut.length + 1}`, why })
      else add(tool as unknown as Valid)
    }
    cursor = typeof nextCursor === 'string' && nextCursor !== '' ? nextCursor : undefined
    pages += 1
    if (cursor === undefined || pages < mostPages) {
      // A server that names the same page again would do so for ever.
      if (cursor !== undefined && seen.has(cursor)) cursor = undefined
      if (cursor !== undefined) seen.add(cursor)
      continue
    }
    leftOut.push({ why: `its list has more than ${mostPages} pages: those behind them are not read` })
    break
  } while (cursor !== undefined)

  function add({ name, description, inputSchema, outputSchema }: Valid): void {
    const unchecked = [...unsupportedPatterns(inputSchema), ...unsupportedPatterns(outputSchema)]
    tools.push({ name, description, inputSchema, ...(unchecked.length === 0 ? undefined : { unchecked }) })
    if (outputSchema !== undefined) definitions.set(name, { name, inputSchema: { type: 'object' }, outputSchema })
  }

  return { tools: leftOut.length === 0 ? tools : Object.assign(tools, { leftOut }), definitions }
}

interface Valid {
  name: string
  description?: string
  inputSchema: Record<string, unknown>
  outputSchema?: Record<string, unknown>
}

/** Why a tool cannot be used. */
function faultOf(tool: unknown, name: string | undefined): string | undefined {
  if (!isObject(tool) || name === undefined) return 'it has no name'
  const { description, inputSchema, outputSchema } = tool
  if (description !== undefined && typeof description !== 'string') {
    return `its description is ${kindOf(description)}, not text`
  }
  if (inputSchema === undefined) return 'it has no inputSchema'
  return (
    schemaFault('inputSchema', inputSchema) ??
    (outputSchema === undefined ? undefined : schemaFault('outputSchema', outputSchema))
  )
}

function schemaFault(key: string, schema: unknown): string | undefined {
  if (!isObject(schema)) return `its ${key} is ${kindOf(schema)}, not a schema`
  const { type, properties, required } = schema
  if (type === undefined) return `its ${key} has no type; it must be "object"`
  if (type !== 'object') return `its ${key} is of the type ${JSON.stringify(type).slice(0, 40)}; it must be "object"`
  if (properties !== undefined && !isObject(properties)) return `the properties of its ${key} are ${kindOf(properties)}`
  const isList = Array.isArray(required) && required.every((each) => typeof each === 'string')
  return required === undefined || isList ? undefined : `"required" of its ${key} is no list of names`
}

function kindOf(value: unknown): string {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'a list' : `a ${typeof value}`
}
