/** What a repeated run would do again. */
import type { Entry } from '../../part/entry.ts'
import type { Log } from '../../part/log.ts'
import { kindOf } from '../../part/step-kind.ts'

/** Whether the run has done what a second one would do again. Its log may be gone with its store. */
export async function hasActed(log: Log, runId: string): Promise<boolean> {
  try {
    for await (const batch of log.read(runId, { types: ['step-start', 'session-info'] })) {
      if (batch.some(isAct)) return true
    }
  } catch {
    // The failure is told all the same.
  }
  return false
}

/** A CLI agent that has begun a session may have done anything. */
function isAct(entry: Entry): boolean {
  if (entry.type !== 'step-start') return entry.type === 'session-info'
  return kindOf(entry) === 'tool-call' || entry.stepType === 'mcp-tool'
}
