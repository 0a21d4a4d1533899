import { formatLimit } from '../part/format-limit.ts'
import type { Store } from '../part/log.ts'
import { policyOf, sayPolicy, type UpkeepConfig } from '../record/policy.ts'
import { defaultTimeouts, msOf, type DefaultTimeouts } from '../engine/limits.ts'

/** The default time limits, in one line. */
export function limitsLine(set: DefaultTimeouts = {}): string {
  const { firstToken, idle, run } = { ...defaultTimeouts, ...set }
  const name = (limit: typeof firstToken | undefined) => {
    const ms = limit === undefined ? undefined : msOf(limit)
    return ms === undefined ? 'none' : formatLimit(ms)
  }
  return `first token ${name(firstToken)}, idle ${name(idle)}, run ${name(run)}`
}

/** What is kept of runs, in one line. */
export function retentionLine(
  record: UpkeepConfig & { data?: string; archive?: string } = {},
  { durable, fleet: { shared } }: Pick<Store, 'durable' | 'fleet'>,
): string {
  if (!durable) return 'runs are in memory only: the last 100 that have ended, until the server stops'
  return sayPolicy(policyOf(record, { shared }), record.archive !== undefined)
}
