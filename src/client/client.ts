/**
 * A client of a Millrace server, over HTTP, in browsers and everywhere else that has `fetch`. A run belongs to the server:
 * a connection that breaks is made again and misses nothing.
 */
import { checkKey } from '../part/check-key.ts'
import type { Entry } from '../part/entry.ts'
import type { RunView } from '../part/fold.ts'
import { startRun, type ClientRun, type RunOptions } from './client-run.ts'
import { follow, type FollowOptions } from './follow.ts'
import { request, type Connection } from './request.ts'

/** Where the server is and how to get in. */
export interface ClientOptions {
  /** Where the server is, `http://localhost:3000` say. Default: where the page came from. */
  url?: string
  /** `MILLRACE_API_KEY` of the server. Never give it to a browser that others use. Throws `bad-key` for one that no header can hold. */
  apiKey?: string
  /** Sent with every request. */
  headers?: Record<string, string>
  /** Default: the global one. */
  fetch?: typeof fetch
}

/** What a client says to a request: what its tool gave, or whether it approves. */
export type ClientAnswer = { output: unknown; isError?: boolean } | { approved: boolean; reason?: string }

/** A run as `show` tells it: its status, messages, text, steps, usage, open requests. */
export type ShownRun = Omit<RunView, 'runId'> & { id: string }

/**
 * Every method rejects with a `MillraceError` whose `code` is the server's (`unknown-agent`, `unauthorized` …), or
 * `connection-lost` when the server cannot be reached.
 */
export class MillraceClient {
  readonly #connection: Connection

  constructor({ url = '', apiKey, headers = {}, fetch = globalThis.fetch.bind(globalThis) }: ClientOptions = {}) {
    // `fetch` would refuse it with an error that repeats it. An empty one is sent, and refused by the server.
    if (apiKey) checkKey(apiKey, 'apiKey')
    const key: Record<string, string> = apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }
    this.#connection = { url: url.replace(/\/+$/u, ''), headers: { ...key, ...headers }, fetch }
  }

  /**
   * Starts a run and gives its entries as they come: `for await (const entry of client.run({ agent, messages }))`. It runs
   * on when nobody reads it any more; `abort()` stops it.
   */
  run(options: RunOptions): ClientRun {
    return startRun(this.#connection, this, options)
  }

  /** The entries of a run with `seq > after`, stored and then live, until it has ended; comes back when cut off. */
  follow(runId: string, after = 0, options: FollowOptions = {}): AsyncIterable<Entry> {
    return follow(this.#connection, runId, after, options)
  }

  /** Stops a run; one that has ended stays as it is. Its `run-end`, with the reason, follows within a second. */
  async stop(runId: string, reason?: string): Promise<void> {
    const body = reason === undefined ? undefined : { reason }
    await request(this.#connection, `${pathOf(runId)}/stop`, { method: 'POST', body })
  }

  /**
   * Answers an open request of a run. The first answer counts; the same one again is a `duplicate`, another one rejects
   * with `answer-conflict`.
   */
  async answer(runId: string, requestId: string, answer: ClientAnswer): Promise<{ duplicate: boolean }> {
    const path = `${pathOf(runId)}/requests/${encodeURIComponent(requestId)}`
    const response = await request(this.#connection, path, { method: 'POST', body: answer })
    return (await response.json()) as { duplicate: boolean }
  }

  /** How a run stands. */
  async show(runId: string): Promise<ShownRun> {
    return (await (await request(this.#connection, pathOf(runId))).json()) as ShownRun
  }
}

function pathOf(runId: string): string {
  return `/api/runs/${encodeURIComponent(runId)}`
}
