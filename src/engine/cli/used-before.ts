/**
 * The usage of a session's earlier runs. Codex counts the tokens of a whole session, so a run that resumes one would count the earlier runs again.
 */
import type { Entry } from '../../part/entry.ts'
import type { Store } from '../../part/log.ts'
import type { Usage } from '../../part/usage.ts'
import { threadUsageOf } from '../../ingest/codex/codex-dialect.ts'
import type { CliAgentConfig } from '../../pipeline/pipeline.ts'
import type { Scope } from '../scope.ts'

type Used = (sessionId: string) => Usage | undefined

/** Maximum number of runs that are searched, newest first. */
const mostRuns = 200

/** Undefined if no session is resumed. */
export async function usedBefore(
  scope: Scope,
  call: Pick<CliAgentConfig, 'cli' | 'command' | 'args'>,
): Promise<Used | undefined> {
  const { registry, store, runId, signal } = scope
  if (registry.usedBefore !== undefined) return registry.usedBefore
  if (call.cli !== 'codex' || ![...(call.command ?? []), ...call.args].includes('resume')) return undefined
  await scope.stored()
  const used = await readUsed(store, { before: runId }, signal)
  return (sessionId) => used.get(sessionId)
}

/** Codex's reported usage by session, from the newest run of each. */
export async function readUsed(
  { runs, log }: Pick<Store, 'runs' | 'log'>,
  query: { before?: string },
  signal?: AbortSignal,
): Promise<Map<string, Usage>> {
  const used = new Map<string, Usage>()
  for (const { id } of await runs.list({ ...query, limit: mostRuns })) {
    signal?.throwIfAborted()
    for (const [session, usage] of await sessionsOf(log, id)) if (!used.has(session)) used.set(session, usage)
  }
  return used
}

const types: readonly Entry['type'][] = ['session-info', 'finish']

/** The finish of a session follows its start, in the same step or below it. */
async function sessionsOf(log: Store['log'], run: string): Promise<Map<string, Usage>> {
  const found = new Map<string, Usage>()
  let session: string | undefined
  for await (const batch of log.read(run, { types })) {
    for (const entry of batch) {
      if (entry.type === 'session-info') session = entry.sessionId
      if (entry.type !== 'finish' || session === undefined) continue
      const usage = threadUsageOf(entry.providerMetadata)
      if (usage !== undefined) found.set(session, usage)
    }
  }
  return found
}
