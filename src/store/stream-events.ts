/** The events of a run as rows, from any store. */
import { createStreamEvents } from '../fold/stream-events.ts'
import type { Log, Store } from '../part/log.ts'
import type { StreamEvent, StreamEventQuery } from '../part/records.ts'

/** The events of a run, ascending: from the tables if the store has them, otherwise from the log. None for an unknown run. */
export async function getStreamEvents(
  store: Pick<Store, 'log' | 'records'>,
  run: string,
  query: StreamEventQuery = {},
): Promise<StreamEvent[]> {
  return (await store.records?.streamEvents(run, query)) ?? eventsOfLog(store.log, run, query)
}

/** From the log. `agents`: the agents called before `after`, so that only later entries are read. */
export async function eventsOfLog(
  log: Log,
  run: string,
  { types, limit = Infinity, after = 0 }: StreamEventQuery,
  agents?: Iterable<string>,
): Promise<StreamEvent[]> {
  const events = createStreamEvents(run, agents)
  const wanted = types === undefined ? undefined : new Set(types)
  const found: StreamEvent[] = []
  if (limit <= 0) return found
  // The agent of an entry depends on all entries since the start of the run.
  for await (const batch of log.read(run, { after: agents === undefined ? 0 : after })) {
    for (const entry of batch) {
      events.note(entry)
      if (entry.seq <= after || wanted?.has(entry.type) === false) continue
      found.push(events.toEvent(entry))
      if (found.length >= limit) return found
    }
  }
  return found
}
