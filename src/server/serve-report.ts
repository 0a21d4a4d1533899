/** Reports and health of `serve`. */
import { pause } from '../async/pause.ts'
import { MillraceError, messageOf } from '../part/error.ts'
import type { Store } from '../part/log.ts'
import type { AgentFolder } from '../project/agents-folder.ts'
import { withoutTokens } from './mcp/sealed-token.ts'
import type { Agent } from '../runtime/runtime.ts'
import type { ErrorGuard, Level, Report, Reporter } from './error-guard.ts'
import type { Project } from '../project/project.ts'
import type { Health } from './handler-context.ts'
import type { ServeOptions } from './serve.ts'

/** Redacts secrets in every report. */
export function createReporter(
  { report, log }: Pick<ServeOptions, 'report' | 'log'>,
  project: () => Project | undefined,
): Reporter {
  const write: Reporter = report ?? ((each) => each.event === 'note' && log?.(each.message))
  return (each) => write(withoutTokensIn(project()?.runtime.redact(each) ?? each))
}

/** The id of a task of MCP is as good as a key to it. */
function withoutTokensIn<T extends object>(report: T): T {
  const fields = Object.entries(report).map(([name, value]: [string, unknown]) => {
    return [name, typeof value === 'string' ? withoutTokens(value) : value]
  })
  return Object.fromEntries(fields) as T
}

export function reportOfStore(failure: MillraceError | undefined): Report {
  if (failure === undefined) return { level: 'info', event: 'store', message: 'Runs are stored again.' }
  const detail = failure.detail === undefined ? undefined : { detail: failure.detail }
  return { level: 'error', event: 'store', message: `${storeReason(failure)} New runs are refused.`, ...detail }
}

/** Timeout in ms for the processes of a store. Health checks must not wait for an unavailable one. */
const patience = 300

export async function healthOf({ runtime, storeFailure }: Project, guard: ErrorGuard | undefined): Promise<Health> {
  const { fleet, status } = runtime.store
  const reasons = storeFailure === undefined ? [] : [storeReason(storeFailure)]
  if (await isOutdated(runtime.store)) {
    const cure = 'Restart this server with that version.'
    reasons.splice(0, Infinity, `Runs cannot be read or stored: a newer Millrace has migrated the database. ${cure}`)
  }
  const uncaughtErrors = guard?.unattributed ?? 0
  const [processes, shared] = await Promise.all([inTime(fleet.processes?.()), inTime(status?.())])
  const isAway = shared?.connected === false && reasons.length === 0
  // The store is shared by all instances: as long as waiting is worthwhile, no other instance is better.
  const waits = isAway && shared.awayMs < shared.patienceMs
  if (isAway)
    reasons.push(waits ? 'The store cannot be reached. Requests wait for it.' : 'The store cannot be reached.')
  if (processes === undefined) return { reasons, waits, uncaughtErrors }
  const self = processes.find((each) => each.self)
  const count = (of: 'alive' | 'draining') => processes.filter((each) => each[of]).length
  const counts = { alive: count('alive'), draining: count('draining'), runs: self?.runs ?? 0 }
  const fleetOf = { ...counts, beatAgeMs: Math.round(self?.beatAgeMs ?? 0), clockAheadMs: shared?.clockAheadMs ?? 0 }
  return { reasons, waits, uncaughtErrors, fleet: fleetOf }
}

/** Detects a newer schema on an idle server. Other failures show with the next write. */
async function isOutdated({ runs, fleet }: Store): Promise<boolean> {
  // The processes of a shared store check versions when they connect.
  if (fleet.shared) return false
  try {
    await runs.list({ limit: 1 })
    return false
  } catch (error) {
    return error instanceof MillraceError && error.code === 'store-version'
  }
}

/** Undefined after a timeout or a failure. */
export async function inTime<T>(answer: Promise<T> | undefined): Promise<T | undefined> {
  const over = new AbortController()
  const late = pause(patience, over.signal, { background: true }).then(() => undefined)
  try {
    return await Promise.race([answer, late])
  } catch {
    return undefined
  } finally {
    over.abort()
  }
}

/** Reports reloads of agents when their files change. */
export function watchAgents(
  agents: AgentFolder,
  note: (message: string, level?: Level) => void,
  onChange: () => void,
): void {
  let before = byId(agents.list())
  agents.watch(
    (changed, errors) => {
      for (const { message } of errors) note(message, 'error')
      const now = byId(agents.list())
      const broken = new Set(errors.map(({ file }) => file.replace(/\.ya?ml$/u, '')))
      for (const id of changed) note(fateOf(id, before.get(id), now.get(id), broken.has(id)))
      before = now
      onChange()
    },
    (file) => note(`${file} has changed: restart the server to apply it`),
  )
}

function byId(agents: readonly Agent[]): Map<string, Agent> {
  return new Map(agents.map((agent) => [agent.id, agent]))
}

/** The effect of a reload on an agent, in one line. */
function fateOf(id: string, before: Agent | undefined, now: Agent | undefined, isBroken: boolean): string {
  if (isBroken && now === undefined) return `${id}: not loaded`
  if (isBroken && now === before) return `${id}: not reloaded, the previous version stays`
  if (now === undefined) return `removed: ${id}`
  return `${before === undefined ? 'added' : 'reloaded'}: ${id}`
}

/** SQLite's primary result codes. */
const reasons = new Map([
  [5, 'the database is locked by another process'],
  [8, 'the database is read-only'],
  [10, 'the disk reports an error'],
  [11, 'the database is damaged'],
  [13, 'the disk is full'],
  [14, 'the database file cannot be opened'],
])

/** Why a store fails, without paths: `/health` is public. */
function storeReason({ cause }: MillraceError): string {
  // Redis' message, also for one command of a script.
  if (/\bOOM command not allowed\b/u.test(messageOf(cause)))
    return 'Runs cannot be stored: the memory of the store is full.'
  const code = Number((cause as { errcode?: unknown } | undefined)?.errcode) & 0xff
  return `Runs cannot be stored: ${reasons.get(code) ?? 'the store failed'}.`
}
