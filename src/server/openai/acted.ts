/** The side effects that a repeated run would repeat. */
import type { Entry } from '../../part/entry.ts'
import type { Log } from '../../part/log.ts'
import { kindOf } from '../../part/step-kind.ts'

/** Whether the run has had side effects that a second one would repeat. Its log may be gone with its store. */
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
