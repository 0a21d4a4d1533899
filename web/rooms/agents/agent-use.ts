/** How an agent was used lately, from the newest runs. */
import type { RunRow } from '../../../src/part/log.ts'
import { statusWord } from '../../kit/status-words.ts'

export interface AgentUse {
  runs: number
  failed: number
  /** Epoch ms. */
  lastAt: number
  /** USD. Undefined: the price of none of them is known. */
  cost: number | undefined
}

/** How many runs are looked at: what they say fits one line. */
export const mostRuns = 300

type UsedRow = Pick<RunRow, 'agent' | 'status' | 'startedAt' | 'cost'>

export function agentUses(rows: readonly UsedRow[]): Map<string, AgentUse> {
  const uses = new Map<string, AgentUse>()
  for (const { agent, status, startedAt, cost } of rows) {
    const before = uses.get(agent) ?? { runs: 0, failed: 0, lastAt: 0, cost: undefined }
    uses.set(agent, {
      runs: before.runs + 1,
      failed: before.failed + (statusWord(status) === 'failed' ? 1 : 0),
      lastAt: Math.max(before.lastAt, startedAt),
      cost: cost === undefined ? before.cost : (before.cost ?? 0) + cost,
    })
  }
  return uses
}
