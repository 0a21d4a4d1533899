/** Reads the inbox of a suspended run: answers to its open requests, or a stop. */
import { compact } from '../part/compact.ts'
import type { Log } from '../part/log.ts'
import type { RunState } from '../engine/state.ts'

/** What else the request with an answer brought. It is posted with the answer, for the process that resumes the run. */
export interface Wake {
  protocol?: string
  labels?: Record<string, string>
  input?: Record<string, unknown>
}

export async function leftFor(log: Log, run: string, { open }: RunState): Promise<{ stop?: string; how?: Wake }> {
  let how: Wake | undefined
  for await (const { key, message } of log.inbox(run)) {
    if (key === 'stop') return { stop: (message as { reason?: string } | null)?.reason ?? 'Stopped.' }
    if (!open.requests.has(key.replace(/^answer:/u, ''))) continue
    const { protocol, labels, input } = message as Wake
    how = { ...how, ...compact({ protocol, labels, input: input && { ...how?.input, ...input } }) }
  }
  return how === undefined ? {} : { how }
}
