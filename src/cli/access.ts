/** The log from the terminal: through the live server that a data folder names, else from its database. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Entry } from '../part/entry.ts'
import { MillraceError } from '../part/error.ts'
import type { RunView } from '../part/fold.ts'
import type { RunQuery, RunRow, RunStatus, Store } from '../part/log.ts'
import { createNdjsonReader } from '../record/ndjson.ts'
import { sqliteStore } from '../record/sqlite-store.ts'
import { readView } from '../run/history.ts'
import { readServerFile } from '../server/server-file.ts'

export interface Access {
  /** Of the live server; absent where the database is read. */
  url?: string
  list(query: RunQuery): Promise<RunRow[]>
  /** Throws `unknown-run`. */
  status(run: string): Promise<RunStatus>
  /** All that its log comes to. Throws `unknown-run`. */
  view(run: string): Promise<RunView>
  /** Entries after `after`; with `follow` until the run ends. */
  read(run: string, after: number, follow: boolean): AsyncIterable<Entry>
  /** Absent when there is no server: then nothing is running. */
  stop?(run: string): Promise<void>
  close(): Promise<void>
}

export async function openAccess(data: string): Promise<Access> {
  const server = readServerFile(data)
  if (server?.url !== undefined && (await answers(server.url))) return remote(server.url)
  const file = join(data, 'millrace.db')
  if (!existsSync(file)) {
    throw new MillraceError('usage', `There is no log in ${data}; name the server's data folder with --data.`)
  }
  return local(sqliteStore(file, { readOnly: true }))
}

/** A process id that is alive may be another program's by now. */
async function answers(url: string): Promise<boolean> {
  try {
    return (await fetch(`${url}/health`)).ok
  } catch {
    return false
  }
}

function local(store: Store): Access {
  const unknownRun = (run: string) => new MillraceError('unknown-run', `There is no run ${run}.`)

  async function status(run: string): Promise<RunStatus> {
    const row = await store.runs.get(run)
    if (row === undefined) throw unknownRun(run)
    return row.status
  }
  return {
    list: (query) => store.runs.list(query),
    status,
    async view(run) {
      const view = await readView(store, run)
      if (view === undefined) throw unknownRun(run)
      return view
    },
    async *read(run, after) {
      await status(run)
      for await (const batch of store.log.read(run, after)) yield* batch
    },
    close: () => store.close(),
  }
}

function remote(url: string): Access {
  const key = process.env['MILLRACE_API_KEY']
  const headers: Record<string, string> = key === undefined ? {} : { authorization: `Bearer ${key}` }

  function lost(cause: unknown): never {
    throw new MillraceError('server', `The connection to the server at ${url} was lost.`, { cause })
  }

  async function request(path: string, init: { method?: string; accept?: string } = {}): Promise<Response> {
    const { method = 'GET', accept = 'application/json' } = init
    const response = await fetch(`${url}${path}`, { method, headers: { ...headers, accept } }).catch(lost)
    if (response.ok) return response
    const body = (await response.json().catch(() => undefined)) as { error?: { message?: string } } | undefined
    throw new MillraceError('server', body?.error?.message ?? `${url}${path} answered ${response.status}.`)
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
    async *read(run, after, follow) {
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
    async stop(run) {
      await request(`/api/runs/${encodeURIComponent(run)}/stop`, { method: 'POST' })
    },
    close: async () => undefined,
  }
}
