/** Lets a client that did not make the request read a run: its conversation as a snapshot, then its last part from the start. */
import { readHistory, type OpenOptions } from '../../answer/open-answer.ts'
import { readStanding, type Standing } from '../../answer/standing.ts'
import { entryAt } from '../../fold/read-view.ts'
import type { EntryOf } from '../../part/entry.ts'
import { messagesOf } from '../../part/message.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import type { AgUiMessage, AgUiOptions } from '../../wire/ag-ui/ag-ui-event.ts'
import { agUiObjectsWire } from '../../wire/ag-ui/ag-ui.ts'
import { createEventMessages } from '../../wire/ag-ui/event-messages.ts'
import { toAgUiMessages } from '../../wire/ag-ui/to-ag-ui-messages.ts'

type Joining = Required<Pick<OpenOptions<AgUiOptions, never>, 'how' | 'from' | 'standing'>> & {
  options: Partial<AgUiOptions>
}

/**
 * A run that was continued has an AG-UI run for each part: the client is sent the last one, and what came before it is in the
 * snapshot, as the events before said it.
 */
export async function joinRun(runtime: Runtime, runId: string): Promise<Joining> {
  const { log } = runtime.store
  const standing = await readStanding(log, runId)
  const { resumedAt: from } = standing
  const how = 'joined' as const
  if (from === 0) return { how, from, standing, options: { joins: true } }
  return { how, from, standing, options: { joins: true, messages: await messagesBefore(runtime, runId, standing) } }
}

async function messagesBefore(
  runtime: Runtime,
  runId: string,
  { resumedAt, filter }: Standing,
): Promise<AgUiMessage[]> {
  const { log } = runtime.store
  const start = (await entryAt(log, runId, 1)) as EntryOf<'run-start'> | undefined
  const history = await readHistory(runtime, runId)
  const before = [...history, ...messagesOf(start?.input ?? {})]
  const encoder = agUiObjectsWire.createEncoder({ resumedAt, history }, { joins: true, messages: [] })
  const said = createEventMessages()
  for await (const batch of log.read(runId, { before: resumedAt })) {
    for (const entry of filter(batch)) for (const event of encoder.encode(entry)) said.apply(event)
  }
  return [...toAgUiMessages(before), ...said.list]
}
