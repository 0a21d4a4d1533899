/** How a run comes to be on the client: started here, or started before. */
import { again, request, type ServerAddress } from './request.ts'
import { runOf, type AttachOptions, type Begun, type ClientRun } from './client-run.ts'
import { toNamedTools, toOffer } from './client-tool.ts'
import type { MillraceClient } from './client.ts'

/** Options of a new run. */
export interface RunOptions extends AttachOptions {
  /** The agent's id or an alias. */
  agent: string
  /** `{role, content}`, the AI SDK's `UIMessage`s, or one user message as text. With a `threadId`, send only the new ones. */
  messages?: string | readonly object[]
  /** The conversation to continue. Runs of one thread execute one after the other. */
  threadId?: string
  /**
   * The run of the thread after which this one continues, in place of later runs; `null`: the conversation begins anew.
   * Default: the thread's newest run.
   */
  previousRunId?: string | null
  /**
   * YAML that this run and the later ones of its conversation execute instead of the agent's file, for those who may edit agents; `null`: the file
   * again. Default: what the conversation has.
   */
  pipeline?: string | null
  /** Additional keys of `$input`. */
  input?: Record<string, unknown>
  /** Requests with the same key return the same run. Default: a key of its own, so that a start may be sent again. */
  idempotencyKey?: string
}

/** A start whose connection breaks is sent again with the same key, so it starts one run. */
export async function begin(connection: ServerAddress, options: RunOptions): Promise<Begun> {
  const { agent, messages, threadId, previousRunId, pipeline, input = {}, signal } = options
  const { idempotencyKey = randomKey() } = options
  const list = typeof messages === 'string' ? [{ role: 'user', content: messages }] : messages
  const tools = toNamedTools(options.tools)
  const offered = tools.length === 0 ? undefined : { tools: tools.map(toOffer) }
  const body = { agentId: agent, threadId, previousRunId, pipeline, input: { ...input, messages: list, ...offered } }
  const headers = { 'idempotency-key': idempotencyKey }
  const send = () => request(connection, '/api/runs', { method: 'POST', body, headers })
  const response = await again(send, signal)
  const { id, threadId: thread } = (await response.json()) as Begun
  return { id, threadId: thread }
}

export function startRun(connection: ServerAddress, client: MillraceClient, options: RunOptions): ClientRun {
  const tools = toNamedTools(options.tools)
  return runOf(client, begin(connection, options), tools, {
    ...options,
    mayBeOld: options.idempotencyKey !== undefined,
  })
}

/** A run that has been started before: after a reload, or elsewhere. */
export function attachRun(client: MillraceClient, id: string, options: AttachOptions): ClientRun {
  const begun = again(() => client.show(id)).then(({ threadId }) => ({ id, threadId }))
  return runOf(client, begun, toNamedTools(options.tools), { ...options, mayBeOld: true })
}

export function randomKey(): string {
  // Not `randomUUID`: pages over plain HTTP have none.
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('')
}
