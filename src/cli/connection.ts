/**
 * A connection to recorded runs: to a server, to a store that servers share, or to the data folder of no server. All commands find
 * theirs by the same rule: `--url`, then a shared store, then the live server of the data folder, then the folder itself.
 */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { MillraceClient } from '../client/client.ts'
import type { RunView } from '../fold/run-view.ts'
import type { Entry } from '../part/entry.ts'
import type { FeedbackRow } from '../part/feedback.ts'
import { MillraceError } from '../part/error.ts'
import type { RunQuery, RunRow, RunStatus } from '../part/log.ts'
import { isUnder } from '../part/path.ts'
import type { MessageMode } from '../part/sent-message.ts'
import { asRecorded, type Recording } from '../part/recording.ts'
import type { ThreadQuery, ThreadRow } from '../part/thread.ts'
import type { Usage } from '../part/usage.ts'
import { nearest } from '../pipeline/nearest.ts'
import type { Deleted } from '../record/delete.ts'
import type { AuditQuery, AuditRow } from '../part/audit.ts'
import type { QuotaUse } from '../part/quota.ts'
import type { UsageReport, UsageReportQuery } from '../part/usage-report.ts'
import type { Stats, StatsQuery } from '../record/stats.ts'
import type { CompactedRuns, PrunedRuns } from '../record/upkeep.ts'
import type { ShownThread } from '../server/show-thread.ts'
import type { LiveServer } from './connection/server.ts'
import type { CommandContext } from './context.ts'
import { checkData } from './paths.ts'

export interface Connection {
  /** URL of the server; absent if the store is read. */
  url?: string
  /** With `search`, the search index is brought up to date first. */
  list(query: RunQuery): Promise<RunRow[]>
  threads(query: ThreadQuery): Promise<ThreadRow[]>
  /** Throws `unknown-thread`. */
  thread(id: string, page?: ThreadPage): Promise<ShownThread>
  /** Throws `unknown-run`. */
  status(run: string): Promise<RunStatus>
  /** The state of the run, from its log. Throws `unknown-run`. */
  view(run: string): Promise<RunView>
  /** Entries after `after`; with `follow`, until the run ends or no process is left that could continue it. */
  read(run: string, after: number, follow: boolean): AsyncIterable<Entry>
  /** What people said of a run. */
  feedback(run: string): Promise<FeedbackRow[]>
  /** For a run whose process is gone; otherwise undefined. */
  orphanOutcome(run: Pick<RunRow, 'id' | 'status' | 'protocol'>): Promise<OrphanOutcome | undefined>
  /** Absent if no server would notice. */
  stop?(run: string): Promise<void>
  /** A message into a running turn. Absent where nobody who executes runs would read it. */
  tell?(run: string, message: { content: string; mode: MessageMode }): Promise<{ id: string; mode: MessageMode }>
  /** `queryAt` gets the time (epoch ms) by the clock of the store. */
  stats(queryAt: (now: number) => StatsQuery): Promise<Stats>
  /** The same for what users have used; with the caller's quotas on a server. */
  usage(queryAt: (now: number) => UsageReportQuery): Promise<UsageReport & { quotas?: QuotaUse[] }>
  /** Who did what, the newest first. */
  audit(query: AuditQuery): Promise<AuditRow[]>
  /** Opens the store for changes. Throws `usage` if its runs cannot be changed by hand. */
  upkeep(): Promise<RunUpkeep>
  /** Throws `usage` if runs are not kept here. Nothing is created before a run is imported. */
  importer(): Promise<RunImporter>
  close(): Promise<void>
}

/** Imports recorded runs. */
export interface RunImporter {
  /** `withUsage`: also read the usage of sessions so far, if the run is new. A server adds it up itself. */
  find(id: string, withUsage: boolean): Promise<ImportedRun>
  /** `lines`: the log, as NDJSON, cut anywhere. `name`: its source, for errors. */
  import(lines: readonly Uint8Array[], name: string): Promise<ImportResult>
}

/** A run that may have been imported before. */
export interface ImportedRun {
  row?: ImportedRow | undefined
  /** Usage of sessions so far, summed over the recorded runs. */
  used?: ReadonlyMap<string, Usage>
}

type ImportedRow = Pick<RunRow, 'id' | 'agent' | 'status' | 'lastSeq'>

export type ImportResult = ImportedRow & { isNew: boolean }

export interface ThreadPage {
  /** About how many of the newest messages; default all. */
  messages?: number | undefined
  /** How many of the newest runs; default a page. */
  runs?: number | undefined
}

/** How the next server continues a run that the log has as `running` although its process is gone. */
export type OrphanOutcome = 'resumed' | 'interrupted'

/** Deletes and compacts runs. It closes with its connection. */
export interface RunUpkeep {
  compact(options: CompactOptions, onProgress: OnProgress): Promise<UpkeepResult<CompactedRuns>>
  prune(options: PruneOptions, onProgress: OnProgress): Promise<UpkeepResult<PrunedRuns>>
  /** Throws `unknown-run`. */
  deleteRun(id: string): Promise<Deleted>
  /** Throws `unknown-thread`. */
  deleteThread(id: string): Promise<Deleted>
}

export interface CompactOptions {
  /** Age in ms. */
  olderThan: number
  dryRun: boolean
}

export interface PruneOptions {
  /** Age in ms. */
  olderThan: number | undefined
  maxBytes: number | undefined
  /** Overwrite deleted runs in the database file. */
  erase: boolean
  dryRun: boolean
}

/** Called with the number of runs done so far. */
export type OnProgress = (runs: number) => void

/** `size`: bytes of the store afterwards. */
export type UpkeepResult<T> = T & { dryRun: boolean; size: number }

/** A connection that also runs agents: on its server, or in this process. */
export interface AgentConnection extends Connection {
  /** Starts, answers, forks, follows and stops runs. */
  client: MillraceClient
  /** Whether runs are recorded, so that they can be suspended. */
  isDurable: boolean
  /** Flags for commands about these runs, such as ` --data folder`; often empty. */
  flags: string
  /** A warning for the user. */
  notice?: string
  /** Answers are posted to a shared store, and one of its servers continues the run. */
  isPosted?: boolean
  /** Another command uses the data folder as well. Absent on a server. */
  isShared?: boolean
  agents(): Promise<AgentList>
  /** Any request to the server, or to the handler of this process. Rejects with a `TypeError` if there is no connection. */
  fetch(path: string, init?: RequestInit): Promise<Response>
}

/** The response of `GET /api/agents`, as far as it is used here. */
export interface AgentList {
  agents: { id: string; name?: string; description?: string; aliases?: string[]; history?: 'client' | 'server' }[]
  errors: { file: string; message: string }[]
}

/** The flags of every command about runs. */
export interface ConnectionFlags {
  data: string
  /** The server of `--url`. */
  url?: string
  /** The shared store of `--store`. */
  store?: string
  /** Folder of agents, whose config may name the store; default `agents`. */
  dir?: string
}

export async function openConnection(context: CommandContext, flags: ConnectionFlags): Promise<Connection> {
  const target = await connectionTarget(context, flags)
  switch (target.type) {
    case 'server':
      return (await import('./connection/server.ts')).serverConnection(target.server)
    case 'store':
      return (await import('./connection/shared-store.ts')).sharedStoreConnection(context, target.url)
    case 'folder':
      return (await import('./connection/folder.ts')).folderConnection(context, target.data)
  }
}

export type ConnectionTarget =
  | { type: 'server'; server: LiveServer }
  /** A store that servers share. */
  | { type: 'store'; url: string }
  /** A data folder that no live server uses. */
  | { type: 'folder'; data: string }

/** Where the commands find the runs, and the keys. */
export async function connectionTarget(context: CommandContext, flags: ConnectionFlags): Promise<ConnectionTarget> {
  const { findServer, namedServer } = await import('./connection/server.ts')
  if (flags.url !== undefined) return { type: 'server', server: await namedServer(context, flags.url) }
  const url = await sharedStoreUrl(context, flags)
  if (url !== undefined) return { type: 'store', url }
  const { data } = flags
  checkData(context, data)
  const server = await findServer(context, data)
  return server === undefined ? { type: 'folder', data } : { type: 'server', server }
}

/** The URL of `--store`, of `MILLRACE_STORE`, or of `record.store` in the config. Throws `bad-store`. */
export async function sharedStoreUrl(
  context: CommandContext,
  { store, dir = 'agents' }: Pick<ConnectionFlags, 'store' | 'dir'>,
): Promise<string | undefined> {
  // Most projects have no shared store: their commands must not load the config to find that out.
  if (!store && !context.env['MILLRACE_STORE'] && !configNamesStore(context, dir)) return undefined
  const { storeUrlOf } = await import('../project/open-store.ts')
  const given = storeUrlOf({}, store, context.env)
  if (given !== undefined || store || context.env['MILLRACE_STORE']) return given
  const { loadConfig } = await import('../project/load-config.ts')
  return storeUrlOf((await loadConfig(context.path(dir))).record ?? {}, undefined, {})
}

/** Whether the text of a config has the word. To load a config is to run it. */
function configNamesStore(context: CommandContext, dir: string): boolean {
  const file = ['ts', 'mts', 'js', 'mjs']
    .map((end) => join(dir, `millrace.config.${end}`))
    .find((path) => existsSync(context.path(path)))
  return file !== undefined && /\bstore\b/u.test(readFileSync(context.path(file), 'utf8'))
}

/** The flags that lead to the same runs, to append to a printed command; often none. A store with a password is not repeated. */
export function formatFlags({ data, url, store }: ConnectionFlags): string {
  const named = store === undefined || store.includes('@') ? '' : ` --store ${store}`
  return `${data === '.millrace' ? '' : ` --data ${data}`}${named}${url === undefined ? '' : ` --url ${url}`}`
}

/**
 * Finds a run by a unique prefix of its id, with or without `run_`. Throws `unknown-run`, with a suggestion if an id is similar.
 */
export async function findRun(connection: Connection, text: string): Promise<RunRow> {
  if (/^(?:run_)?$/u.test(text)) throw new MillraceError('usage', 'Which run? Pass its id, or a unique prefix of it.')
  const prefixes = text.startsWith('run_') ? [text] : [text, `run_${text}`]
  for (const idPrefix of prefixes) {
    const rows = await connection.list({ idPrefix, limit: 1000 })
    const found = rows.length === 1 ? rows[0] : rows.find(({ id }) => id === idPrefix)
    if (found !== undefined) return found
    if (rows.length > 1) throw ambiguous(text, rows)
  }
  throw new MillraceError('unknown-run', await unknown(connection, text))
}

function ambiguous(text: string, rows: RunRow[]): MillraceError {
  const shown = rows.slice(0, 5).map(({ id }) => id)
  const more = rows.length > shown.length ? ' …' : ''
  const message = `"${text}" matches several runs; pass a longer prefix: ${shown.join(', ')}${more}`
  return new MillraceError('unknown-run', message)
}

async function unknown(connection: Connection, text: string): Promise<string> {
  const rows = await connection.list({ limit: 200 })
  if (rows.length === 0) return `There is no run ${text}. No runs are recorded yet.`
  // The text may be a mistyped prefix. `run_` is left out, because every id has it.
  const typed = text.replace(/^run_/u, '')
  const prefixes = new Map(rows.map(({ id }) => [id.replace(/^run_/u, '').slice(0, typed.length), id]))
  const meant = nearest(typed, prefixes.keys())
  const guess = meant === undefined ? '' : ` (did you mean ${prefixes.get(meant)}?)`
  return `There is no run ${text}${guess}. List runs with: millrace ps`
}

const batchSize = 256

/** A run as a recording, whatever the connection. */
export function recordingOf(connection: Pick<Connection, 'read'>, run: string): Recording {
  return {
    name: run,
    async *read({ after = 0, before = Infinity, limit = Infinity, step, types } = {}) {
      let batch: Entry[] = []
      let left = limit
      if (before <= after + 1) return
      for await (const entry of connection.read(run, after, false)) {
        if (entry.seq >= before || left <= 0) break
        const isWanted =
          (types === undefined || types.includes(entry.type)) && (step === undefined || isUnder(entry.step, step))
        if (isWanted) {
          left--
          if (batch.push(entry.type === 'run-start' ? asRecorded(entry) : entry) === batchSize) {
            yield batch
            batch = []
          }
        }
        if (entry.seq === before - 1) break
      }
      if (batch.length > 0) yield batch
    },
  }
}
