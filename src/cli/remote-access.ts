/** Reads runs through a server. */
import type { Entry } from '../part/entry.ts'
import { MillraceError } from '../part/error.ts'
import type { RunView } from '../fold/run-view.ts'
import type { RunRow } from '../part/log.ts'
import type { ThreadRow } from '../part/thread.ts'
import { createNdjsonReader } from '../store/ndjson.ts'
import type { ShownThread } from '../server/show-thread.ts'
import type { Access } from './access.ts'
import { createRequest, type RemoteOptions } from './remote-request.ts'

export function remoteAccess(url: string, options: RemoteOptions): Access {
  const request = createRequest(url, options)

  function lost(cause: unknown): never {
    throw new MillraceError('server', `Lost the connection to the server at ${url}.`, { cause })
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
    async list({ threadId, search, ...query }) {
      const params = new URLSearchParams()
      for (const [name, value] of Object.entries({ ...query, thread: threadId, q: search })) {
        if (value !== undefined) params.set(name, String(value))
      }
      return ((await (await request(`/api/runs?${params}`)).json()) as { runs: RunRow[] }).runs
    },
    async threads(query) {
      const given = Object.entries(query).map(([name, value]) => [name, String(value)])
      const params = new URLSearchParams(Object.fromEntries(given) as Record<string, string>)
      return ((await (await request(`/api/threads?${params}`)).json()) as { threads: ThreadRow[] }).threads
    },
    async thread(id, messages) {
      const search = messages === undefined ? '' : `?messages=${messages}`
      return (await (await request(`/api/threads/${encodeURIComponent(id)}${search}`)).json()) as ShownThread
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
