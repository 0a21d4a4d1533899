/** Runs as their live server tells of them. */
import type { Entry } from '../part/entry.ts'
import { MillraceError } from '../part/error.ts'
import type { RunView } from '../part/fold.ts'
import type { RunRow } from '../part/log.ts'
import { createNdjsonReader } from '../record/ndjson.ts'
import { isLoopback } from '../server/loopback.ts'
import type { Access } from './access.ts'

export interface RemoteOptions {
  /** Sent with every request. */
  key?: string | undefined
  /** There may be a key, which this address does not get. */
  isKeyKept?: boolean
}

/** What a server that listens on all addresses is asked at. */
export function reachableUrl(text: string): string {
  const url = new URL(text)
  if (url.hostname === '0.0.0.0') url.hostname = '127.0.0.1'
  if (url.hostname === '[::]') url.hostname = '[::1]'
  return url.origin
}

/** Whether what is sent there stays on this machine. */
export function isOwnAddress(url: string): boolean {
  return isLoopback(new URL(url).hostname)
}

export function remoteAccess(url: string, { key, isKeyKept = false }: RemoteOptions): Access {
  const headers: Record<string, string> = key === undefined ? {} : { authorization: `Bearer ${key}` }

  function lost(cause: unknown): never {
    throw new MillraceError('server', `The connection to the server at ${url} was lost.`, { cause })
  }

  async function request(path: string, init: { method?: string; accept?: string } = {}): Promise<Response> {
    const { method = 'GET', accept = 'application/json' } = init
    const response = await fetch(url + path, { method, headers: { ...headers, accept } }).catch((cause: unknown) => {
      throw new MillraceError('server', `No server answers at ${url}.`, { cause })
    })
    if (response.ok) return response
    if (response.status === 401) throw unauthorized()
    const body = (await response.json().catch(() => undefined)) as
      | { error?: { code?: string; message?: string } }
      | undefined
    const { code = 'server', message = `${url}${path} answered ${response.status}: is it a Millrace server?` } =
      body?.error ?? {}
    throw new MillraceError(code, message)
  }

  function unauthorized(): MillraceError {
    const cure = isKeyKept
      ? `is not on this machine's own address: add --url ${url} to send it MILLRACE_API_KEY.`
      : key === undefined
        ? 'wants its key: set MILLRACE_API_KEY.'
        : 'refuses the key that MILLRACE_API_KEY holds.'
    return new MillraceError('unauthorized', `The server at ${url} ${cure}`)
  }

  async function view(run: string): Promise<RunView> {
    const { id, ...rest } = (await (await request(`/api/runs/${encodeURIComponent(run)}`)).json()) as RunView & {
      id: string
    }
    return { ...rest, runId: id }
  }

  return {
    url,
    view,
    async list({ threadId, ...query }) {
      const params = new URLSearchParams()
      for (const [name, value] of Object.entries({ ...query, thread: threadId })) {
        if (value !== undefined) params.set(name, String(value))
      }
      return ((await (await request(`/api/runs?${params}`)).json()) as { runs: RunRow[] }).runs
    },
    status: async (run) => (await view(run)).status,
    async *read(run, after, follow): AsyncGenerator<Entry> {
      const query = `after=${after}${follow ? '&follow=1' : ''}`
      const response = await request(`/api/runs/${encodeURIComponent(run)}/events?${query}`, {
        accept: 'application/x-ndjson',
      })
      if (response.body === null) return
      const reader = createNdjsonReader()
      const chunks = response.body.pipeThrough(new TextDecoderStream()).getReader()
      for (;;) {
        const { done, value } = await chunks.read().catch(lost)
        if (done) break
        yield* reader.feed(value)
      }
      yield* reader.end()
    },
    fate: async () => undefined,
    async stop(run) {
      await request(`/api/runs/${encodeURIComponent(run)}/stop`, { method: 'POST' })
    },
    close: async () => undefined,
  }
}
