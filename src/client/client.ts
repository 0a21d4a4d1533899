/**
 * An HTTP client for a Millrace server. Works in browsers and wherever `fetch` exists. Runs belong to the server: when a
 * connection breaks, the client reconnects and misses nothing.
 */
import { checkKey } from '../part/check-key.ts'
import type { Entry } from '../part/entry.ts'
import type { RunView } from '../fold/run-view.ts'
import type { MessageMode } from '../part/sent-message.ts'
import type { ThreadRow } from '../part/thread.ts'
import type { AttachOptions, ClientRun } from './client-run.ts'
import { follow, type FollowOptions } from './follow.ts'
import { lazyLink, type OpenSocket } from './lazy-link.ts'
import { getJson, queryOf, request, type ServerAddress, type RequestOptions } from './request.ts'
import { attachRun, begin, startRun, type RunOptions } from './start-run.ts'
import { createThread, type ClientThread, type ThreadFilter } from './thread.ts'

/** Where the server is and how to authenticate. */
export interface ClientOptions {
  /** URL of the server, such as `http://localhost:3000`. Default: the page's own origin. */
  url?: string
  /** The server's `MILLRACE_API_KEY`. Never send it to other people's browsers. Throws `bad-key` if it is not valid in a header. */
  apiKey?: string
  /** Sent with every request. */
  headers?: Record<string, string>
  /** Default: the global `fetch`. */
  fetch?: typeof fetch
  /**
   * `io` of `socket.io-client`: then one connection carries everything, however many runs are read. Or a function that calls it with
   * options of yours: `(url, options) => io(url, { ...options, transports: ['websocket'] })`. `headers` and `fetch` are not used.
   */
  socket?: OpenSocket
}

/** A client's answer to a request: the output of its tool, or whether it approves. */
export type ClientAnswer =
  | { output: unknown; isError?: boolean }
  | { approved: boolean; reason?: string; input?: unknown }
  | { value: unknown }
  | { cancelled: true }
  | { declined: true }

/** How a run continues that was recorded elsewhere: as an agent of the server, or, for users who may edit agents, with the programs of its recording. */
export interface ClientConsent {
  agentId?: string
  trust?: boolean
}

/** A run as returned by `show`: its status, messages, text, steps, usage and open requests. */
export type ShownRun = Omit<RunView, 'runId'> & { id: string }

/**
 * Every method rejects with a `MillraceError` whose `code` is the server's (`unknown-agent`, `unauthorized` …), or
 * `connection-lost` when the server cannot be reached.
 */
export class MillraceClient {
  readonly #connection: ServerAddress

  readonly #close: () => void

  constructor({
    url = '',
    apiKey,
    headers = {},
    fetch = globalThis.fetch.bind(globalThis),
    socket,
  }: ClientOptions = {}) {
    // The error of `fetch` would contain the key. An empty key is sent, and the server rejects it.
    if (apiKey) checkKey(apiKey, 'apiKey')
    const key: Record<string, string> = apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }
    const at = url.replace(/\/+$/u, '')
    const auth = apiKey === undefined ? undefined : { auth: { token: apiKey } }
    const link = socket && lazyLink(() => socket(at === '' ? '/' : at, { timeout: 5000, ...auth }))
    this.#connection = { url: at, headers: { ...key, ...headers }, fetch: link?.fetch ?? fetch }
    this.#close = link?.close ?? (() => undefined)
  }

  /**
   * Starts a run and streams its entries: `for await (const entry of client.run({ agent, messages }))`. The run continues
   * when you stop reading; call `abort()` to stop it.
   */
  run(options: RunOptions): ClientRun {
    return startRun(this.#connection, this, options)
  }

  /** Starts a run without reading it. A start whose connection breaks is sent again, and starts one run. */
  async start(options: RunOptions): Promise<{ id: string; threadId: string }> {
    return begin(this.#connection, options)
  }

  /**
   * A run that was started before, by this page before a reload or by anybody else: to read it, to execute its client tools, to answer
   * and to stop it.
   */
  attach(runId: string, options: AttachOptions = {}): ClientRun {
    return attachRun(this, runId, options)
  }

  /** A conversation: to continue, show, edit and delete it. A thread that does not exist yet begins with its first run. */
  thread(threadId: string): ClientThread {
    return createThread(this.#connection, this, threadId)
  }

  /** Conversations, newest first. For the next page pass the last `id` as `before`. */
  async threads(filter: ThreadFilter = {}): Promise<ThreadRow[]> {
    const { threads } = await getJson<{ threads: ThreadRow[] }>(this.#connection, `/api/threads${queryOf(filter)}`)
    return threads
  }

  /** Streams the entries of a run with `seq > after`, stored ones first, until the run ends. Reconnects when the connection breaks. */
  follow(runId: string, after = 0, options: FollowOptions = {}): AsyncIterable<Entry> {
    return follow(this.#connection, runId, after, options)
  }

  /** Stops a run; does nothing if it has ended. Its `run-end`, with the reason, follows within a second. */
  async stop(runId: string, reason?: string): Promise<void> {
    const body = reason === undefined ? undefined : { reason }
    await request(this.#connection, `${pathOf(runId)}/stop`, { method: 'POST', body })
  }

  /**
   * Sends a message into a running turn. Resolves when it is stored; the model is told it with its next call. The same `id` again is the same message.
   * Rejects with `run-ended`, `too-many-messages` or `too-large`.
   */
  async tell(
    runId: string,
    message: { content: string | object[]; id?: string; mode?: MessageMode },
  ): Promise<{ id: string; mode: MessageMode; duplicate: boolean }> {
    const response = await request(this.#connection, `${pathOf(runId)}/messages`, { method: 'POST', body: message })
    return (await response.json()) as { id: string; mode: MessageMode; duplicate: boolean }
  }

  /** Takes a message back that waits. Rejects with `message-delivered` if the model was told it. */
  async takeBack(runId: string, messageId: string): Promise<void> {
    await request(this.#connection, `${pathOf(runId)}/messages/${encodeURIComponent(messageId)}`, { method: 'DELETE' })
  }

  /**
   * Answers an open request of a run. The first answer counts. Sending the same answer again returns `duplicate: true`; a
   * different one rejects with `answer-conflict`. A run that was recorded elsewhere rejects with `foreign-run` unless its pipeline is that of
   * an agent of the server, or `consent` says how it goes on.
   */
  async answer(
    runId: string,
    requestId: string,
    answer: ClientAnswer,
    consent: ClientConsent = {},
  ): Promise<{ duplicate: boolean }> {
    const path = `${pathOf(runId)}/requests/${encodeURIComponent(requestId)}`
    const response = await request(this.#connection, path, { method: 'POST', body: { ...answer, ...consent } })
    return (await response.json()) as { duplicate: boolean }
  }

  /**
   * Starts a run that shares the log of another up to the entry `at`, and runs on, in a thread of its own. `input` is merged into
   * `$input` for the steps that start later; `agentId` goes on as another agent, which must have the steps that have started.
   */
  async fork(
    runId: string,
    options: { at: number; input?: Record<string, unknown> } & ClientConsent,
  ): Promise<{ id: string; threadId: string }> {
    const response = await request(this.#connection, `${pathOf(runId)}/fork`, { method: 'POST', body: options })
    return (await response.json()) as { id: string; threadId: string }
  }

  /** The current state of a run. */
  async show(runId: string): Promise<ShownRun> {
    return getJson<ShownRun>(this.#connection, pathOf(runId))
  }

  /**
   * Asks any route of the server, such as `/api/agents`, with the key of this client and over its transport. Resolves with a response
   * whose status is a success.
   */
  request(path: string, init: RequestOptions = {}): Promise<Response> {
    return request(this.#connection, path, init)
  }

  /** Closes the connection of `socket`. A later request opens it again. */
  close(): void {
    this.#close()
  }

  /** Deletes a run that has ended, with everything that is kept of it. */
  async delete(runId: string): Promise<void> {
    await request(this.#connection, pathOf(runId), { method: 'DELETE' })
  }
}

function pathOf(runId: string): string {
  return `/api/runs/${encodeURIComponent(runId)}`
}
