/** Reads runs through a server. */
import type { Entry } from '../part/entry.ts'
import { MillraceError } from '../part/error.ts'
import type { RunView } from '../fold/run-view.ts'
import type { RunRow } from '../part/log.ts'
import type { ThreadRow } from '../part/thread.ts'
import { createNdjsonReader } from '../store/ndjson.ts'
import type { ShownThread } from '../server/show-thread.ts'
import type { Access } from './access.ts'
import { createRequest, otherVersion, type RemoteOptions } from './remote-request.ts'

/** What the commands read of a run. */
const shownOfRun = [
  ...(['id', 'agent', 'threadId', 'protocol', 'status', 'startedAt', 'lastSeq', 'input', 'messages'] as const),
  ...(['steps', 'usage', 'usageByModel', 'requests', 'summary'] as const),
]

export function remoteAccess(url: string, options: RemoteOptions): Access {
  const request = createRequest(url, options)

  function lost(cause: unknown): never {
    throw new MillraceError('server', `Lost the connection to the server at ${url}.`, { cause })
  }

  /** Of another version, the server may have no such route, refuse a parameter, or answer something else. */
  async function get<T extends object>(path: string, needed: readonly (keyof T & string)[]): Promise<T> {
    const response = await request(path)
    const found = (await response.json().catch(() => undefined)) as Partial<T> | null | undefined
    const missing = needed.filter((name) => found?.[name] === undefined)
    if (missing.length === 0) return found as T
    throw otherVersion(url, `its answer to GET ${path.replace(/\?.*$/u, '')} has no ${missing.join(', ')}`)
  }

  async function view(run: string): Promise<RunView> {
    const { id, ...rest } = await get<RunView & { id: string }>(`/api/runs/${encodeURIComponent(run)}`, shownOfRun)
    return { ...rest, runId: id }
  }

  return {
    url,
    view,
    async list({ threadId, search, ...query }) {
      const params = new URLSearchParams()
      for (const [name, value] of Object.entries({ ...query, thread: threadId, q: search })) {
        if (value !== undefined) params.set(name, String(value))
      }
      return (await get<{ runs: RunRow[] }>(`/api/runs?${params}`, ['runs'])).runs
    },
    async threads(query) {
      const given = Object.entries(query).map(([name, value]) => [name, String(value)])
      const params = new URLSearchParams(Object.fromEntries(given) as Record<string, string>)
      return (await get<{ threads: ThreadRow[] }>(`/api/threads?${params}`, ['threads'])).threads
    },
    async thread(id, messages) {
      const search = messages === undefined ? '' : `?messages=${messages}`
      return get<ShownThread>(`/api/threads/${encodeURIComponent(id)}${search}`, ['runs'])
    },
    status: async (run) => (await view(run)).status,
    async *read(run, after, follow): AsyncGenerator<Entry> {
      const query = `after=${after}${follow ? '&follow=1' : ''}`
      const response = await request(`/api/runs/${encodeURIComponent(run)}/events?${query}`, {
        accept: 'application/x-ndjson',
      })
      if (response.body === null) return
      const reader = createNdjsonReader({ isStored: true })
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
