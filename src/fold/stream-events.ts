/** Entries as rows of `agent_stream_events`. */
import { isDelta, type Entry, type EntryOf } from '../part/entry.ts'
import { parentPath } from '../part/path.ts'
import type { StreamEvent } from '../part/records.ts'
import { kindOf } from '../part/step-kind.ts'

/** The events of one run. Call `note` with every `step-start` in order. `agents`: paths of steps that called agents before. */
export interface StreamEvents {
  note(entry: Entry): void
  toEvent(entry: Entry): StreamEvent
}

export function createStreamEvents(run: string, agents: Iterable<string> = []): StreamEvents {
  const called = new Set(agents)
  return {
    note(entry) {
      if (entry.type !== 'step-start') return
      if (calledAgent(entry) !== undefined) called.add(entry.step)
    },
    toEvent(entry) {
      let agentId = run
      for (let at = placeOf(entry); at !== '' && called.size > 0; at = parentPath(at)) {
        if (!called.has(at)) continue
        agentId = `${run}/${at}`
        break
      }
      const { eventId, toolName } = eventNames(entry)
      return {
        id: `${run}:${entry.seq}`,
        seq: entry.seq,
        agentId,
        eventType: entry.type,
        ...(eventId !== undefined && { eventId }),
        ...(toolName !== undefined && { toolName }),
        content: isDelta(entry) ? entry.delta : JSON.stringify(entry),
        timestamp: entry.timestamp,
        createdAt: toDate(entry.timestamp).toISOString(),
      }
    },
  }
}

/** The step that an entry is counted with: the result of a call of an agent is that of its caller, as the call is. */
export function placeOf({ type, step }: Entry): string {
  return type === 'tool-result' && /\/[^/]+\/\d+$/u.test(step) ? parentPath(step) : step
}

/** The name of the agent that a step runs, if it runs one. */
export function calledAgent(start: EntryOf<'step-start'>): string | undefined {
  const { stepType, agent, step, toolCallId } = start
  const kind = kindOf(start)
  if (stepType === 'call-agent' && kind === 'container') return agent ?? ''
  // A model has called it as a tool.
  if (kind === 'tool-call' && toolCallId !== undefined && agent !== undefined) return agent
  // The log has no name for a CLI other than its step's.
  return stepType === 'cli-agent' && kind === 'tool-loop' ? step.slice(parentPath(step).length + 1) : undefined
}

/** The item and the tool that an event is about. Programs may append entries with fields of the wrong type. */
export function eventNames(entry: Entry): { eventId?: string; toolName?: string } {
  const { toolCallId, toolName, id, requestId } = entry as unknown as Record<string, unknown>
  const eventId = toolCallId ?? id ?? requestId
  return {
    ...(typeof eventId === 'string' && { eventId }),
    ...(typeof toolName === 'string' && { toolName }),
  }
}

/** The time of a damaged entry may exceed a date's range or be no number: then 1970. */
function toDate(time: unknown): Date {
  return new Date(typeof time === 'number' && Math.abs(time) <= 8.64e15 ? time : 0)
}
