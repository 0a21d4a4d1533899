/**
 * Data for an open page. `GET /api/live`: rows of runs, entries of some runs and reloads of agents over one connection. `GET /api/server`: the
 * features of this server.
 */
import { hasEnded, type RunRow } from '../../part/log.ts'
import type { DisconnectPolicy } from '../../pipeline/pipeline.ts'
import { omitUndefined } from '../../part/omit-undefined.ts'
import { roleOf } from '../../part/principal.ts'
import { actions, decide } from '../../access/decide.ts'
import type { HandlerContext, RequestContext } from '../handler-context.ts'
import type { Routes } from '../http/routes.ts'
import { shownRow, shownThread } from './existing-thread.ts'
import { bad, readQuery, wholeNumber } from '../http/query.ts'
import { sseResponse } from '../http/sse-response.ts'
import { untilExpired } from '../http/until-expired.ts'
import { createChangesTap, createLiveSource } from '../live/live-source.ts'
import type { Rename } from '../live/renames.ts'
import { createRowFeed, type RowCaller } from '../live/row-feed.ts'
import { createRunCursor } from '../live/run-cursor.ts'
import { version } from '../version.ts'
import { pipelineOfRun } from '../../runtime/own-text.ts'
import { chatPolicy } from './chat-request.ts'

export function mountLive(routes: Routes, server: HandlerContext): void {
  const { store } = server.runtime
  const tap = createChangesTap(store.log, server.onError)
  const rows = createRowFeed(tap, store.runs, server.onError)
  routes.get('/api/live', 'runs.read', (context, { raw, url }) => {
    const isWhole = Object.keys(context.filter).length === 0
    return getLive(context, { tap, rows: isWhole ? rows : rows.of(callerOf(context)) }, raw, new URL(url))
  })
  routes.get('/api/server', 'agents.list', (context) => Response.json(serverFacts(context)))
}

function callerOf(context: RequestContext): RowCaller {
  const { principal, runtime } = context
  return {
    runs: runtime.store.runs,
    sees: (row) => decide(principal, 'runs.read', row) === 'allow',
    show: (row) => shownRow(context, row),
  }
}

/** `user`: who asks, and what its role may do. Absent on a server that does not ask. */
function serverFacts({ server, principal, editing, maxBodyBytes, sockets, tests }: RequestContext): object {
  const { durable, records, upkeep } = server.runtime.store
  const features = { records: records !== undefined, upkeep: upkeep !== undefined, sockets, tests: tests !== undefined }
  const { id, name, tenant, key } = principal
  const isKnown = id !== '' || key !== undefined
  const may = actions.filter((action) => decide(principal, action) === 'allow')
  const user = isKnown && { user: { id, ...omitUndefined({ name, tenant, key }), role: roleOf(principal), may } }
  return { version, durable, edit: editing.state, maxBodyBytes, features, ...user }
}

/** Maximum number of runs that a connection follows or holds. */
const mostRuns = 64
const parameters = { rows: 1, agents: 1, runs: 30_000, hold: 20_000 }

type Shared = Pick<Parameters<typeof createLiveSource>[0], 'tap'> & { rows: ReturnType<typeof createRowFeed> }

async function getLive(context: RequestContext, { tap, rows }: Shared, request: Request, url: URL): Promise<Response> {
  const { runtime, keepAliveMs, onError, onAgents, renames } = context
  const query = readQuery(url, parameters)
  const wanted = readRuns(query.runs, request.headers.get('last-event-id'))
  const known = await Promise.all([...wanted.keys()].map((run) => runtime.store.runs.get(run)))
  const found = new Map(known.flatMap((row) => (row === undefined ? [] : [[row.id, row]])))
  const releases = await holdRuns(context, listOf(query.hold, 'hold'))
  const source = createLiveSource({
    tap,
    rows: flag(query.rows, 'rows') ? rows : undefined,
    onAgents: flag(query.agents, 'agents') ? onAgents : undefined,
    onRename: flag(query.rows, 'rows') ? (tell) => renames.listen(heardBy(context, tell)) : undefined,
    open: ({ ready, gone, end }) =>
      [...wanted].flatMap(([run, after]) => {
        const row = found.get(run)
        if (row === undefined) gone(run, 'unknown')
        // Its log was lost, and another run has the id.
        else if (after > row.lastSeq) gone(run, 'lost')
        else if (after < row.lastSeq || !hasEnded(row.status)) {
          const callbacks = { onReady: ready, onGone: (reason: string) => gone(run, reason), onEnd: end }
          return [createRunCursor({ log: runtime.store.log, run, after, lastSeq: row.lastSeq, ...callbacks })]
        }
        return []
      }),
    keepAliveMs,
    onError,
    onClose() {
      for (const release of releases) release()
    },
  })
  return sseResponse(untilExpired(source, context))
}

/** A conversation as the caller names it, if it sees it. */
function heardBy(context: RequestContext, tell: (named: { id: string; title?: string }) => void) {
  return ({ thread, owner, title }: Rename) => {
    if (decide(context.principal, 'runs.read', owner) !== 'allow') return
    tell({ id: shownThread(context, thread), ...omitUndefined({ title }) })
  }
}

function flag(given: string | undefined, name: string): boolean {
  if (given !== undefined && given !== '0' && given !== '1') throw bad(name, '1 or 0')
  return given === '1'
}

function listOf(given: string | undefined, name: string): string[] {
  const list = given === undefined || given === '' ? [] : given.split(',').map((each) => decoded(each, name))
  if (list.length > mostRuns) throw bad(name, `a list of at most ${mostRuns} runs`)
  return list
}

function decoded(text: string, name: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw bad(name, 'a list of ids, each encoded like a part of a URL')
  }
}

/** The runs to follow, each with the client's last entry. */
function readRuns(given: string | undefined, lastEventId: string | null): Map<string, number> {
  const runs = new Map<string, number>()
  for (const item of listOf(given, 'runs')) {
    const [run, after] = readPosition(item)
    if (runs.has(run)) throw bad('runs', `a list in which each run is named once, and ${run} is named again`)
    runs.set(run, after)
  }
  if (lastEventId !== null && lastEventId !== '') {
    const [run, after] = readPosition(decoded(lastEventId, 'Last-Event-ID'), 'Last-Event-ID')
    if (runs.has(run)) runs.set(run, after)
  }
  return runs
}

/** `<run>~<seq>`. */
function readPosition(text: string, name = 'runs'): [string, number] {
  const at = text.lastIndexOf('~')
  if (at < 1) throw bad(name, `made of <run>~<seq>, and "${text.slice(0, 60)}" is not`)
  return [
    text.slice(0, at),
    wholeNumber(text.slice(at + 1), `the seq of ${text.slice(0, at)}`, 0, Number.MAX_SAFE_INTEGER),
  ]
}

/** Makes the client a reader of these runs, in the sense of `onDisconnect`. */
async function holdRuns({ runtime }: HandlerContext, ids: readonly string[]): Promise<(() => void)[]> {
  const rows = await Promise.all([...new Set(ids)].map((id) => runtime.store.runs.get(id)))
  const held = rows.map(async (row) => {
    return row === undefined || hasEnded(row.status) ? [] : [runtime.attach(row.id, await policyOf(row))]
  })
  return (await Promise.all(held)).flat()

  /** A run that was not started by a chat continues without readers, unless its agent has a policy. */
  async function policyOf(row: RunRow): Promise<DisconnectPolicy> {
    const pipeline = await pipelineOfRun(runtime, row)
    if (['ag-ui', 'ui', 'text'].includes(row.protocol)) return chatPolicy(runtime, pipeline)
    return pipeline?.onDisconnect ?? 'detach'
  }
}
